// SPDX-License-Identifier: Apache-2.0
// Frames of the device's memory: how much of it managed pages take, in units of 4 KiB.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpu/uvm/root_chunks.hpp"

namespace manyscale::gpu {

// Counts frames by page; by block, whose first page takes all frames and whose last page frees them; or by
// root chunk, which small blocks share.
class Frames {
 public:
  enum class Unit : std::uint8_t { page, block, root };

  Frames(std::int64_t capacity, Unit unit) : capacity_(capacity), unit_(unit) {}

  void grow(BlockIndex blocks) {
    blocks_.resize(blocks);
    roots_.grow(blocks);
  }
  // Sets the number of pages of a block.
  void set_size(BlockIndex block, std::uint32_t pages) {
    blocks_[block].size = pages;
    roots_.set_size(block, pages);
  }
  // Frames that are not for managed pages.
  void reserve(std::int64_t frames) { reserved_ = frames; }
  std::int64_t reserved() const { return reserved_; }
  std::int64_t usable() const {
    const std::int64_t left = capacity_ - reserved_;
    return by_root() ? std::max<std::int64_t>(0, left) / kPagesPerBlock * kPagesPerBlock : left;
  }
  std::int64_t used() const { return by_root() ? frames_in(roots_.used()) : used_; }
  std::int64_t free() const { return usable() - used(); }
  // Used frames that will be free when all leaving pages have left.
  std::int64_t leaving() const { return by_root() ? frames_in(roots_.leaving()) : leaving_; }

  // Further frames that pages of one block need.
  std::int64_t wanted(PageIndex first, std::uint32_t count) const {
    if (by_root()) return frames_in(roots_.wanted(first, count));
    if (unit_ == Unit::page) return count;
    const Block& block = blocks_[first / kPagesPerBlock];
    return block.pages == 0 ? block.size : 0;
  }
  // How many of these pages, from the first on, fit into free frames.
  std::uint32_t fitting(PageIndex first, std::uint32_t count) const {
    const std::int64_t left = std::max<std::int64_t>(0, free());
    if (unit_ != Unit::page) return wanted(first, count) <= left ? count : 0;
    return static_cast<std::uint32_t>(std::min<std::int64_t>(count, left));
  }

  // Pages of a block take frames; they have migrated; a page begins to leave; a leaving page has left; a page
  // is freed at once.
  void take(PageIndex first, std::uint32_t count) {
    if (by_root()) return roots_.take(first, count);
    change(first, count, 0);
  }
  void arrive(PageIndex first, std::uint32_t count) {
    if (by_root()) roots_.arrive(first, count);
  }
  void will_leave(PageIndex page) {
    if (by_root()) return roots_.will_leave(page);
    change(page, 0, 1);
  }
  void leave(PageIndex page) {
    if (by_root()) return roots_.leave(page);
    change(page, -1, -1);
  }
  void give_back(PageIndex page) {
    if (by_root()) return roots_.give_back(page);
    change(page, -1, 0);
  }

  bool by_root() const { return unit_ == Unit::root; }
  RootChunks& roots() { return roots_; }

 private:
  struct Block {
    std::uint32_t size = kPagesPerBlock;
    std::int64_t pages = 0;    // that have frames
    std::int64_t leaving = 0;  // of these
  };

  static std::int64_t frames_in(std::uint32_t roots) { return std::int64_t{roots} * kPagesPerBlock; }
  std::int64_t used_of(const Block& block) const {
    return unit_ == Unit::page ? block.pages : block.pages != 0 ? block.size : 0;
  }
  std::int64_t leaving_of(const Block& block) const {
    if (unit_ == Unit::page) return block.leaving;
    return block.pages != 0 && block.leaving == block.pages ? block.size : 0;
  }
  void change(PageIndex page, std::int64_t pages, std::int64_t leaving) {
    Block& block = blocks_[page / kPagesPerBlock];
    used_ -= used_of(block);
    leaving_ -= leaving_of(block);
    block.pages += pages;
    block.leaving += leaving;
    used_ += used_of(block);
    leaving_ += leaving_of(block);
  }

  std::int64_t capacity_;
  Unit unit_;
  std::int64_t reserved_ = 0;
  std::int64_t used_ = 0;
  std::int64_t leaving_ = 0;
  std::vector<Block> blocks_;
  RootChunks roots_;
};

}  // namespace manyscale::gpu
