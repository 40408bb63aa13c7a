// SPDX-License-Identifier: Apache-2.0
// Virtual memory management: cuMemAddressReserve, cuMemCreate, cuMemMap and what belongs to them. Memory is
// on a device, or on the host without regard to its NUMA nodes; it can be given to other processes as a file
// descriptor.
#include <cstddef>
#include <cstdint>
#include <string>

#include "../abi.hpp"
#include "contexts.hpp"

using namespace manyscale::cuda_driver;
using manyscale::cudart::MemoryLocation;

namespace {

using Address = std::uint64_t;  // CUdeviceptr
using Handle = std::uint64_t;   // CUmemGenericAllocationHandle

constexpr std::size_t kGranularity = std::size_t{2} << 20;
constexpr int kPinned = 1;  // CUmemAllocationType
constexpr int kHost = -1;
enum LocationType : int { of_device = 1, of_host = 2, of_numa_node = 3, of_current_numa_node = 4 };
enum HandleType : int { file_descriptor = 1 };

// CUmemAllocationProp
struct Properties {
  int type;
  int handle_types;
  MemoryLocation location;
  void* windows;
  struct {
    unsigned char compression, remote_direct_access;
    unsigned short usage;
    unsigned char reserved[4];
  } flags;
};
static_assert(sizeof(Properties) == 32);

// CUmemAccessDesc
struct Access {
  MemoryLocation location;
  unsigned flags;
};

// The number of a device, or kHost.
bool find_device(const MemoryLocation& location, int& device) {
  device = location.type == of_device ? location.id : kHost;
  return location.type >= of_device && location.type <= of_current_numa_node;
}

Result check(const Properties* properties) {
  int device = 0;
  if (properties == nullptr || !find_device(properties->location, device)) return invalid_value;
  if (properties->type != kPinned) {
    report_once("cuMemCreate: memory of type " + std::to_string(properties->type) + " is not supported");
    return not_supported;
  }
  if ((properties->handle_types & ~file_descriptor) != 0) {
    report_once("cuMemCreate: memory is shared by file descriptors only; handles of type " +
                std::to_string(properties->handle_types) + " are not supported");
    return not_supported;
  }
  int count = 0;
  if (const Result error = runtime("cudaGetDeviceCount", &count); error != success) return error;
  return device < count ? success : invalid_device;
}

// A call that does not say on which device: that of the memory does not matter to it.
Result describe(Handle handle, int& device, unsigned& shareable) {
  return runtime("__cudaRetainMemory", &handle, static_cast<const void*>(nullptr), 0u, &device, &shareable);
}

}  // namespace

extern "C" {

int cuMemGetAllocationGranularity(std::size_t* granularity, const Properties* properties, int option) {
  constexpr int recommended = 1;
  if (granularity == nullptr || option < 0 || option > recommended) return invalid_value;
  if (const Result error = check(properties); error != success) return error;
  *granularity = kGranularity;
  return success;
}

int cuMemAddressReserve(Address* address, std::size_t bytes, std::size_t alignment, Address,
                        unsigned long long flags) {
  if (address == nullptr || bytes == 0 || flags != 0 || (alignment & (alignment - 1)) != 0)
    return invalid_value;
  return runtime("__cudaReserveAddresses", address, static_cast<std::uint64_t>(bytes),
                 static_cast<std::uint64_t>(alignment));
}

int cuMemAddressFree(Address address, std::size_t bytes) {
  return runtime("__cudaFreeAddresses", address, static_cast<std::uint64_t>(bytes));
}

int cuMemCreate(Handle* handle, std::size_t bytes, const Properties* properties, unsigned long long flags) {
  if (handle == nullptr || bytes == 0 || flags != 0) return invalid_value;
  if (const Result error = check(properties); error != success) return error;
  int device = 0;
  find_device(properties->location, device);
  return runtime("__cudaCreateMemory", handle, static_cast<std::uint64_t>(bytes), device,
                 static_cast<unsigned>(properties->handle_types));
}

int cuMemRelease(Handle handle) {
  return runtime("__cudaReleaseMemory", handle);
}

int cuMemRetainAllocationHandle(Handle* handle, void* address) {
  if (handle == nullptr) return invalid_value;
  *handle = 0;
  int device = 0;
  unsigned shareable = 0;
  return runtime("__cudaRetainMemory", handle, static_cast<const void*>(address), 1u, &device, &shareable);
}

int cuMemGetAllocationPropertiesFromHandle(Properties* properties, Handle handle) {
  int device = 0;
  unsigned shareable = 0;
  if (properties == nullptr || handle == 0) return invalid_value;
  if (const Result error = describe(handle, device, shareable); error != success) return error;
  *properties = {};
  properties->type = kPinned;
  properties->handle_types = static_cast<int>(shareable);
  properties->location = device == kHost ? MemoryLocation{of_host, 0} : MemoryLocation{of_device, device};
  return success;
}

int cuMemMap(Address address, std::size_t bytes, std::size_t offset, Handle handle,
             unsigned long long flags) {
  if (bytes == 0 || flags != 0) return invalid_value;
  return runtime("__cudaMapMemory", address, static_cast<std::uint64_t>(bytes),
                 static_cast<std::uint64_t>(offset), handle);
}

int cuMemUnmap(Address address, std::size_t bytes) {
  return runtime("__cudaUnmapMemory", address, static_cast<std::uint64_t>(bytes));
}

int cuMemSetAccess(Address address, std::size_t bytes, const Access* accesses, std::size_t count) {
  if (accesses == nullptr || count == 0) return invalid_value;
  for (std::size_t i = 0; i < count; ++i) {
    int device = 0;
    if (!find_device(accesses[i].location, device)) return invalid_value;
    const Result error = runtime("__cudaSetMemoryAccess", address, static_cast<std::uint64_t>(bytes), device,
                                 accesses[i].flags);
    if (error != success) return error;
  }
  return success;
}

int cuMemGetAccess(unsigned long long* flags, const MemoryLocation* location, Address address) {
  int device = 0;
  unsigned access = 0;
  if (flags == nullptr || location == nullptr || !find_device(*location, device)) return invalid_value;
  const Result error = runtime("__cudaGetMemoryAccess", &access, address, device);
  if (error == success) *flags = access;
  return error;
}

int cuMemExportToShareableHandle(void* shareable, Handle handle, int type, unsigned long long flags) {
  int device = 0;
  unsigned types = 0;
  if (shareable == nullptr || flags != 0) return invalid_value;
  if (type != file_descriptor) return not_supported;
  if (const Result error = describe(handle, device, types); error != success) return error;
  if ((types & file_descriptor) == 0) return invalid_value;  // cuMemCreate was not asked for it
  return runtime("__cudaExportMemory", static_cast<int*>(shareable), handle);
}

int cuMemImportFromShareableHandle(Handle* handle, void* shareable, int type) {
  if (handle == nullptr) return invalid_value;
  if (type != file_descriptor) return not_supported;
  return runtime("__cudaImportMemory", handle, static_cast<int>(reinterpret_cast<std::intptr_t>(shareable)));
}

}  // extern "C"
