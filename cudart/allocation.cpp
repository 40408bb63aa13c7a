// SPDX-License-Identifier: Apache-2.0
// Allocating and freeing device and managed memory, and pointer attributes.
#include <cstring>

#include "graph_memory.hpp"
#include "memory.hpp"
#include "process.hpp"

namespace manyscale::cudart {

namespace {

constexpr std::size_t kPitchAlignment = 512;

std::size_t pitch_of(std::size_t width) {
  return (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
}

Error allocate_to(void** pointer, MemoryKind kind, std::size_t bytes, unsigned flags) {
  if (pointer == nullptr) return Error::invalid_value;
  if (bytes == 0) {
    if (kind == MemoryKind::managed) return Error::invalid_value;
    *pointer = nullptr;
    return Error::success;
  }
  Allocation made;
  const Error error = allocate(kind, bytes, flags, made);
  if (error == Error::success) *pointer = reinterpret_cast<void*>(made.address);
  return error;
}

Error free_device_memory(void* pointer) {
  // Freeing nothing is a common way to begin: it makes the connection.
  if (pointer == nullptr) return connect_thread();
  if (const Error error = connect_thread(); error != Error::success) return error;
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  if (free_graph_memory(address)) return call<wire::DeviceSynchronize>({});
  const auto known = find_allocation(address);
  if (!known || known->address != address || known->kind == MemoryKind::pinned || known->mapped)
    return Error::invalid_value;
  return release(address);
}

Error describe(PointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr) return Error::invalid_value;
  if (const Error error = connect_thread(); error != Error::success) return error;
  const auto known = describe_pointer(pointer);
  if (!known) {
    // Since CUDA 11, memory of the host that CUDA does not know is no error.
    *attributes = {MemoryKind::unregistered, -2, nullptr, const_cast<void*>(pointer)};
    return Error::success;
  }
  const bool for_host = known->kind != MemoryKind::device;
  *attributes = {known->kind, known->device, reinterpret_cast<void*>(device_address(pointer)),
                 for_host ? const_cast<void*>(pointer) : nullptr};
  if (known->registered != nullptr)
    attributes->host_pointer =
        static_cast<std::byte*>(known->registered) + (device_address(pointer) - known->address);
  return Error::success;
}

constexpr unsigned kAttachGlobal = 1;
constexpr unsigned kAttachHost = 2;

}  // namespace

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

extern "C" {

Error cudaMalloc(void** pointer, std::size_t bytes) {
  return finish(allocate_to(pointer, MemoryKind::device, bytes, 0));
}

Error cudaMallocManaged(void** pointer, std::size_t bytes, unsigned flags) {
  if (flags != kAttachGlobal && flags != kAttachHost) return finish(Error::invalid_value);
  return finish(allocate_to(pointer, MemoryKind::managed, bytes, flags));
}

Error cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width, std::size_t rows) {
  if (pitch == nullptr) return finish(Error::invalid_value);
  const Error error = allocate_to(pointer, MemoryKind::device, pitch_of(width) * rows, 0);
  if (error == Error::success) *pitch = pitch_of(width);
  return finish(error);
}

Error cudaMalloc3D(PitchedPointer* pointer, Extent extent) {
  if (pointer == nullptr) return finish(Error::invalid_value);
  const std::size_t pitch = pitch_of(extent.width);
  void* memory = nullptr;
  const Error error = allocate_to(&memory, MemoryKind::device, pitch * extent.height * extent.depth, 0);
  if (error == Error::success) *pointer = {memory, pitch, extent.width, extent.height};
  return finish(error);
}

Error cudaFree(void* pointer) {
  return finish(free_device_memory(pointer));
}

Error cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  wire::MemoryInfo::Answer answer{};
  const Error error = call<wire::MemoryInfo>({}, &answer);
  if (error != Error::success) return finish(error);
  if (free != nullptr) *free = answer.free;
  if (total != nullptr) *total = answer.total;
  return finish(error);
}

Error cudaPointerGetAttributes(PointerAttributes* attributes, const void* pointer) {
  return finish(describe(attributes, pointer));
}

// Of our driver: the allocation that a pointer of a device points into.
Error __cudaFindAllocation(const void* pointer, void** begin, std::size_t* bytes) {
  const auto known = find_allocation(reinterpret_cast<std::uint64_t>(pointer));
  if (!known) return finish(Error::invalid_value);
  if (begin != nullptr) *begin = reinterpret_cast<void*>(known->address);
  if (bytes != nullptr) *bytes = known->bytes;
  return finish(Error::success);
}

// Handles for other processes: all of them share one heap, so an address is enough.

struct IpcMemoryHandle {
  char magic[8];
  std::uint64_t address, bytes;
  int device;
  char padding[36];
};
static_assert(sizeof(IpcMemoryHandle) == 64);

Error cudaIpcGetMemHandle(IpcMemoryHandle* handle, void* pointer) {
  const auto known = find_allocation(reinterpret_cast<std::uint64_t>(pointer));
  if (handle == nullptr || !known || known->kind != MemoryKind::device || known->mapped)
    return finish(Error::invalid_value);
  *handle = {};
  std::memcpy(handle->magic, "manyscal", sizeof handle->magic);
  handle->address = known->address;
  handle->bytes = known->bytes;
  handle->device = known->device;
  return finish(Error::success);
}

Error cudaIpcOpenMemHandle(void** pointer, IpcMemoryHandle handle, unsigned) {
  if (pointer == nullptr || std::memcmp(handle.magic, "manyscal", sizeof handle.magic) != 0)
    return finish(Error::invalid_value);
  if (const Error error = connect_thread(); error != Error::success) return finish(error);
  if (!heap().contains(reinterpret_cast<void*>(handle.address))) return finish(Error::invalid_value);
  enter_allocation(
      {handle.address, handle.bytes, handle.bytes, MemoryKind::device, handle.device, 0, nullptr, nullptr});
  *pointer = reinterpret_cast<void*>(handle.address);
  return finish(Error::success);
}

Error cudaIpcCloseMemHandle(void* pointer) {
  return finish(take_allocation(reinterpret_cast<std::uint64_t>(pointer)) ? Error::success
                                                                          : Error::invalid_value);
}

}  // extern "C"
