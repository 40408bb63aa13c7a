// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "gpu/uvm/prefetcher.hpp"

namespace manyscale::gpu {

namespace {

// Each block of 2 MiB is a binary tree over its chunks of 64 KiB. For each fault it prefetches the chunk, or
// the largest subtree around it of which more than half is resident or in chunks with faults.
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
    std::array<bool, kChunksPerBlock> faulted{}, prefetched{};
    for (const PageIndex fault : faults) faulted[fault / kPagesPerChunk - first_chunk] = true;
    std::array<std::uint32_t, kChunksPerBlock>
        there{};  // pages of each subtree, of one width after the other
    for (std::uint32_t i = 0; i < chunks; ++i)
      there[i] = faulted[i] ? kPagesPerChunk : residency.valid_in(first_chunk + i);
    prefetched = faulted;
    for (std::uint32_t width = 2; width <= chunks; width *= 2) {
      for (std::uint32_t node = 0; node < chunks; node += width) {
        there[node] += there[node + width / 2];
        if (100 * there[node] <= kThreshold * width * kPagesPerChunk) continue;
        bool any = false;
        for (std::uint32_t i = node; i < node + width; ++i) any = any || faulted[i];
        for (std::uint32_t i = node; any && i < node + width; ++i) prefetched[i] = true;
      }
    }
    for (std::uint32_t i = 0; i < chunks; ++i)
      if (prefetched[i]) add_chunk(first_chunk + i, pages);
  }

  static constexpr std::uint32_t kThreshold = 51;  // percent; NVIDIA, uvm_perf_prefetch.c
};

const Registered<TreePrefetcher> registered{
    "tree",
    "Prefetches the largest subtree of the block of 2 MiB that is more than half full: NVIDIA's driver."};

}  // namespace

}  // namespace manyscale::gpu
