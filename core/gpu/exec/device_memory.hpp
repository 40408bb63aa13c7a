// SPDX-License-Identifier: Apache-2.0
// The memory of a device, or of several that share their addresses: a sparse address space in which only
// allocations exist. One large reservation of the host's address space stands behind it, of which only
// touched pages take memory; on request it is a file in memory that other processes can map.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gpu/exec/address_space.hpp"

namespace manyscale::gpu {

class DeviceMemory {
 public:
  DeviceMemory();
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // A run of addresses that are valid together.
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
  };

  static constexpr std::uint64_t kAlignment = 256;
  static constexpr std::uint64_t kManagedAlignment = 2 << 20;  // of memory whose pages can move to the host

  // New memory, zeroed, its address a multiple of `alignment` (a power of two, at least 256), the run of
  // `alignment` bytes that its end is in all its own; `label` says in messages what it is. Throws
  // std::bad_alloc if it does not fit.
  std::uint64_t allocate(std::uint64_t bytes, std::string label, std::uint64_t alignment = kAlignment);
  // False if no allocation begins there.
  // With `reserve` nobody is given the room before `reuse_reserved`: kernels that are queued may still have
  // the address, and must not find another's memory there.
  bool free(std::uint64_t address, bool reserve = false);
  void reuse_reserved();

  // Addresses without memory, as many as asked for, the first a multiple of `alignment`. Throws
  // std::bad_alloc.
  std::uint64_t reserve_addresses(std::uint64_t bytes, std::uint64_t alignment);
  // False unless the range was reserved like this and nothing is mapped into it.
  bool release_addresses(std::uint64_t address, std::uint64_t bytes);
  // Puts a part of an allocation behind reserved addresses, from then on the same memory; all are multiples
  // of 4096. Ranges that are mapped side by side are valid together. False if the addresses are not reserved
  // or have memory, or if the part is not in an allocation.
  bool map(std::uint64_t address, std::uint64_t memory, std::uint64_t bytes);
  // False if not all of the range has memory that was mapped.
  bool unmap(std::uint64_t address, std::uint64_t bytes);

  // The allocation around an address; size 0 if there is none.
  Range find(std::uint64_t address) const;
  // Host memory behind an address that is known to be allocated.
  std::byte* host(std::uint64_t address) const { return host_ + (address - kHeapBase); }
  // What is added to a device address to get the host's.
  std::uintptr_t origin() const { return reinterpret_cast<std::uintptr_t>(host_) - kHeapBase; }
  // The same with a check: null unless all of the bytes are in one allocation.
  std::byte* checked(std::uint64_t address, std::uint64_t bytes) const;

  // Puts the memory into a file without a name, with what is in it now, and gives its descriptor: byte 0 of
  // the file is at kHeapBase. The same descriptor when asked again. Throws std::system_error.
  int share();

  // From now on, remembers which bytes were written; what is allocated already counts as written.
  void track_writes();
  // Bytes of an allocation have been given a value.
  void mark_written(std::uint64_t address, std::uint64_t bytes);
  // None of the bytes of an allocation was ever given a value; false if that is not remembered.
  bool never_written(std::uint64_t address, std::uint64_t bytes) const;

  // In words: what is at or near an address.
  std::string describe(std::uint64_t address, std::uint64_t bytes) const;
  std::uint64_t allocated_bytes() const { return allocated_; }
  std::uint64_t capacity() const { return capacity_; }

 private:
  std::uint64_t take_room(std::uint64_t room, std::uint64_t alignment);
  void add_hole(std::uint64_t address, std::uint64_t room);
  // Lets host addresses show a part of the file; false if the host refuses.
  bool show(std::uint64_t address, std::uint64_t part, std::uint64_t bytes) const;
  struct Allocation {
    std::uint64_t size;
    std::uint64_t room;  // with the bytes behind it that stay free
    std::string label;
  };
  void clear(std::byte* first, std::uint64_t size) const;

  std::byte* host_ = nullptr;
  int descriptor_ = -1;           // of the file behind host_; -1: there is none
  std::byte* written_ = nullptr;  // 1 for each byte that was written; null: not remembered
  std::uint64_t capacity_ = 0;
  std::uint64_t allocated_ = 0;
  std::map<std::uint64_t, Allocation> live_;                       // by address
  std::map<std::uint64_t, std::uint64_t> holes_;                   // free room by address: its size
  std::vector<std::pair<std::uint64_t, std::uint64_t>> reserved_;  // the same, not to be given away yet
  std::map<std::uint64_t, Allocation> freed_;                      // the last few, for messages
  std::map<std::uint64_t, std::uint64_t> addresses_;               // reserved for mappings: their bytes
};

}  // namespace manyscale::gpu
