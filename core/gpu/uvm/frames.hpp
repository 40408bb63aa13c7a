// SPDX-License-Identifier: Apache-2.0
// How much of the device's memory pages take, in frames of 4 KiB.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpu/uvm/managed_ranges.hpp"

namespace manyscale::gpu {

// Counts frames by page; or by block: then the first page of a block takes all of it, and the last gives all
// of it back.
class Frames {
 public:
  Frames(std::int64_t capacity, bool by_block) : capacity_(capacity), by_block_(by_block) {}

  void grow(BlockIndex blocks) { blocks_.resize(blocks); }
  // A block has so many pages.
  void set_size(BlockIndex block, std::uint32_t pages) { blocks_[block].size = pages; }
  // Frames that are not for managed pages.
  void reserve(std::int64_t frames) { reserved_ = frames; }
  std::int64_t reserved() const { return reserved_; }
  std::int64_t usable() const { return capacity_ - reserved_; }
  std::int64_t used() const { return used_; }
  std::int64_t free() const { return usable() - used_; }
  // Of the used, those that will be free when all pages that are leaving have left.
  std::int64_t leaving() const { return leaving_; }

  // Frames that so many more pages of a block take.
  std::int64_t wanted(BlockIndex block, std::uint32_t pages) const {
    if (!by_block_) return pages;
    return blocks_[block].pages == 0 ? blocks_[block].size : 0;
  }
  // How many of so many pages find frames.
  std::uint32_t fitting(BlockIndex block, std::uint32_t pages) const {
    const std::int64_t left = std::max<std::int64_t>(0, free());
    if (by_block_) return wanted(block, pages) <= left ? pages : 0;
    return static_cast<std::uint32_t>(std::min<std::int64_t>(pages, left));
  }

  // Pages of a block get frames; one is going to leave; one that was has left; one is gone at once.
  void take(BlockIndex block, std::uint32_t pages) { change(block, pages, 0); }
  void will_leave(BlockIndex block) { change(block, 0, 1); }
  void leave(BlockIndex block) { change(block, -1, -1); }
  void give_back(BlockIndex block) { change(block, -1, 0); }

 private:
  struct Block {
    std::uint32_t size = kPagesPerBlock;
    std::int64_t pages = 0;    // that have frames
    std::int64_t leaving = 0;  // of these
  };

  std::int64_t used_of(const Block& block) const {
    return !by_block_ ? block.pages : block.pages != 0 ? block.size : 0;
  }
  std::int64_t leaving_of(const Block& block) const {
    return !by_block_ ? block.leaving : block.pages != 0 && block.leaving == block.pages ? block.size : 0;
  }
  void change(BlockIndex index, std::int64_t pages, std::int64_t leaving) {
    Block& block = blocks_[index];
    used_ -= used_of(block);
    leaving_ -= leaving_of(block);
    block.pages += pages;
    block.leaving += leaving;
    used_ += used_of(block);
    leaving_ += leaving_of(block);
  }

  std::int64_t capacity_;
  bool by_block_;
  std::int64_t reserved_ = 0;
  std::int64_t used_ = 0;
  std::int64_t leaving_ = 0;
  std::vector<Block> blocks_;
};

}  // namespace manyscale::gpu
