// SPDX-License-Identifier: Apache-2.0
// The device's memory as NVIDIA's driver hands it out: in root chunks of 2 MiB.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpu/uvm/managed_ranges.hpp"
#include "gpu/uvm/recency_order.hpp"

namespace manyscale::gpu {

// A block of 2 MiB has a root chunk of its own from its first page on. Smaller blocks, the rests of
// allocations, take 64 KiB at a time of root chunks that they share with each other. A root chunk is as old
// as the last pages that came to it; one that is shared, as the last 64 KiB that were taken of it, however
// often pages have come to those since.
class RootChunks {
 public:
  using Root = std::uint32_t;

  void grow(BlockIndex blocks) { chunks_.resize(std::size_t{blocks} * kChunksPerBlock); }
  // A block has so many pages.
  void set_size(BlockIndex block, std::uint32_t pages) {
    for (std::uint32_t i = 0; i < kChunksPerBlock; ++i)
      chunks_[block * kChunksPerBlock + i].shares = pages < kPagesPerBlock;
  }
  std::uint32_t used() const { return used_; }
  // Of the used, those that will be free when all pages that are leaving have left.
  std::uint32_t leaving() const { return leaving_; }

  // Root chunks that it takes for pages to come, besides those that are in use; all of one block.
  std::uint32_t wanted(PageIndex first, std::uint32_t count) const {
    if (!chunks_[first / kPagesPerChunk].shares) return chunks_[first / kPagesPerChunk].root == kNone;
    std::uint32_t missing = 0;
    for (ChunkIndex chunk = first / kPagesPerChunk; chunk <= (first + count - 1) / kPagesPerChunk; ++chunk)
      missing += chunks_[chunk].root == kNone;
    return missing <= free_places_ ? 0 : (missing - free_places_ + kChunksPerBlock - 1) / kChunksPerBlock;
  }

  // Pages get memory, which must be there, and are on their way.
  void take(PageIndex first, std::uint32_t count) {
    for (PageIndex page = first; page < first + count; ++page) {
      const ChunkIndex index = page / kPagesPerChunk;
      if (chunks_[index].root == kNone) place(index);
      ++chunks_[index].pages;
      Contents& root = roots_[chunks_[index].root];
      change(root, 1, 0);
      ++root.arriving;
    }
    if (!chunks_[first / kPagesPerChunk].shares) order_.use(chunks_[first / kPagesPerChunk].root);
  }
  // They have come.
  void arrive(PageIndex first, std::uint32_t count) {
    for (PageIndex page = first; page < first + count; ++page) --of(page).arriving;
  }
  // A page is going to leave; one that was has left; one is gone at once.
  void will_leave(PageIndex page) { change(of(page), 0, 1); }
  void leave(PageIndex page) { remove(page, -1); }
  void give_back(PageIndex page) { remove(page, 0); }

  // Nothing more is to come to a root chunk until it is empty.
  void begin_eviction(Root root) {
    Contents& contents = roots_[root];
    if (contents.shared && !contents.evicted) free_places_ -= places_in(contents);
    contents.evicted = true;
  }

  // Root chunks from the oldest on; kNone after the last.
  Root oldest() const { return order_.oldest(); }
  Root newer(Root root) const { return order_.newer(root); }
  // Whether pages are on their way to it.
  bool busy(Root root) const { return roots_[root].arriving != 0; }
  // Its chunks of 64 KiB in the order of their numbers, one after the other.
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
    bool evicted = false;  // its free places are not given out
  };

  static std::uint32_t places_in(const Contents& root) {
    return kChunksPerBlock - static_cast<std::uint32_t>(root.chunks.size());
  }
  Contents& of(PageIndex page) { return roots_[chunks_[page / kPagesPerChunk].root]; }

  // Finds memory for a chunk: the oldest shared root chunk with room, or a new one.
  void place(ChunkIndex chunk) {
    const bool shares = chunks_[chunk].shares;
    Root root = kNone;
    for (Root other = order_.oldest(); shares && free_places_ != 0 && other != kNone && root == kNone;
         other = order_.newer(other))
      if (roots_[other].shared && !roots_[other].evicted && places_in(roots_[other]) != 0) root = other;
    if (root == kNone) {
      root = new_root();
      roots_[root].shared = shares;
      if (shares) free_places_ += kChunksPerBlock;
    }
    if (shares) {
      add(root, chunk);
      --free_places_;
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
      if (root.shared && !root.evicted) free_places_ -= places_in(root);
      root = {};
      order_.remove(number);
      free_.push_back(number);
      --used_;
    } else if (root.shared && chunks_[index].pages == 0) {
      std::erase(root.chunks, index);
      chunks_[index].root = kNone;
      free_places_ += !root.evicted;
    }
  }

  std::vector<Chunk> chunks_;
  std::vector<Contents> roots_;
  std::vector<Root> free_;
  RecencyOrder order_;
  std::uint32_t free_places_ = 0;  // of 64 KiB, in shared root chunks
  std::uint32_t used_ = 0, leaving_ = 0;
};

}  // namespace manyscale::gpu
