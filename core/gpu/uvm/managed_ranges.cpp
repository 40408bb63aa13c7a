// SPDX-License-Identifier: Apache-2.0
#include "gpu/uvm/managed_ranges.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace manyscale::gpu {

std::uint64_t managed_bytes(std::uint64_t bytes) {
  const std::uint64_t rest = bytes % kBlockBytes;
  const std::uint64_t chunks = (rest + kChunkBytes - 1) / kChunkBytes;
  return bytes - rest + (chunks == 0 ? 0 : std::bit_ceil(chunks) * kChunkBytes);
}

void ManagedRanges::add(std::uint64_t address, std::uint64_t bytes, std::string label) {
  if (address % kBlockBytes != 0) throw std::invalid_argument("managed memory begins at a multiple of 2 MiB");
  if (bytes == 0 || bytes > std::uint64_t{1} << 44)
    throw std::invalid_argument("a managed allocation cannot have " + std::to_string(bytes) + " bytes");
  const std::uint64_t rounded = managed_bytes(bytes);
  for (std::uint64_t at = address; at < address + rounded; at += kBlockBytes)
    if (contains(at)) throw std::invalid_argument("this memory is managed already");

  const std::uint64_t begin = address / kBlockBytes;
  const std::uint64_t end = (address + rounded + kBlockBytes - 1) / kBlockBytes;
  if (blocks_.empty()) first_ = begin;
  if (begin < first_) {
    blocks_.insert(blocks_.begin(), first_ - begin, Block{});
    first_ = begin;
  }
  blocks_.resize(std::max<std::size_t>(blocks_.size(), end - first_));
  for (std::uint64_t number = begin; number < end; ++number) {
    if (free_.empty()) {
      free_.push_back(blocks());
      block_addresses_.push_back(0);
      block_pages_.push_back(0);
    }
    const BlockIndex index = free_.back();
    free_.pop_back();
    const std::uint64_t here = number * kBlockBytes;
    const auto pages =
        static_cast<std::uint32_t>(std::min(kBlockBytes, address + rounded - here) / kPageBytes);
    blocks_[number - first_] = {index, pages};
    block_addresses_[index] = here;
    block_pages_[index] = pages;
  }
  allocations_.emplace(address, Allocation{address, bytes, rounded, std::move(label)});
}

bool ManagedRanges::remove(std::uint64_t address) {
  const auto found = allocations_.find(address);
  if (found == allocations_.end()) return false;
  const std::uint64_t end = address + found->second.rounded;
  for (std::uint64_t at = address; at < end; at += kBlockBytes) {
    Block& block = blocks_[at / kBlockBytes - first_];
    block_pages_[block.index] = 0;
    free_.push_back(block.index);
    block = {};
  }
  std::ranges::sort(free_, std::greater{});  // the lowest number is used again first
  allocations_.erase(found);
  return true;
}

const ManagedRanges::Allocation* ManagedRanges::find(std::uint64_t address) const {
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return nullptr;
  --after;
  return address - after->first < after->second.rounded ? &after->second : nullptr;
}

}  // namespace manyscale::gpu
