// SPDX-License-Identifier: Apache-2.0
#include "gpu/uvm/prefetcher.hpp"

namespace manyscale::gpu {

namespace {

// Prefetches the whole chunk of 64 KiB around each fault.
class SequentialLocalPrefetcher final : public Prefetcher {
 public:
  void choose(const Residency&, std::span<const PageIndex> faults, Random&,
              std::vector<PageIndex>& pages) override {
    ChunkIndex last = kNone;
    for (const PageIndex fault : faults) {
      const ChunkIndex chunk = fault / kPagesPerChunk;
      if (chunk != last) add_chunk(chunk, pages);
      last = chunk;
    }
  }
};

const Registered<SequentialLocalPrefetcher> registered{"sequential_local",
                                                       "Prefetches the chunk of 64 KiB around each fault."};

}  // namespace

}  // namespace manyscale::gpu
