// SPDX-License-Identifier: Apache-2.0
#include "gpu/uvm/eviction/page_order.hpp"

namespace manyscale::gpu {

namespace {

// Evicts the least recently used page of 4 KiB.
class LruPage final : public PageOrder {
 public:
  using PageOrder::PageOrder;
  void choose(const Residency& residency, bool spare_preferred, Random&,
              std::vector<PageIndex>& victims) override {
    const PageIndex page = oldest(residency, spare_preferred);
    if (page != kNone) victims.push_back(page);
  }
};

const Registered<LruPage> registered{"lru_page", "Evicts the least recently used page of 4 KiB."};

}  // namespace

}  // namespace manyscale::gpu
