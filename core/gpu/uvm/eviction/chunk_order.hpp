// SPDX-License-Identifier: Apache-2.0
// The base of policies that evict chunks of 64 KiB.
#pragma once
#include "gpu/uvm/eviction.hpp"
#include "gpu/uvm/recency_order.hpp"

namespace manyscale::gpu {

// Chooses the least recently used chunk of the least recently used block of 2 MiB.
class ChunkOrder : public EvictionPolicy {
 public:
  explicit ChunkOrder(double reserved_share) : reserved_share_(reserved_share) {}

  void grow(PageIndex pages) override {
    order_.grow(pages / kPagesPerBlock);
    resident_.resize(pages / kPagesPerBlock);
    last_use_.resize(pages / kPagesPerChunk);
  }
  void arrived(PageIndex page) override {
    ++resident_[page / kPagesPerBlock];
    ++all_resident_;
    update(page);
  }
  void used(PageIndex page, std::uint32_t) override { update(page); }
  void left(PageIndex page) override {
    --all_resident_;
    if (--resident_[page / kPagesPerBlock] == 0) order_.remove(page / kPagesPerBlock);
  }

 protected:
  // The chunk to evict next; kNone if there is none. Reserved pages are evicted only if there are no others.
  ChunkIndex oldest(const Residency& residency, bool spare_preferred) const {
    auto reserved = static_cast<std::uint64_t>(static_cast<double>(all_resident_) * reserved_share_);
    for (const bool skip : {true, false}) {
      for (BlockIndex block = order_.oldest(); block != kNone; block = order_.newer(block)) {
        if (skip && resident_[block] <= reserved) {
          reserved -= resident_[block];
          continue;
        }
        const ChunkIndex found =
            oldest_in(residency, block, spare_preferred, skip ? static_cast<std::uint32_t>(reserved) : 0);
        reserved = 0;
        if (found != kNone) return found;
      }
    }
    return kNone;
  }

 private:
  void update(PageIndex page) {
    last_use_[page / kPagesPerChunk] = ++clock_;
    order_.use(page / kPagesPerBlock);
  }
  ChunkIndex oldest_in(const Residency& residency, BlockIndex block, bool spare_preferred,
                       std::uint32_t reserved_pages) const {
    std::uint64_t after = 0;  // chunks used before are reserved
    while (true) {
      ChunkIndex best = kNone;
      for (std::uint32_t i = 0; i < residency.chunks_of(block); ++i) {
        const ChunkIndex chunk = block * kChunksPerBlock + i;
        if (last_use_[chunk] <= after || residency.valid_in(chunk) == 0) continue;
        if ((best == kNone || last_use_[chunk] < last_use_[best]) &&
            any_can_leave(residency, chunk, spare_preferred))
          best = chunk;
      }
      if (best == kNone || residency.valid_in(best) > reserved_pages) return best;
      reserved_pages -= residency.valid_in(best);
      after = last_use_[best];
    }
  }
  static bool any_can_leave(const Residency& residency, ChunkIndex chunk, bool spare_preferred) {
    for (std::uint32_t i = 0; i < kPagesPerChunk; ++i)
      if (residency.can_leave(chunk * kPagesPerChunk + i, spare_preferred)) return true;
    return false;
  }

  double reserved_share_;
  RecencyOrder order_;                   // of blocks
  std::vector<std::uint32_t> resident_;  // pages, by block
  std::uint64_t all_resident_ = 0;
  std::uint64_t clock_ = 0;
  std::vector<std::uint64_t> last_use_;  // by chunk
};

}  // namespace manyscale::gpu
