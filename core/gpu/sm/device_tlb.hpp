// SPDX-License-Identifier: Apache-2.0
// The TLBs of device memory that is not managed, as an SM sees them: what is not in L1 needs a translation on
// its way to the L2 cache. One that the SM's L1 TLB lacks comes from the L2 TLB, which reaches as far as most
// cards have memory. The L2 TLB is warm until it is emptied; then the first access of an SM to a region waits
// for a page walk. Leaves out: walks that other SMs began before, and a limit of outstanding misses.
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
  DeviceTlb(const SmDeviceTlbSpec& spec, Time period)
      : page_shift_(std::countr_zero(static_cast<std::uint64_t>(spec.page))),
        region_shift_(std::countr_zero(static_cast<std::uint64_t>(spec.region))),
        miss_latency_(spec.miss_latency),
        walk_latency_((spec.walk_latency + period - 1) / period),
        pages_(static_cast<std::size_t>(spec.entries), kNone) {}

  // Cycles from `now` that the translation of an address takes longer than a hit; its page becomes the one
  // used last.
  Cycle look_up(std::uint64_t address, Cycle now) {
    const std::uint64_t page = address >> page_shift_;
    if (pages_.front() == page && walked_ <= now) [[likely]]
      return 0;
    const auto found = std::find(pages_.begin(), pages_.end(), page);
    const bool hit = found != pages_.end();
    const auto last = hit ? found : pages_.end() - 1;
    std::move_backward(pages_.begin(), last, last + 1);
    pages_.front() = page;
    const Cycle translated = walk(std::min(address, kLocalMemory) >> region_shift_, now);
    return translated > now ? miss_latency_ + translated - now : hit ? 0 : miss_latency_;
  }
  // The same for the constants of a launch, which lie apart from other memory.
  Cycle look_up_constants(Cycle now) { return walk(kNone, now) - now; }
  // Forgets all translations, those of the L2 TLB too.
  void empty() {
    std::fill(pages_.begin(), pages_.end(), kNone);
    regions_.clear();
    warm_ = false;
  }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  static constexpr std::uint64_t kLocalMemory = std::uint64_t{1} << 52;  // and beyond: one region

  struct Region {
    std::uint64_t number;
    Cycle walked;  // when the L2 TLB has it
  };

  // When the L2 TLB has an entry for a region, which it asks for now if it lacks it.
  Cycle walk(std::uint64_t region, Cycle now) {
    if (warm_) return now;
    const auto found = std::ranges::find(regions_, region, &Region::number);
    if (found != regions_.end()) return std::max(found->walked, now);
    walked_ = std::max(walked_, now + walk_latency_);
    regions_.push_back({region, now + walk_latency_});
    return now + walk_latency_;
  }

  int page_shift_;
  int region_shift_;
  Cycle miss_latency_;
  Cycle walk_latency_;
  std::vector<std::uint64_t> pages_;  // the one used last first
  std::vector<Region> regions_;
  bool warm_ = true;  // the L2 TLB has all that is used, as after earlier launches
  Cycle walked_ = 0;  // when all walks have ended
};

}  // namespace manyscale::gpu
