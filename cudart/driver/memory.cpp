// SPDX-License-Identifier: Apache-2.0
// The driver API for memory: what is allocated, where it is, and where managed memory should be.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "../abi.hpp"
#include "contexts.hpp"

using namespace manyscale::cuda_driver;
using manyscale::cudart::MemoryKind;
using manyscale::cudart::MemoryLocation;
using manyscale::cudart::PointerAttributes;

namespace {

using Address = std::uint64_t;  // CUdeviceptr

struct IpcHandle {
  char bytes[64];
};

void* pointer(Address address) {
  return reinterpret_cast<void*>(address);
}

// The numbers of CUpointer_attribute.
enum Attribute : int {
  of_context = 1,
  memory_type = 2,
  device_pointer = 3,
  host_pointer = 4,
  synchronous_copies = 6,
  buffer_number = 7,
  is_managed = 8,
  device_ordinal = 9,
  can_be_shared = 10,  // by cuIpcGetMemHandle
  range_begin = 11,
  range_bytes = 12,
  is_mapped = 13,
  is_reached_by_network = 15,  // GPUDirect RDMA
  mapping_bytes = 18,
  mapping_begin = 19,
  block_number = 20,
};

bool is_flag(int attribute) {
  return attribute == synchronous_copies || attribute == is_managed || attribute == can_be_shared ||
         attribute == is_mapped || attribute == is_reached_by_network;
}

template <class Value>
Result put(void* to, Value value) {
  std::memcpy(to, &value, sizeof value);
  return success;
}

Result tell_range(void* value, int attribute, Address address) {
  void* begin = nullptr;
  std::size_t bytes = 0;
  const Result error =
      runtime("__cudaFindAllocation", static_cast<const void*>(pointer(address)), &begin, &bytes);
  if (error != success) return error;
  return attribute == range_bytes || attribute == mapping_bytes ? put(value, bytes) : put(value, begin);
}

Result tell(void* value, int attribute, Address address) {
  constexpr unsigned host = 1, device = 2;  // CUmemorytype
  struct {
    PointerAttributes known;
    char later[64];
  } all{};
  const PointerAttributes& known = all.known;
  const Result error = runtime("cudaPointerGetAttributes", &all, static_cast<const void*>(pointer(address)));
  if (error != success) return error;
  if (known.type == MemoryKind::unregistered) return invalid_value;
  switch (attribute) {
    case of_context:
      return put(value, context_of(known.device));
    case memory_type:
      return put(value, known.type == MemoryKind::pinned ? host : device);
    case device_pointer:
      return put(value, known.device_pointer);
    case host_pointer:
      return known.host_pointer == nullptr ? invalid_value : put(value, known.host_pointer);
    case synchronous_copies:
    case is_mapped:
      return put(value, attribute == is_mapped);
    case is_managed:
      return put(value, known.type == MemoryKind::managed);
    case device_ordinal:
      return put(value, known.device);
    case can_be_shared:
      return put(value, known.type == MemoryKind::device);
    case is_reached_by_network:
      return put(value, false);
    case buffer_number:
    case range_begin:
    case range_bytes:
    case mapping_bytes:
    case mapping_begin:
    case block_number:
      return tell_range(value, attribute, address);
    default:
      report_once("cuPointerGetAttribute: attribute " + std::to_string(attribute) + " is not supported");
      return not_supported;
  }
}

// A device by its number, or -1 for the host.
MemoryLocation location_of(int device) {
  constexpr int a_device = 1, the_host = 2;
  return device < 0 ? MemoryLocation{the_host, 0} : MemoryLocation{a_device, device};
}

int device_at(MemoryLocation location) {
  constexpr int a_device = 1;
  return location.type == a_device ? location.id : -1;
}

// The runtime takes a location since CUDA 13, and the number of a device before.
Result prefetch(Address address, std::size_t bytes, MemoryLocation location, unsigned flags, void* stream,
                const char* ending) {
  const std::string name = std::string("cudaMemPrefetchAsync") + ending;
  const void* begin = pointer(address);
  if (runtime_version() >= 13000) return runtime(name.c_str(), begin, bytes, location, flags, stream);
  return runtime(name.c_str(), begin, bytes, device_at(location), stream);
}

Result advise(Address address, std::size_t bytes, unsigned advice, MemoryLocation location) {
  const void* begin = pointer(address);
  if (runtime_version() >= 13000) return runtime("cudaMemAdvise", begin, bytes, advice, location);
  return runtime("cudaMemAdvise", begin, bytes, advice, device_at(location));
}

}  // namespace

