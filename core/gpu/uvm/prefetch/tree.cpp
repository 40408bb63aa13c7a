// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "gpu/uvm/prefetcher.hpp"

namespace manyscale::gpu {

namespace {

// Each block of 2 MiB is a binary tree over its chunks of 64 KiB. The chunks of the pages that faulted come;
// then, from the leaves up, wherever more than half of a subtree is there or on its way, the rest of it too.
class TreePrefetcher final : public Prefetcher {
 public:
  void choose(const Residency& residency, std::span<const PageIndex> faults, Random&,
              std::vector<PageIndex>& pages) override {
    for (std::size_t first = 0; first < faults.size();) {
      const BlockIndex block = faults[first] / kPagesPerBlock;
      std::size_t last = first;
      while (last < faults.size() && faults[last] / kPagesPerBlock == block) ++last;
      choose_in_block(residency, block, faults.subspan(first, last - first), pages);
      first = last;
    }
  }

 private:
  static void choose_in_block(const Residency& residency, BlockIndex block, std::span<const PageIndex> faults,
                              std::vector<PageIndex>& pages) {
    const std::uint32_t chunks = residency.chunks_of(block);
    const ChunkIndex first_chunk = block * kChunksPerBlock;
    std::array<std::uint32_t, kChunksPerBlock> valid{};  // pages of each chunk that will be there
    for (std::uint32_t i = 0; i < chunks; ++i) valid[i] = residency.valid_in(first_chunk + i);
    std::array<bool, kChunksPerBlock> comes{};
    const auto take = [&](std::uint32_t chunk) {
      if (valid[chunk] == kPagesPerChunk) return;
      valid[chunk] = kPagesPerChunk;
      comes[chunk] = true;
    };
    for (const PageIndex fault : faults) {
      comes[fault / kPagesPerChunk - first_chunk] = true;
      valid[fault / kPagesPerChunk - first_chunk] = kPagesPerChunk;
    }
    for (std::uint32_t width = 2; width <= chunks; width *= 2) {
      for (std::uint32_t node = 0; node < chunks; node += width) {
        std::uint32_t there = 0;
        for (std::uint32_t i = node; i < node + width; ++i) there += valid[i];
        if (there * 2 > width * kPagesPerChunk)
          for (std::uint32_t i = node; i < node + width; ++i) take(i);
      }
    }
    for (std::uint32_t i = 0; i < chunks; ++i)
      if (comes[i]) add_chunk(first_chunk + i, pages);
  }
};

const RegisteredPrefetcher<TreePrefetcher> registered{"tree"};

}  // namespace

}  // namespace manyscale::gpu
