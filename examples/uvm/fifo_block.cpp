// SPDX-License-Identifier: Apache-2.0
// FifoBlock: evicts the block of 2 MiB whose first page migrated to the device longest ago.
#include <algorithm>

#include "gpu/uvm/eviction.hpp"

namespace manyscale::gpu {

namespace {

class FifoBlock final : public EvictionPolicy {
 public:
  explicit FifoBlock(double) {}

  void grow(PageIndex pages) override { resident_.resize(pages / kPagesPerBlock); }
  void arrived(PageIndex page) override {
    if (resident_[page / kPagesPerBlock]++ == 0) order_.push_back(page / kPagesPerBlock);
  }
  void used(PageIndex, std::uint32_t) override {}
  void left(PageIndex page) override {
    if (--resident_[page / kPagesPerBlock] == 0) std::erase(order_, page / kPagesPerBlock);
  }
  void choose(const Residency& residency, bool spare_preferred, Random&,
              std::vector<PageIndex>& victims) override {
    for (const BlockIndex block : order_)
      if (add_leaving(residency, block * kPagesPerBlock, kPagesPerBlock, spare_preferred, victims)) return;
  }

 private:
  std::vector<std::uint32_t> resident_;  // pages, by block
  std::vector<BlockIndex> order_;        // oldest first
};

const Registered<FifoBlock> registered{"fifo_block", "Evicts the oldest block of 2 MiB."};

}  // namespace

}  // namespace manyscale::gpu
