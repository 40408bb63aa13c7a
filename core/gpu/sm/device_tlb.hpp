// SPDX-License-Identifier: Apache-2.0
// The L1 TLB of an SM for device memory that is not managed: what is not in L1 needs a translation on its way
// to the L2 cache, and one that is missing comes from the L2 TLB. Leaves out: misses of the L2 TLB, which
// reaches as far as most cards have memory, and a limit of outstanding misses.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "engine/clock.hpp"
#include "gpu/sm/sm_spec.hpp"

namespace manyscale::gpu {

class DeviceTlb {
 public:
  explicit DeviceTlb(const SmDeviceTlbSpec& spec)
      : page_shift_(std::countr_zero(static_cast<std::uint64_t>(spec.page))),
        miss_latency_(spec.miss_latency),
        pages_(static_cast<std::size_t>(spec.entries), kNone) {}

  // Cycles that the translation of an address takes longer than a hit; its page becomes the one used last.
  Cycle look_up(std::uint64_t address) {
    const std::uint64_t page = address >> page_shift_;
    if (pages_.front() == page) [[likely]]
      return 0;
    const auto found = std::find(pages_.begin(), pages_.end(), page);
    const bool hit = found != pages_.end();
    const auto last = hit ? found : pages_.end() - 1;
    std::move_backward(pages_.begin(), last, last + 1);
    pages_.front() = page;
    return hit ? 0 : miss_latency_;
  }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  int page_shift_;
  Cycle miss_latency_;
  std::vector<std::uint64_t> pages_;  // the one used last first
};

}  // namespace manyscale::gpu
