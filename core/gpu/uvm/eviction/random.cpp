// SPDX-License-Identifier: Apache-2.0
#include "gpu/uvm/eviction/page_order.hpp"

namespace manyscale::gpu {

namespace {

// Evicts a random page of 4 KiB. After many draws of pages that cannot be evicted, the least recently used
// one is evicted.
class RandomPage final : public PageOrder {
 public:
  using PageOrder::PageOrder;

  void grow(PageIndex pages) override {
    PageOrder::grow(pages);
    position_.resize(pages, kNone);
  }
  void arrived(PageIndex page) override {
    PageOrder::arrived(page);
    if (position_[page] != kNone) return;
    position_[page] = static_cast<std::uint32_t>(resident_.size());
    resident_.push_back(page);
  }
  void left(PageIndex page) override {
    PageOrder::left(page);
    const std::uint32_t hole = position_[page];
    if (hole == kNone) return;
    resident_[hole] = resident_.back();
    position_[resident_[hole]] = hole;
    resident_.pop_back();
    position_[page] = kNone;
  }
  void choose(const Residency& residency, bool spare_preferred, Random& random,
              std::vector<PageIndex>& victims) override {
    for (int i = 0; i < kDraws && !resident_.empty(); ++i) {
      const PageIndex page = resident_[random.below(resident_.size())];
      if (order_.reserved(page) || !residency.can_leave(page, spare_preferred)) continue;
      victims.push_back(page);
      return;
    }
    const PageIndex page = oldest(residency, spare_preferred);
    if (page != kNone) victims.push_back(page);
  }

 private:
  static constexpr int kDraws = 32;
  std::vector<PageIndex> resident_;
  std::vector<std::uint32_t> position_;  // among them, by page
};

const Registered<RandomPage> registered{"random", "Evicts a random page of 4 KiB."};

}  // namespace

}  // namespace manyscale::gpu
