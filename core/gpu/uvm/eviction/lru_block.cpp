// SPDX-License-Identifier: Apache-2.0
#include "gpu/uvm/eviction.hpp"
#include "gpu/uvm/recency_order.hpp"

namespace manyscale::gpu {

namespace {

// Evicts all pages of the least recently used block of 2 MiB.
class LruBlock final : public EvictionPolicy {
 public:
  explicit LruBlock(double reserved_share) : order_(reserved_share) {}

  void grow(PageIndex pages) override {
    order_.grow(pages / kPagesPerBlock);
    resident_.resize(pages / kPagesPerBlock);
  }
  void arrived(PageIndex page) override {
    ++resident_[page / kPagesPerBlock];
    order_.use(page / kPagesPerBlock);
  }
  void used(PageIndex page, std::uint32_t) override { order_.use(page / kPagesPerBlock); }
  void left(PageIndex page) override {
    if (--resident_[page / kPagesPerBlock] == 0) order_.remove(page / kPagesPerBlock);
  }
  void choose(const Residency& residency, bool spare_preferred, Random&,
              std::vector<PageIndex>& victims) override {
    for (const BlockIndex first : {order_.oldest_unreserved(), order_.oldest()})
      for (BlockIndex block = first; block != kNone; block = order_.newer(block))
        if (add_leaving(residency, block * kPagesPerBlock, kPagesPerBlock, spare_preferred, victims)) return;
  }

 private:
  RecencyOrder order_;
  std::vector<std::uint32_t> resident_;  // pages, by block
};

const Registered<LruBlock> registered{"lru_block",
                                      "Evicts all pages of the least recently used block of 2 MiB."};

}  // namespace

}  // namespace manyscale::gpu
