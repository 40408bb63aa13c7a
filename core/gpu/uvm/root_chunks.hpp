// SPDX-License-Identifier: Apache-2.0
// Root chunks: the device's memory as NVIDIA's driver allocates it, 2 MiB at a time (uvm_pmm_gpu.c).
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpu/uvm/managed_ranges.hpp"
#include "gpu/uvm/recency_order.hpp"

namespace manyscale::gpu {

// A block of 2 MiB has a root chunk of its own from its first page on. Smaller blocks, at the ends of
// allocations, share root chunks, 64 KiB at a time. The age of a root chunk counts from the last migration to
// it; that of a shared one, from the last time 64 KiB of it were allocated.
class RootChunks {
 public:
  using Root = std::uint32_t;

  void grow(BlockIndex blocks) { chunks_.resize(std::size_t{blocks} * kChunksPerBlock); }
  // Sets the number of pages of a block.
  void set_size(BlockIndex block, std::uint32_t pages) {
    for (std::uint32_t i = 0; i < kChunksPerBlock; ++i)
      chunks_[block * kChunksPerBlock + i].shares = pages < kPagesPerBlock;
  }
  std::uint32_t used() const { return used_; }
  // Used root chunks that will be free when all leaving pages have left.
  std::uint32_t leaving() const { return leaving_; }

  // Further root chunks that pages of one block need.
  std::uint32_t wanted(PageIndex first, std::uint32_t count) const {
    if (!chunks_[first / kPagesPerChunk].shares) return chunks_[first / kPagesPerChunk].root == kNone;
    std::uint32_t missing = 0;
    for (ChunkIndex chunk = first / kPagesPerChunk; chunk <= (first + count - 1) / kPagesPerChunk; ++chunk)
      missing += chunks_[chunk].root == kNone;
    return missing <= free_slots_ ? 0 : (missing - free_slots_ + kChunksPerBlock - 1) / kChunksPerBlock;
  }

  // Gives memory to pages that begin to migrate; it must be free.
  void take(PageIndex first, std::uint32_t count) {
    for (PageIndex page = first; page < first + count; ++page) {
      const ChunkIndex index = page / kPagesPerChunk;
      if (chunks_[index].root == kNone) allocate(index);
      ++chunks_[index].pages;
      Contents& root = roots_[chunks_[index].root];
      change(root, 1, 0);
      ++root.arriving;
    }
    if (!chunks_[first / kPagesPerChunk].shares) order_.use(chunks_[first / kPagesPerChunk].root);
  }
  // They have migrated.
  void arrive(PageIndex first, std::uint32_t count) {
    for (PageIndex page = first; page < first + count; ++page) --of(page).arriving;
  }
  // A page begins to leave; a leaving page has left; a page is freed at once.
  void will_leave(PageIndex page) { change(of(page), 0, 1); }
  void leave(PageIndex page) { remove(page, -1); }
  void give_back(PageIndex page) { remove(page, 0); }

  // A root chunk takes no further pages until it is empty.
  void begin_eviction(Root root) {
    Contents& contents = roots_[root];
    if (contents.shared && !contents.evicted) free_slots_ -= free_slots_in(contents);
    contents.evicted = true;
  }

  // Root chunks from the oldest on; kNone after the last.
  Root oldest() const { return order_.oldest(); }
  Root newer(Root root) const { return order_.newer(root); }
  // Whether pages are migrating to it.
  bool busy(Root root) const { return roots_[root].arriving != 0; }
  // Its chunks of 64 KiB in ascending order.
  template <class Take>
  void for_chunks(Root root, Take&& take) const {
    const Contents& contents = roots_[root];
    for (const ChunkIndex chunk : contents.chunks) take(chunk);
  }

 private:
  struct Chunk {
    Root root = kNone;
    std::uint32_t pages = 0;  // that have memory
    bool shares = false;      // its block is smaller than a root chunk
  };
  struct Contents {
    std::vector<ChunkIndex> chunks;  // in ascending order
    std::int64_t pages = 0;
    std::int64_t leaving = 0;   // of these
    std::int64_t arriving = 0;  // of these
    bool shared = false;
    bool evicted = false;  // its free slots are not used
  };

  static std::uint32_t free_slots_in(const Contents& root) {
    return kChunksPerBlock - static_cast<std::uint32_t>(root.chunks.size());
  }
  Contents& of(PageIndex page) { return roots_[chunks_[page / kPagesPerChunk].root]; }

  // Allocates a chunk in the oldest shared root chunk with a free slot, or in a new one.
  void allocate(ChunkIndex chunk) {
    const bool shares = chunks_[chunk].shares;
    Root root = kNone;
    for (Root other = order_.oldest(); shares && free_slots_ != 0 && other != kNone && root == kNone;
         other = order_.newer(other))
      if (roots_[other].shared && !roots_[other].evicted && free_slots_in(roots_[other]) != 0) root = other;
    if (root == kNone) {
      root = new_root();
      roots_[root].shared = shares;
      if (shares) free_slots_ += kChunksPerBlock;
    }
    if (shares) {
      add(root, chunk);
      --free_slots_;
    } else {
      const ChunkIndex first = chunk / kChunksPerBlock * kChunksPerBlock;
      for (ChunkIndex one = first; one < first + kChunksPerBlock; ++one) add(root, one);
    }
    order_.use(root);
  }
  Root new_root() {
    ++used_;
    if (free_.empty()) {
      free_.push_back(static_cast<Root>(roots_.size()));
      roots_.emplace_back();
      order_.grow(static_cast<std::uint32_t>(roots_.size()));
    }
    const Root root = free_.back();
    free_.pop_back();
    return root;
  }
  void add(Root root, ChunkIndex chunk) {
    chunks_[chunk].root = root;
    std::vector<ChunkIndex>& chunks = roots_[root].chunks;
    chunks.insert(std::ranges::lower_bound(chunks, chunk), chunk);
  }

  void change(Contents& root, std::int64_t pages, std::int64_t leaving) {
    leaving_ -= root.pages != 0 && root.leaving == root.pages;
    root.pages += pages;
    root.leaving += leaving;
    leaving_ += root.pages != 0 && root.leaving == root.pages;
  }
  void remove(PageIndex page, std::int64_t leaving) {
    const ChunkIndex index = page / kPagesPerChunk;
    const Root number = chunks_[index].root;
    Contents& root = roots_[number];
    change(root, -1, leaving);
    --chunks_[index].pages;
    if (root.pages == 0) {
      for (const ChunkIndex chunk : root.chunks) chunks_[chunk].root = kNone;
      if (root.shared && !root.evicted) free_slots_ -= free_slots_in(root);
      root = {};
      order_.remove(number);
      free_.push_back(number);
      --used_;
    } else if (root.shared && chunks_[index].pages == 0) {
      std::erase(root.chunks, index);
      chunks_[index].root = kNone;
      free_slots_ += !root.evicted;
    }
  }

  std::vector<Chunk> chunks_;
  std::vector<Contents> roots_;
  std::vector<Root> free_;
  RecencyOrder order_;
  std::uint32_t free_slots_ = 0;  // of 64 KiB, in shared root chunks
  std::uint32_t used_ = 0, leaving_ = 0;
};

}  // namespace manyscale::gpu
