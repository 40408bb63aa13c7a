// SPDX-License-Identifier: Apache-2.0
// Addresses of a device that are reserved first and get memory later (virtual memory management).
#include <sys/mman.h>

#include <bit>
#include <new>
#include <stdexcept>

#include "gpu/exec/device_memory.hpp"

namespace manyscale::gpu {

namespace {

constexpr std::uint64_t kHostPage = 4096;
constexpr const char* kMapped = "mapped memory";

bool whole_pages(std::uint64_t address, std::uint64_t bytes) {
  return bytes != 0 && address % kHostPage == 0 && bytes % kHostPage == 0;
}

}  // namespace

std::uint64_t DeviceMemory::reserve_addresses(std::uint64_t bytes, std::uint64_t alignment) {
  if (!std::has_single_bit(alignment) || !whole_pages(alignment, bytes))
    throw std::invalid_argument("addresses are reserved in whole pages, at a power of two");
  if (bytes > capacity_ || alignment > capacity_) throw std::bad_alloc();
  const std::uint64_t address = take_room(bytes + kAlignment, alignment);
  addresses_.emplace(address, bytes);
  return address;
}

bool DeviceMemory::release_addresses(std::uint64_t address, std::uint64_t bytes) {
  const auto found = addresses_.find(address);
  if (found == addresses_.end() || found->second != bytes) return false;
  if (const auto mapped = live_.lower_bound(address);
      mapped != live_.end() && mapped->first < address + bytes)
    return false;
  addresses_.erase(found);
  add_hole(address, bytes + kAlignment);
  return true;
}

bool DeviceMemory::show(std::uint64_t address, std::uint64_t part, std::uint64_t bytes) const {
  return mmap(host(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
              descriptor_, static_cast<off_t>(part - kHeapBase)) != MAP_FAILED;
}

bool DeviceMemory::map(std::uint64_t address, std::uint64_t memory, std::uint64_t bytes) {
  if (!whole_pages(address, bytes) || memory % kHostPage != 0 || checked(memory, bytes) == nullptr)
    return false;
  auto reserved = addresses_.upper_bound(address);
  if (reserved == addresses_.begin()) return false;
  --reserved;
  const std::uint64_t at = address - reserved->first;
  if (at >= reserved->second || bytes > reserved->second - at) return false;
  auto next = live_.lower_bound(address);
  if (next != live_.end() && next->first < address + bytes) return false;
  auto previous = next == live_.begin() ? live_.end() : std::prev(next);
  if (previous != live_.end() && previous->first + previous->second.size > address) return false;
  share();
  if (!show(address, memory, bytes)) return false;
  mark_written(address, bytes);  // by whoever else has it
  std::uint64_t begin = address;
  std::uint64_t size = bytes;
  // Ranges of one reservation that touch are one.
  if (previous != live_.end() && previous->first >= reserved->first &&
      previous->first + previous->second.size == address) {
    begin = previous->first;
    size += previous->second.size;
    live_.erase(previous);
  }
  if (next != live_.end() && next->first == address + bytes) {
    size += next->second.size;
    live_.erase(next);
  }
  live_.insert_or_assign(begin, Allocation{size, size, kMapped});
  std::erase_if(freed_, [&](const auto& old) {
    return old.first < address + bytes && address < old.first + old.second.size;
  });
  return true;
}

bool DeviceMemory::unmap(std::uint64_t address, std::uint64_t bytes) {
  const Range range = find(address);
  const auto found = range.size == 0 ? live_.end() : live_.find(range.begin);
  if (!whole_pages(address, bytes) || found == live_.end() || found->second.label != kMapped) return false;
  const std::uint64_t before = address - range.begin;
  if (bytes > range.size - before || !show(address, address, bytes)) return false;
  live_.erase(found);
  const std::uint64_t after = range.size - before - bytes;
  if (before != 0) live_.emplace(range.begin, Allocation{before, before, kMapped});
  if (after != 0) live_.emplace(address + bytes, Allocation{after, after, kMapped});
  freed_.insert_or_assign(address, Allocation{bytes, bytes, kMapped});
  return true;
}

}  // namespace manyscale::gpu
