// SPDX-License-Identifier: Apache-2.0
// Virtual memory management for our driver: addresses, memory by handle, and mappings. The server keeps them;
// here is what this process has to know of them: which of its pointers point to which device, and pages of
// the host.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "memory.hpp"
#include "process.hpp"

namespace manyscale::cudart {

namespace {

constexpr int kHost = -1;
constexpr unsigned kMayAccess = 3;  // CUmemAccess_flags: read and write

// Lets addresses of the host show a part of the heap's file, or nothing.
bool show(std::uint64_t address, std::uint64_t part, std::uint64_t bytes, int protection) {
  return mmap(reinterpret_cast<void*>(address), bytes, protection, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
              heap().file, static_cast<off_t>(part - heap().begin)) != MAP_FAILED;
}

Error map_memory(std::uint64_t address, std::uint64_t bytes, std::uint64_t offset, std::uint64_t handle) {
  wire::MemoryMap::Answer answer{};
  const Error error = call<wire::MemoryMap>({address, bytes, offset, handle}, &answer);
  if (error != Error::success) return error;
  const bool of_host = answer.device == kHost;
  if (of_host && !show(address, answer.memory, bytes, PROT_NONE)) {
    call<wire::MemoryUnmap>({address, bytes});
    return Error::memory_allocation;
  }
  Allocation made{address, bytes, bytes, of_host ? MemoryKind::pinned : MemoryKind::device,
                  of_host ? current_device() : answer.device};
  made.mapped = true;
  enter_allocation(made);
  return Error::success;
}

// Does something with each mapping of a range.
template <class Action>
void for_each_mapping(std::uint64_t address, std::uint64_t bytes, Action action) {
  for (std::uint64_t at = address; at < address + bytes;) {
    const auto known = find_allocation(at);
    if (!known || !known->mapped) return;
    at = known->address + known->bytes;
    action(*known);
  }
}

Error unmap_memory(std::uint64_t address, std::uint64_t bytes) {
  if (const Error error = call<wire::MemoryUnmap>({address, bytes}); error != Error::success) return error;
  for_each_mapping(address, bytes, [](const Allocation& gone) {
    if (gone.kind == MemoryKind::pinned) show(gone.address, gone.address, gone.bytes, PROT_NONE);
    take_allocation(gone.address);
  });
  return Error::success;
}

Error set_access(std::uint64_t address, std::uint64_t bytes, int device, unsigned access) {
  const Error error = call<wire::MemorySetAccess>({address, bytes, device, access});
  if (error != Error::success || device != kHost) return error;
  for_each_mapping(address, bytes, [&](const Allocation& mapping) {
    const int protection = access == kMayAccess ? PROT_READ | PROT_WRITE
                           : access != 0        ? PROT_READ
                                                : PROT_NONE;
    if (mapping.kind == MemoryKind::pinned) protect(mapping.address, mapping.bytes, protection);
  });
  return Error::success;
}

// A handle for another process is a file that names the memory: all processes of a program have one server.
constexpr const char* kShared = "manyscale memory %llu\n";

Error export_handle(int* file, std::uint64_t handle) {
  char text[64];
  const int length = std::snprintf(text, sizeof text, kShared, static_cast<unsigned long long>(handle));
  const int made = memfd_create("manyscale-memory-handle", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made < 0) return Error::unknown;
  if (pwrite(made, text, static_cast<std::size_t>(length), 0) != length ||
      fcntl(made, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    close(made);
    return Error::unknown;
  }
  *file = made;
  return Error::success;
}

bool read_handle(int file, std::uint64_t& handle) {
  char text[64] = {};
  unsigned long long number = 0;
  if (pread(file, text, sizeof text - 1, 0) <= 0 || std::sscanf(text, kShared, &number) != 1) return false;
  handle = number;
  return true;
}

}  // namespace

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

extern "C" {

Error __cudaReserveAddresses(std::uint64_t* address, std::uint64_t bytes, std::uint64_t alignment) {
  wire::AddressReserve::Answer answer{};
  const Error error = call<wire::AddressReserve>({bytes, alignment}, &answer);
  if (error == Error::success) *address = answer.address;
  return finish(error);
}

Error __cudaFreeAddresses(std::uint64_t address, std::uint64_t bytes) {
  return finish(call<wire::AddressFree>({address, bytes}));
}

Error __cudaCreateMemory(std::uint64_t* handle, std::uint64_t bytes, int device, unsigned shareable) {
  wire::PhysicalCreate::Answer answer{};
  const Error error = call<wire::PhysicalCreate>({bytes, device, shareable}, &answer);
  if (error == Error::success) *handle = answer.handle;
  return finish(error);
}

// The memory of a handle, or at an address if that is 0: its handle, device and the handles that it can be
// given as.
Error __cudaRetainMemory(std::uint64_t* handle, const void* at, unsigned references, int* device,
                         unsigned* shareable) {
  wire::PhysicalRetain::Answer answer{};
  const Error error =
      call<wire::PhysicalRetain>({*handle, reinterpret_cast<std::uint64_t>(at), references}, &answer);
  if (error != Error::success) return finish(error);
  *handle = answer.handle;
  if (device != nullptr) *device = answer.device;
  if (shareable != nullptr) *shareable = answer.shareable;
  return finish(error);
}

Error __cudaReleaseMemory(std::uint64_t handle) {
  return finish(call<wire::PhysicalRelease>({handle}));
}

Error __cudaMapMemory(std::uint64_t address, std::uint64_t bytes, std::uint64_t offset,
                      std::uint64_t handle) {
  return finish(map_memory(address, bytes, offset, handle));
}

Error __cudaUnmapMemory(std::uint64_t address, std::uint64_t bytes) {
  return finish(unmap_memory(address, bytes));
}

Error __cudaSetMemoryAccess(std::uint64_t address, std::uint64_t bytes, int device, unsigned access) {
  return finish(set_access(address, bytes, device, access));
}

Error __cudaGetMemoryAccess(unsigned* access, std::uint64_t address, int device) {
  wire::MemoryGetAccess::Answer answer{};
  const Error error = call<wire::MemoryGetAccess>({address, device}, &answer);
  if (error == Error::success) *access = answer.access;
  return finish(error);
}

Error __cudaExportMemory(int* file, std::uint64_t handle) {
  return finish(export_handle(file, handle));
}

Error __cudaImportMemory(std::uint64_t* handle, int file) {
  if (!read_handle(file, *handle)) return finish(Error::invalid_value);
  return __cudaRetainMemory(handle, nullptr, 1, nullptr, nullptr);
}

// Whether an address is in mapped memory.
Error __cudaIsMapped(const void* pointer, bool* mapped) {
  const auto known = find_allocation(reinterpret_cast<std::uint64_t>(pointer));
  *mapped = known && known->mapped;
  return finish(Error::success);
}

}  // extern "C"
