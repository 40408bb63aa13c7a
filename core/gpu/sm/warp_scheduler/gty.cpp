// SPDX-License-Identifier: Apache-2.0
// Greedy then youngest, as in GPUs since Volta, where the compiler's yield hint ends a warp's turn.
#include "gpu/sm/warp_scheduler.hpp"

namespace manyscale::gpu {
namespace {

class GreedyThenYoungest final : public WarpScheduler {
 public:
  bool greedy() const override { return true; }
  std::uint64_t priority(std::uint64_t age) const override { return age + 1; }
};

const Registered<GreedyThenYoungest> registered{"gty", "The warp that issued last, else the youngest."};

}  // namespace
}  // namespace manyscale::gpu
