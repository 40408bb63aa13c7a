// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/device_memory.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>
#include <system_error>

#include "gpu/exec/hexadecimal.hpp"

namespace manyscale::gpu {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kSmallest = std::uint64_t{1} << 24;  // a device with less is not worth having
constexpr std::size_t kRememberedFrees = 1024;
constexpr std::uint64_t kNear = std::uint64_t{1} << 30;  // beyond, no allocation explains an address

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) {
  return (value + to - 1) / to * to;
}

// Bytes of address space that the host still gives this process; the largest number where it does not ration
// them.
std::uint64_t address_space_left() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return ~std::uint64_t{0};
  unsigned long long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%llu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  const std::uint64_t used = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return used < limit.rlim_cur ? limit.rlim_cur - used : 0;
}

void* reserve(std::uint64_t bytes) {
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

}  // namespace

DeviceMemory::DeviceMemory() {
  // 1 TiB of the host's address space, or a part of what is left where addresses are rationed: results,
  // threads and a second device need some, too.
  const std::uint64_t share = address_space_left() / 4 / kSmallest * kSmallest;
  for (std::uint64_t bytes = std::min(std::uint64_t{1} << 40, share); bytes >= kSmallest; bytes /= 4) {
    void* memory = reserve(bytes);
    if (memory == MAP_FAILED) continue;
    host_ = static_cast<std::byte*>(memory);
    capacity_ = bytes;
    // The first page stays free: no allocation is at the start of the heap.
    holes_.emplace(kHeapBase + kPage, bytes - kPage);
    return;
  }
  throw std::bad_alloc();
}

DeviceMemory::~DeviceMemory() {
  if (descriptor_ >= 0) close(descriptor_);
  if (host_ != nullptr) munmap(host_, capacity_);
  if (written_ != nullptr) munmap(written_, capacity_);
}

std::uint64_t DeviceMemory::allocate(std::uint64_t bytes, std::string label, std::uint64_t alignment) {
  if (!std::has_single_bit(alignment) || alignment < kAlignment)
    throw std::invalid_argument("the alignment of device memory is a power of two from 256");
  if (bytes > capacity_ || alignment > capacity_) throw std::bad_alloc();
  // Room behind each allocation stays free, so that running over its end is seen.
  const std::uint64_t room = round_up(std::max<std::uint64_t>(bytes, 1), alignment) + kAlignment;
  const std::uint64_t address = take_room(room, alignment);
  live_.emplace(address, Allocation{bytes, room, std::move(label)});
  std::erase_if(freed_, [&](const auto& old) {
    return old.first < address + room && address < old.first + std::max<std::uint64_t>(old.second.size, 1);
  });
  allocated_ += bytes;
  return address;
}

// Takes addresses from the holes.
std::uint64_t DeviceMemory::take_room(std::uint64_t room, std::uint64_t alignment) {
  const auto hole = std::ranges::find_if(holes_, [&](const auto& entry) {
    return entry.second >= room && round_up(entry.first, alignment) - entry.first <= entry.second - room;
  });
  if (hole == holes_.end()) throw std::bad_alloc();
  const std::uint64_t address = round_up(hole->first, alignment);
  const std::uint64_t before = address - hole->first;
  const std::uint64_t after = hole->second - before - room;
  if (before != 0) {
    hole->second = before;
  } else {
    holes_.erase(hole);
  }
  if (after != 0) holes_.emplace(address + room, after);
  return address;
}

bool DeviceMemory::free(std::uint64_t address, bool reserve) {
  const auto found = live_.find(address);
  if (found == live_.end()) return false;
  const std::uint64_t size = found->second.size;
  const std::uint64_t room = found->second.room;
  clear(host(address), size);  // new memory is zero
  if (written_ != nullptr) clear(written_ + (address - kHeapBase), size);
  allocated_ -= size;
  freed_.insert_or_assign(address, std::move(found->second));
  if (freed_.size() > kRememberedFrees) freed_.erase(freed_.begin());
  live_.erase(found);
  if (reserve) {
    reserved_.emplace_back(address, room);
  } else {
    add_hole(address, room);
  }
  return true;
}

void DeviceMemory::reuse_reserved() {
  for (const auto& [address, room] : reserved_) add_hole(address, room);
  reserved_.clear();
}

void DeviceMemory::add_hole(std::uint64_t address, std::uint64_t room) {
  auto [hole, inserted] = holes_.emplace(address, room);
  if (const auto next = std::next(hole); next != holes_.end() && hole->first + hole->second == next->first) {
    hole->second += next->second;
    holes_.erase(next);
  }
  if (hole != holes_.begin()) {
    const auto previous = std::prev(hole);
    if (previous->first + previous->second == hole->first) {
      previous->second += hole->second;
      holes_.erase(hole);
    }
  }
}

