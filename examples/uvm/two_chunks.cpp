// SPDX-License-Identifier: Apache-2.0
// TwoChunks: prefetches the chunk of 64 KiB around each fault and the chunk that follows it.
#include "gpu/uvm/prefetcher.hpp"

namespace manyscale::gpu {

namespace {

class TwoChunks final : public Prefetcher {
 public:
  void choose(const Residency& residency, std::span<const PageIndex> faults, Random&,
              std::vector<PageIndex>& pages) override {
    for (const PageIndex fault : faults) {
      const PageIndex first = fault / kPagesPerChunk * kPagesPerChunk;
      for (PageIndex page = first; page < first + 2 * kPagesPerChunk && page < residency.size(); ++page)
        pages.push_back(page);
    }
  }
};

const Registered<TwoChunks> registered{"two_chunks", "Prefetches two chunks of 64 KiB."};

}  // namespace

}  // namespace manyscale::gpu