extern "C" {

// --- Memory ---

int cuMemAlloc_v2(Address* address, std::size_t bytes) {
  void* made = nullptr;
  if (address == nullptr || bytes == 0) return invalid_value;
  const Result error = runtime("cudaMalloc", &made, bytes);
  if (error == success) *address = reinterpret_cast<Address>(made);
  return error;
}

int cuMemAllocManaged(Address* address, std::size_t bytes, unsigned flags) {
  void* made = nullptr;
  if (address == nullptr || bytes == 0) return invalid_value;
  const Result error = runtime("cudaMallocManaged", &made, bytes, flags);
  if (error == success) *address = reinterpret_cast<Address>(made);
  return error;
}

int cuMemAllocPitch_v2(Address* address, std::size_t* pitch, std::size_t width, std::size_t height,
                       unsigned) {
  void* made = nullptr;
  if (address == nullptr || pitch == nullptr) return invalid_value;
  const Result error = runtime("cudaMallocPitch", &made, pitch, width, height);
  if (error == success) *address = reinterpret_cast<Address>(made);
  return error;
}

int cuMemFree_v2(Address address) {
  return runtime("cudaFree", pointer(address));
}

int cuMemAllocHost_v2(void** host, std::size_t bytes) {
  return runtime("cudaMallocHost", host, bytes);
}

int cuMemHostAlloc(void** host, std::size_t bytes, unsigned flags) {
  return runtime("cudaHostAlloc", host, bytes, flags);
}

int cuMemHostGetDevicePointer_v2(Address* address, void* host, unsigned flags) {
  void* found = nullptr;
  if (address == nullptr) return invalid_value;
  const Result error = runtime("cudaHostGetDevicePointer", &found, host, flags);
  if (error == success) *address = reinterpret_cast<Address>(found);
  return error;
}

int cuMemFreeHost(void* host) {
  return runtime("cudaFreeHost", host);
}

int cuMemGetAddressRange_v2(Address* begin, std::size_t* bytes, Address address) {
  void* found = nullptr;
  const Result error =
      runtime("__cudaFindAllocation", static_cast<const void*>(pointer(address)), &found, bytes);
  if (error == success && begin != nullptr) *begin = reinterpret_cast<Address>(found);
  return error == success ? success : not_found;
}

int cuIpcOpenMemHandle_v2(Address* address, IpcHandle handle, unsigned flags) {
  return runtime("cudaIpcOpenMemHandle", address, handle, flags);
}

int cuIpcOpenMemHandle(Address* address, IpcHandle handle, unsigned flags) {
  return cuIpcOpenMemHandle_v2(address, handle, flags);
}

// --- What a pointer points to ---

int cuPointerGetAttribute(void* value, int attribute, Address address) {
  return value == nullptr ? invalid_value : tell(value, attribute, address);
}

int cuPointerGetAttributes(unsigned count, const int* attributes, void** values, Address address) {
  if (attributes == nullptr || values == nullptr) return invalid_value;
  for (unsigned i = 0; i < count; ++i) {
    const Result error = values[i] == nullptr ? invalid_value : tell(values[i], attributes[i], address);
    if (error == not_supported) return error;
    // Of memory that the driver does not know, all attributes are 0.
    if (error != success) std::memset(values[i], 0, is_flag(attributes[i]) ? sizeof(bool) : sizeof(int));
  }
  return success;
}

// Synchronising copies of an allocation are those of every copy here.
int cuPointerSetAttribute(const void* value, int attribute, Address) {
  constexpr int synchronous = 6;
  return value == nullptr || attribute != synchronous ? invalid_value : success;
}

// --- Managed memory ---

int cuMemPrefetchAsync_v2(Address address, std::size_t bytes, MemoryLocation location, unsigned flags,
                          void* stream) {
  return prefetch(address, bytes, location, flags, stream, "");
}

int cuMemPrefetchAsync_v2_ptsz(Address address, std::size_t bytes, MemoryLocation location, unsigned flags,
                               void* stream) {
  return prefetch(address, bytes, location, flags, stream, "_ptsz");
}

int cuMemPrefetchAsync(Address address, std::size_t bytes, int device, void* stream) {
  return prefetch(address, bytes, location_of(device), 0, stream, "");
}

int cuMemPrefetchAsync_ptsz(Address address, std::size_t bytes, int device, void* stream) {
  return prefetch(address, bytes, location_of(device), 0, stream, "_ptsz");
}

int cuMemAdvise_v2(Address address, std::size_t bytes, unsigned advice, MemoryLocation location) {
  return advise(address, bytes, advice, location);
}

int cuMemAdvise(Address address, std::size_t bytes, unsigned advice, int device) {
  return advise(address, bytes, advice, location_of(device));
}

}  // extern "C"
