// SPDX-License-Identifier: Apache-2.0
// The stage of an SM through which L1, shared memory and constants are accessed: one wavefront in a cycle,
// for all sub-cores. It also knows how long accesses would have waited without conflicts of banks or
// addresses.
#pragma once
#include <algorithm>

#include "gpu/sm/sm_spec.hpp"

namespace manyscale::gpu {

class DataStage {
 public:
  // When an access that has its addresses at `ready` can begin.
  Cycle begin(Cycle ready) {
    conflict_ = std::max(ready, free_) - std::max(ready, free_without_);
    return std::max(ready, free_);
  }
  // Keeps the stage busy for an access; `needed` wavefronts would do without conflicts.
  void use(Cycle begin, Cycle wavefronts, Cycle needed, SmStatistics& statistics) {
    free_ = begin + wavefronts;
    free_without_ = begin - conflict_ + needed;
    conflict_ += wavefronts - needed;
    statistics.data_cycles += wavefronts;
  }
  // Keeps the stage busy until a cycle, without conflicts.
  void use_until(Cycle end) { free_ = free_without_ = end; }
  Cycle free_at() const { return free_; }
  // Cycles that conflicts add to the access that began last.
  Cycle conflict() const { return conflict_; }

 private:
  Cycle free_ = 0;
  Cycle free_without_ = 0;  // the same if no access had conflicts
  Cycle conflict_ = 0;
};

}  // namespace manyscale::gpu
