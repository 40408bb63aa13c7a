// SPDX-License-Identifier: Apache-2.0
// Dependence counters of a warp that runs SASS, whose compiler has chosen them: each counts instructions of
// variable latency that have not written their results, or not read their operands, and later instructions
// wait for it. Copies to shared memory (LDGSTS) are counted in groups (LDGDEPBAR).
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "gpu/lower/sass_code.hpp"
#include "gpu/sm/stall.hpp"

namespace manyscale::gpu {

class DependenceCounters {
 public:
  // An instruction as a counter counts it.
  struct Entry {
    Cycle done = 0;  // kPending: nobody knows yet
    Stall why = Stall::wait;
    std::uint32_t number = 0;    // of the load
    std::uint32_t conflict = 0;  // cycles that conflicts add to `done`
  };

  // Waits until the counters that an instruction names are zero, or count no more than it allows.
  void wait(const IssueControl& control, Waiting& waiting) const;
  // Lets a counter count an instruction. `limited`: counters that are waited for in part, a bit each; `now`:
  // the warp's next issue, before which nothing has to be known of what is done.
  void count(std::uint8_t counter, const Entry& entry, std::uint8_t limited, Cycle now);
  // An instruction that was counted without a time is done.
  void count_down(std::uint8_t counter, Cycle done, bool faulted, std::uint32_t number,
                  std::uint32_t conflict = 0);

  // --- Copies to shared memory ---
  // The number of a copy that begins.
  std::uint32_t begin_copy() {
    ++copies_left_;
    return next_copy_++;
  }
  // A copy that never was outstanding is done.
  void copied(Cycle when) { copied_ = std::max(copied_, when); }
  // Lets a counter count all copies that were begun, until they are done.
  void close_copies(std::uint8_t counter, Cycle earliest, std::uint8_t limited, Cycle now);
  // A copy is done, and with it perhaps the groups that it belongs to.
  void copy_arrived(std::uint32_t copy, Cycle when, bool faulted);

 private:
  struct Counter {
    Cycle zero = 0;             // when those are done of which it is known
    std::uint32_t unknown = 0;  // others
    Stall why = Stall::wait;
    std::uint32_t conflict = 0;  // cycles that conflicts add to `zero`
  };
  // An instruction that is counted, where some other waits for a part of what the counter counts.
  struct Counted {
    std::uint8_t counter = 0;
    std::uint32_t number = 0;  // of the load; or of the copies, and kCopies
    Cycle done = 0;
  };
  struct CopyGroup {
    std::uint32_t before = 0;  // the number of the first copy that does not belong to it
    std::uint32_t left = 0;    // outstanding copies
    std::uint8_t counter = 0;
    Cycle done = 0;
  };
  static constexpr std::uint32_t kCopies = std::uint32_t{1} << 31;

  void wait_for_limit(const IssueControl& control, Waiting& waiting) const;

  std::array<Counter, IssueControl::kCounters> counters_{};
  std::vector<Counted> counted_;   // by counters that are waited for in part
  std::vector<CopyGroup> groups_;  // that are not done
  std::uint32_t next_copy_ = 0;
  std::uint32_t copies_left_ = 0;  // outstanding
  Cycle copied_ = 0;               // when the others are done
};

}  // namespace manyscale::gpu
