// SPDX-License-Identifier: Apache-2.0
// Managed ranges: which addresses are managed memory. Changed between runs only, so that SMs can read it at
// any time.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace manyscale::gpu {

inline constexpr std::uint64_t kPageBytes = 4096;
inline constexpr std::uint64_t kChunkBytes = 64 * 1024;  // a basic block: the granularity of prefetching
inline constexpr std::uint64_t kBlockBytes = 2 * 1024 * 1024;  // a large page: one tree
inline constexpr std::uint32_t kPagesPerChunk = kChunkBytes / kPageBytes;
inline constexpr std::uint32_t kPagesPerBlock = kBlockBytes / kPageBytes;
inline constexpr std::uint32_t kChunksPerBlock = kBlockBytes / kChunkBytes;

// Numbers of managed pages, chunks of 64 KiB and blocks of 2 MiB, dense from zero however far apart the
// addresses are: page / 16 is its chunk, page / 512 its block.
using PageIndex = std::uint32_t;
using ChunkIndex = std::uint32_t;
using BlockIndex = std::uint32_t;
inline constexpr PageIndex kNoPage = ~PageIndex{0};
inline constexpr std::uint32_t kNone = ~std::uint32_t{0};

// Bytes that an allocation takes: whole blocks, and a last one of 64 KiB x 2^i.
std::uint64_t managed_bytes(std::uint64_t bytes);

class ManagedRanges {
 public:
  struct Allocation {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;    // asked for
    std::uint64_t rounded = 0;  // managed_bytes of them
    std::string label;
  };

  // Whether an address is managed.
  bool contains(std::uint64_t address) const {
    const std::uint64_t number = address / kBlockBytes - first_;
    return number < blocks_.size() && address / kPageBytes % kPagesPerBlock < blocks_[number].pages;
  }
  // The dense number of the page around an address; kNoPage where nothing is managed.
  PageIndex page_of(std::uint64_t address) const {
    const std::uint64_t number = address / kBlockBytes - first_;
    if (number >= blocks_.size()) return kNoPage;
    const auto within = static_cast<std::uint32_t>(address / kPageBytes % kPagesPerBlock);
    return within < blocks_[number].pages ? blocks_[number].index * kPagesPerBlock + within : kNoPage;
  }
  std::uint64_t address_of(PageIndex page) const {
    return block_addresses_[page / kPagesPerBlock] + page % kPagesPerBlock * kPageBytes;
  }
  // Managed pages of a block: 512, fewer in the last of an allocation, 0 in one that was freed.
  std::uint32_t pages_of(BlockIndex block) const { return block_pages_[block]; }
  // Blocks that were ever allocated; the numbers of freed ones are reused.
  BlockIndex blocks() const { return static_cast<BlockIndex>(block_addresses_.size()); }

  // Adds an allocation; its address must be a multiple of 2 MiB. Throws std::invalid_argument.
  void add(std::uint64_t address, std::uint64_t bytes, std::string label);
  // Removes the allocation that begins there; false if none does.
  bool remove(std::uint64_t address);
  // The allocation around an address; null if there is none.
  const Allocation* find(std::uint64_t address) const;
  const std::map<std::uint64_t, Allocation>& allocations() const { return allocations_; }

 private:
  struct Block {
    BlockIndex index = 0;
    std::uint32_t pages = 0;
  };

  std::uint64_t first_ = 0;    // address / 2 MiB of blocks_[0]
  std::vector<Block> blocks_;  // by address
  std::vector<std::uint64_t> block_addresses_;
  std::vector<std::uint32_t> block_pages_;
  std::vector<BlockIndex> free_;
  std::map<std::uint64_t, Allocation> allocations_;
};

}  // namespace manyscale::gpu
