// SPDX-License-Identifier: Apache-2.0
// The base of policies that evict single pages.
#pragma once
#include "gpu/uvm/eviction.hpp"
#include "gpu/uvm/recency_order.hpp"

namespace manyscale::gpu {

class PageOrder : public EvictionPolicy {
 public:
  explicit PageOrder(double reserved_share) : order_(reserved_share) {}

  void grow(PageIndex pages) override { order_.grow(pages); }
  void arrived(PageIndex page) override { order_.use(page); }
  void used(PageIndex page, std::uint32_t) override { order_.use(page); }
  void left(PageIndex page) override { order_.remove(page); }

 protected:
  // The least recently used page that can be evicted, reserved ones only if there is no other.
  PageIndex oldest(const Residency& residency, bool spare_preferred) const {
    const auto from = [&](PageIndex first) {
      for (PageIndex page = first; page != kNone; page = order_.newer(page))
        if (residency.can_leave(page, spare_preferred)) return page;
      return kNone;
    };
    const PageIndex found = from(order_.oldest_unreserved());
    return found != kNone ? found : from(order_.oldest());
  }

  RecencyOrder order_;
};

}  // namespace manyscale::gpu
