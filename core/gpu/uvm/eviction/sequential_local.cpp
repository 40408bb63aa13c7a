// SPDX-License-Identifier: Apache-2.0
#include "gpu/uvm/eviction/chunk_order.hpp"

namespace manyscale::gpu {

namespace {

// Evicts a chunk of 64 KiB.
class SequentialLocal final : public ChunkOrder {
 public:
  using ChunkOrder::ChunkOrder;
  void choose(const Residency& residency, bool spare_preferred, Random&,
              std::vector<PageIndex>& victims) override {
    const ChunkIndex chunk = oldest(residency, spare_preferred);
    if (chunk != kNone)
      add_leaving(residency, chunk * kPagesPerChunk, kPagesPerChunk, spare_preferred, victims);
  }
};

const Registered<SequentialLocal> registered{"sequential_local",
                                             "Evicts the least recently used chunk of 64 KiB."};

}  // namespace

}  // namespace manyscale::gpu
