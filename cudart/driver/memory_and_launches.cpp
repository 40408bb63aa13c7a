// SPDX-License-Identifier: Apache-2.0
// The driver API for memory, copies, modules, launches, streams and events. A module is a library of the
// runtime (cudaLibrary_t), a function a kernel of it.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime_calls.hpp"

using manyscale::cuda_driver::invalid_value;
using manyscale::cuda_driver::not_found;
using manyscale::cuda_driver::Result;
using manyscale::cuda_driver::runtime;
using manyscale::cuda_driver::success;

namespace {

using Address = std::uint64_t;  // CUdeviceptr

struct Dim3 {
  unsigned x, y, z;
};

enum CopyKind : int { host_to_host, host_to_device, device_to_host, device_to_device, any_direction };

void* pointer(Address address) {
  return reinterpret_cast<void*>(address);
}

Result copy(void* to, const void* from, std::size_t bytes, CopyKind kind) {
  return runtime("cudaMemcpy", to, from, bytes, static_cast<int>(kind));
}

Result copy_in_stream(void* to, const void* from, std::size_t bytes, CopyKind kind, void* stream) {
  return runtime("cudaMemcpyAsync", to, from, bytes, static_cast<int>(kind), stream);
}

// Fills with elements of several bytes, which the runtime has no function for: all bytes alike, or by a copy.
template <class Element>
Result fill(Address address, Element value, std::size_t count) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&value);
  bool alike = true;
  for (std::size_t i = 1; i < sizeof value; ++i) alike = alike && bytes[i] == bytes[0];
  if (alike) return runtime("cudaMemset", pointer(address), static_cast<int>(bytes[0]), count * sizeof value);
  const std::vector<Element> values(count, value);
  return copy(pointer(address), values.data(), count * sizeof value, host_to_device);
}

Result load(void** module, const void* image) {
  if (module == nullptr || image == nullptr) return invalid_value;
  return runtime("cudaLibraryLoadData", module, image, static_cast<const int*>(nullptr),
                 static_cast<void**>(nullptr), 0u, static_cast<const int*>(nullptr),
                 static_cast<void**>(nullptr), 0u);
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

// --- Copies and fills ---

int cuMemcpyHtoD_v2(Address to, const void* from, std::size_t bytes) {
  return copy(pointer(to), from, bytes, host_to_device);
}

int cuMemcpyDtoH_v2(void* to, Address from, std::size_t bytes) {
  return copy(to, pointer(from), bytes, device_to_host);
}

int cuMemcpyDtoD_v2(Address to, Address from, std::size_t bytes) {
  return copy(pointer(to), pointer(from), bytes, device_to_device);
}

int cuMemcpy(Address to, Address from, std::size_t bytes) {
  return copy(pointer(to), pointer(from), bytes, any_direction);
}

int cuMemcpyHtoDAsync_v2(Address to, const void* from, std::size_t bytes, void* stream) {
  return copy_in_stream(pointer(to), from, bytes, host_to_device, stream);
}

int cuMemcpyDtoHAsync_v2(void* to, Address from, std::size_t bytes, void* stream) {
  return copy_in_stream(to, pointer(from), bytes, device_to_host, stream);
}

int cuMemcpyDtoDAsync_v2(Address to, Address from, std::size_t bytes, void* stream) {
  return copy_in_stream(pointer(to), pointer(from), bytes, device_to_device, stream);
}

int cuMemsetD8_v2(Address address, unsigned char value, std::size_t count) {
  return fill(address, value, count);
}

int cuMemsetD16_v2(Address address, unsigned short value, std::size_t count) {
  return fill(address, value, count);
}

int cuMemsetD32_v2(Address address, unsigned value, std::size_t count) {
  return fill(address, value, count);
}

// --- Modules and launches ---

int cuModuleLoadData(void** module, const void* image) {
  return load(module, image);
}

int cuModuleLoadDataEx(void** module, const void* image, unsigned, int*, void**) {
  return load(module, image);
}

int cuModuleLoadFatBinary(void** module, const void* image) {
  return load(module, image);
}

int cuModuleLoad(void** module, const char* path) {
  return runtime("cudaLibraryLoadFromFile", module, path, static_cast<const int*>(nullptr),
                 static_cast<void**>(nullptr), 0u, static_cast<const int*>(nullptr),
                 static_cast<void**>(nullptr), 0u);
}

int cuModuleUnload(void* module) {
  return runtime("cudaLibraryUnload", module);
}

int cuModuleGetFunction(void** function, void* module, const char* name) {
  const Result error = runtime("cudaLibraryGetKernel", function, module, name);
  return error == success || error == invalid_value ? error : not_found;
}

int cuModuleGetGlobal_v2(Address* address, std::size_t* bytes, void* module, const char* name) {
  void* found = nullptr;
  const Result error = runtime("cudaLibraryGetGlobal", &found, bytes, module, name);
  if (error == success && address != nullptr) *address = reinterpret_cast<Address>(found);
  return error == success || error == invalid_value ? error : not_found;
}

int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared, void* stream, void** arguments,
                   void** extra) {
  return runtime("__cudaLaunchFunction", function, Dim3{grid_x, grid_y, grid_z},
                 Dim3{block_x, block_y, block_z}, arguments, extra, static_cast<std::size_t>(shared), stream);
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads,
                                                std::size_t shared) {
  return runtime("cudaOccupancyMaxActiveBlocksPerMultiprocessor", blocks, static_cast<const void*>(function),
                 threads, shared);
}

// --- Streams and events ---

int cuStreamCreate(void** stream, unsigned flags) {
  return runtime("cudaStreamCreateWithFlags", stream, flags);
}

int cuStreamDestroy_v2(void* stream) {
  return runtime("cudaStreamDestroy", stream);
}

int cuStreamSynchronize(void* stream) {
  return runtime("cudaStreamSynchronize", stream);
}

int cuStreamQuery(void* stream) {
  return runtime("cudaStreamQuery", stream);
}

int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return runtime("cudaStreamWaitEvent", stream, event, flags);
}

int cuEventCreate(void** event, unsigned flags) {
  return runtime("cudaEventCreateWithFlags", event, flags);
}

int cuEventRecord(void* event, void* stream) {
  return runtime("cudaEventRecord", event, stream);
}

int cuEventSynchronize(void* event) {
  return runtime("cudaEventSynchronize", event);
}

int cuEventQuery(void* event) {
  return runtime("cudaEventQuery", event);
}

int cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  return runtime("cudaEventElapsedTime", milliseconds, begin, end);
}

int cuEventDestroy_v2(void* event) {
  return runtime("cudaEventDestroy", event);
}

}  // extern "C"
