// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "gpu/uvm/eviction/chunk_order.hpp"

namespace manyscale::gpu {

namespace {

// Evicts a chunk of 64 KiB; then, from the leaves of its block's tree up, the rest of each subtree of which
// less than half remains: the inverse of the tree prefetcher.
class Tree final : public ChunkOrder {
 public:
  using ChunkOrder::ChunkOrder;
  void choose(const Residency& residency, bool spare_preferred, Random&,
              std::vector<PageIndex>& victims) override {
    const ChunkIndex chosen = oldest(residency, spare_preferred);
    if (chosen == kNone) return;
    const BlockIndex block = chosen / kChunksPerBlock;
    const ChunkIndex first = block * kChunksPerBlock;
    const std::uint32_t chunks = residency.chunks_of(block);
    std::array<std::uint32_t, kChunksPerBlock> valid{};
    std::array<bool, kChunksPerBlock> leaves{};
    for (std::uint32_t i = 0; i < chunks; ++i) valid[i] = residency.valid_in(first + i);
    const auto take = [&](std::uint32_t chunk) {
      if (valid[chunk] != 0) leaves[chunk] = true;
      valid[chunk] = 0;
    };
    take(chosen - first);
    for (std::uint32_t width = 2; width <= chunks; width *= 2) {
      for (std::uint32_t node = 0; node < chunks; node += width) {
        std::uint32_t there = 0;
        for (std::uint32_t i = node; i < node + width; ++i) there += valid[i];
        if (there != 0 && there * 2 < width * kPagesPerChunk)
          for (std::uint32_t i = node; i < node + width; ++i) take(i);
      }
    }
    for (std::uint32_t i = 0; i < chunks; ++i)
      if (leaves[i])
        add_leaving(residency, (first + i) * kPagesPerChunk, kPagesPerChunk, spare_preferred, victims);
  }
};

const Registered<Tree> registered{
    "tree", "Evicts a chunk of 64 KiB and every subtree of its block that it leaves less than half full."};

}  // namespace

}  // namespace manyscale::gpu