// Makes memory zero: whole pages are given back to the host, the rest is cleared.
void DeviceMemory::clear(std::byte* first, std::uint64_t size) const {
  std::byte* last = first + size;
  auto* page_first = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(first), kPage));
  auto* page_last = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(last) / kPage * kPage);
  if (page_first < page_last) {
    std::memset(first, 0, static_cast<std::size_t>(page_first - first));
    // A private page that is dropped comes back as zero, one of a file only when it is cut out of the file.
    const int advice =
        first >= host_ && first < host_ + capacity_ && descriptor_ >= 0 ? MADV_REMOVE : MADV_DONTNEED;
    madvise(page_first, static_cast<std::size_t>(page_last - page_first), advice);
    std::memset(page_last, 0, static_cast<std::size_t>(last - page_last));
  } else {
    std::memset(first, 0, size);
  }
}

int DeviceMemory::share() {
  if (descriptor_ >= 0) return descriptor_;
  auto fail = [](const char* what) {
    throw std::system_error(errno, std::generic_category(), std::string("the memory of a device: ") + what);
  };
  const int file = memfd_create("manyscale-device-memory", MFD_CLOEXEC);
  if (file < 0) fail("no file in memory could be made");
  auto give_up = [&](const char* what) {
    const int reason = errno;
    close(file);
    errno = reason;
    fail(what);
  };
  if (ftruncate(file, static_cast<off_t>(capacity_)) != 0) give_up("a file of its size could not be made");
  for (const auto& [address, allocation] : live_) {
    for (std::uint64_t done = 0; done < allocation.size;) {
      const ssize_t wrote = pwrite(file, host(address) + done, allocation.size - done,
                                   static_cast<off_t>(address - kHeapBase + done));
      if (wrote <= 0) give_up("it could not be written to a file");
      done += static_cast<std::uint64_t>(wrote);
    }
  }
  if (mmap(host_, capacity_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file, 0) ==
      MAP_FAILED)
    give_up("its file could not be mapped");
  descriptor_ = file;
  return descriptor_;
}

DeviceMemory::Range DeviceMemory::find(std::uint64_t address) const {
  auto after = live_.upper_bound(address);
  if (after == live_.begin()) return {};
  --after;
  if (address - after->first >= after->second.size) return {};
  return {after->first, after->second.size};
}

std::byte* DeviceMemory::checked(std::uint64_t address, std::uint64_t bytes) const {
  const Range range = find(address);
  if (range.size == 0 || bytes > range.size || address - range.begin > range.size - bytes) return nullptr;
  return host(address);
}

void DeviceMemory::track_writes() {
  if (written_ != nullptr) return;
  void* memory = reserve(capacity_);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  written_ = static_cast<std::byte*>(memory);
  for (const auto& [address, allocation] : live_) mark_written(address, allocation.size);
}

void DeviceMemory::mark_written(std::uint64_t address, std::uint64_t bytes) {
  if (written_ != nullptr) std::memset(written_ + (address - kHeapBase), 1, bytes);
}

bool DeviceMemory::never_written(std::uint64_t address, std::uint64_t bytes) const {
  return written_ != nullptr && std::memchr(written_ + (address - kHeapBase), 1, bytes) == nullptr;
}

std::string DeviceMemory::describe(std::uint64_t address, std::uint64_t bytes) const {
  auto about = [](std::uint64_t begin, const Allocation& allocation) {
    return allocation.label + " of " + std::to_string(allocation.size) + " bytes at " + hexadecimal(begin);
  };
  if (address < kPage) return "a null pointer";
  const Range range = find(address);
  if (range.size != 0) {
    const std::uint64_t offset = address - range.begin;
    return "it begins at byte " + std::to_string(offset) + " of " +
           about(range.begin, live_.at(range.begin)) +
           (bytes > range.size - offset ? " and runs over its end" : "");
  }
  for (const auto& [begin, allocation] : freed_)
    if (address - begin < allocation.size) return "the memory was freed: " + about(begin, allocation);
  // What a host program allocates lies below the heap or above it, never in it.
  constexpr std::uint64_t host_end = std::uint64_t{1} << 47;
  if (address < host_end && address - kHeapBase >= capacity_)
    return "this looks like a pointer to the host's memory; copy the data to the device first";
  const auto after = live_.upper_bound(address);
  std::string text = "no allocation is there";
  std::uint64_t distance = ~std::uint64_t{0};
  if (after != live_.begin()) {
    const auto before = std::prev(after);
    const std::uint64_t end = before->first + before->second.size;
    distance = address - end;
    if (distance < kNear)
      text = std::to_string(distance) + " bytes past the end of " + about(before->first, before->second);
  }
  if (after != live_.end() && after->first - address < std::min(distance, kNear))
    text = std::to_string(after->first - address) + " bytes before " + about(after->first, after->second);
  return text;
}

}  // namespace manyscale::gpu
