// SPDX-License-Identifier: Apache-2.0
// Loose round robin: warps that are not eligible are passed over.
#include "gpu/sm/warp_scheduler.hpp"

namespace manyscale::gpu {
namespace {

class LooseRoundRobin final : public WarpScheduler {
 public:
  bool round_robin() const override { return true; }
};

const Registered<LooseRoundRobin> registered{"lrr", "The next eligible warp in turn."};

}  // namespace
}  // namespace manyscale::gpu
