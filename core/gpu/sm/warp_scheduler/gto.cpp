// SPDX-License-Identifier: Apache-2.0
// Greedy then oldest, as in GPGPU-Sim.
#include "gpu/sm/warp_scheduler.hpp"

namespace manyscale::gpu {
namespace {

class GreedyThenOldest final : public WarpScheduler {
 public:
  bool greedy() const override { return true; }
  std::uint64_t priority(std::uint64_t age) const override { return ~age >> 1; }
};

const Registered<GreedyThenOldest> registered{"gto", "The warp that issued last, else the oldest."};

}  // namespace
}  // namespace manyscale::gpu
