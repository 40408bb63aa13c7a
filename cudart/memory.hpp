// SPDX-License-Identifier: Apache-2.0
// The allocations of a process, by address, and what a pointer of the program points to.
#pragma once
#include <cstdint>
#include <optional>

#include "abi.hpp"

namespace manyscale::cudart {

struct Allocation {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;     // as asked for
  std::uint64_t reserved = 0;  // with what was rounded up
  MemoryKind kind = MemoryKind::device;
  int device = 0;
  unsigned flags = 0;
  void* registered = nullptr;  // the program's own memory that this one lies under (cudaHostRegister)
  MemoryPool* pool = nullptr;
  bool mapped = false;  // at addresses that were reserved before (cuMemMap)
};

// Memory of the server, entered in the table; what is for the host too can be touched from then on.
Error allocate(MemoryKind kind, std::uint64_t bytes, unsigned flags, Allocation& made);
// Gives memory back that begins at the address.
Error release(std::uint64_t address);
// The same in the order of a stream; the table forgets it at once.
Error release_in_stream(std::uint64_t address, std::uint32_t stream);

void enter_allocation(const Allocation& allocation);
std::optional<Allocation> find_allocation(std::uint64_t address);
// Takes out the allocation that begins at the address.
std::optional<Allocation> take_allocation(std::uint64_t address);
// After cudaDeviceReset.
void forget_allocations(int device);

// Where the devices find what a pointer of the program points to: the pointer itself if it is in the heap,
// the pages under it if it was registered; 0 if it is other memory of the host.
std::uint64_t device_address(const void* pointer);
// What a pointer points to; empty for memory of the host that CUDA does not know.
std::optional<Allocation> describe_pointer(const void* pointer);

// Allows or forbids the host to touch pages of the heap.
void protect(std::uint64_t address, std::uint64_t bytes, int protection);

}  // namespace manyscale::cudart
