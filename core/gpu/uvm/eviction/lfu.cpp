// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "gpu/uvm/eviction.hpp"

namespace manyscale::gpu {

namespace {

// Evicts all pages of the block of 2 MiB with the fewest accesses; of equals the one that migrated first.
// Accesses are counted from a block's allocation on, also across evictions.
class LfuBlock final : public EvictionPolicy {
 public:
  explicit LfuBlock(double reserved_share) : reserved_share_(reserved_share) {}

  void grow(PageIndex pages) override { blocks_.resize(pages / kPagesPerBlock); }
  void arrived(PageIndex page) override {
    Block& block = blocks_[page / kPagesPerBlock];
    if (block.pages++ != 0) return;
    block.migrated = ++clock_;
    resident_.push_back(page / kPagesPerBlock);
  }
  void used(PageIndex page, std::uint32_t accesses) override {
    blocks_[page / kPagesPerBlock].accesses += accesses;
  }
  void left(PageIndex page) override {
    if (--blocks_[page / kPagesPerBlock].pages == 0) std::erase(resident_, page / kPagesPerBlock);
  }
  void choose(const Residency& residency, bool spare_preferred, Random&,
              std::vector<PageIndex>& victims) override {
    std::ranges::sort(resident_, {}, [&](BlockIndex block) {
      return std::tuple{blocks_[block].accesses, blocks_[block].migrated};
    });
    const auto reserved = static_cast<std::size_t>(static_cast<double>(resident_.size()) * reserved_share_);
    for (std::size_t i = 0; i < resident_.size(); ++i) {
      const BlockIndex block = resident_[(i + reserved) % resident_.size()];
      if (add_leaving(residency, block * kPagesPerBlock, kPagesPerBlock, spare_preferred, victims)) return;
    }
  }

 private:
  struct Block {
    std::uint64_t accesses = 0;
    std::uint64_t migrated = 0;
    std::uint32_t pages = 0;  // on the device
  };

  double reserved_share_;
  std::uint64_t clock_ = 0;
  std::vector<Block> blocks_;
  std::vector<BlockIndex> resident_;
};

const Registered<LfuBlock> registered{"lfu",
                                      "Evicts all pages of the least frequently accessed block of 2 MiB."};

}  // namespace

}  // namespace manyscale::gpu
