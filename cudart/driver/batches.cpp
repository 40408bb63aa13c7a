// SPDX-License-Identifier: Apache-2.0
// Copies and prefetches of many ranges in one call, one after the other in the stream; hints about their
// order are not taken. Pools by the location of their memory.
#include <cstddef>
#include <cstdint>

#include "../abi.hpp"
#include "runtime_calls.hpp"

using namespace manyscale::cuda_driver;
using manyscale::cudart::MemoryLocation;

extern "C" {
int cuMemPrefetchAsync_v2(std::uint64_t, std::size_t, MemoryLocation, unsigned, void*);
int cuMemPrefetchAsync_v2_ptsz(std::uint64_t, std::size_t, MemoryLocation, unsigned, void*);
int cuDeviceGetDefaultMemPool(void** pool, int device);
int cuDeviceGetMemPool(void** pool, int device);
int cuDeviceSetMemPool(int device, void* pool);
}

namespace {

using Address = std::uint64_t;  // CUdeviceptr

Result copy_all(const Address* to, const Address* from, const std::size_t* bytes, std::size_t count,
                std::size_t* failed, void* stream, const char* name) {
  if (to == nullptr || from == nullptr || bytes == nullptr || count == 0) return invalid_value;
  constexpr int any_direction = 4;
  for (std::size_t i = 0; i < count; ++i) {
    const Result error = runtime(name, reinterpret_cast<void*>(to[i]), reinterpret_cast<const void*>(from[i]),
                                 bytes[i], any_direction, stream);
    if (error == success) continue;
    if (failed != nullptr) *failed = i;
    return error;
  }
  return success;
}

using Prefetch = int (*)(Address, std::size_t, MemoryLocation, unsigned, void*);

// A location is that of all ranges from its first one to the first one of the next.
int prefetch_all(const Address* ranges, const std::size_t* bytes, std::size_t count,
                 const MemoryLocation* locations, const std::size_t* firsts, std::size_t location_count,
                 void* stream, Prefetch prefetch) {
  if (ranges == nullptr || bytes == nullptr || count == 0 || locations == nullptr || firsts == nullptr ||
      location_count == 0 || location_count > count || firsts[0] != 0)
    return invalid_value;
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    while (at + 1 < location_count && firsts[at + 1] <= i) ++at;
    if (const int error = prefetch(ranges[i], bytes[i], locations[at], 0, stream); error != success)
      return error;
  }
  return success;
}

// Pools are on devices, and their memory is not managed.
bool is_of_device(const MemoryLocation* location, int type) {
  constexpr int pinned = 1, a_device = 1;
  return location != nullptr && location->type == a_device && type == pinned;
}

}  // namespace

extern "C" {

int cuMemcpyBatchAsync(Address* to, Address* from, std::size_t* bytes, std::size_t count, void*, std::size_t*,
                       std::size_t, std::size_t* failed, void* stream) {
  return copy_all(to, from, bytes, count, failed, stream, "cudaMemcpyAsync");
}

int cuMemcpyBatchAsync_ptsz(Address* to, Address* from, std::size_t* bytes, std::size_t count, void*,
                            std::size_t*, std::size_t, std::size_t* failed, void* stream) {
  return copy_all(to, from, bytes, count, failed, stream, "cudaMemcpyAsync_ptsz");
}

int cuMemcpyBatchAsync_v2(Address* to, Address* from, std::size_t* bytes, std::size_t count, void*,
                          std::size_t*, std::size_t, void* stream) {
  return copy_all(to, from, bytes, count, nullptr, stream, "cudaMemcpyAsync");
}

int cuMemcpyBatchAsync_v2_ptsz(Address* to, Address* from, std::size_t* bytes, std::size_t count, void*,
                               std::size_t*, std::size_t, void* stream) {
  return copy_all(to, from, bytes, count, nullptr, stream, "cudaMemcpyAsync_ptsz");
}

int cuMemPrefetchBatchAsync(Address* ranges, std::size_t* bytes, std::size_t count, MemoryLocation* locations,
                            std::size_t* firsts, std::size_t location_count, unsigned long long,
                            void* stream) {
  return prefetch_all(ranges, bytes, count, locations, firsts, location_count, stream, cuMemPrefetchAsync_v2);
}

int cuMemPrefetchBatchAsync_ptsz(Address* ranges, std::size_t* bytes, std::size_t count,
                                 MemoryLocation* locations, std::size_t* firsts, std::size_t location_count,
                                 unsigned long long, void* stream) {
  return prefetch_all(ranges, bytes, count, locations, firsts, location_count, stream,
                      cuMemPrefetchAsync_v2_ptsz);
}

int cuMemGetDefaultMemPool(void** pool, const MemoryLocation* location, int type) {
  return is_of_device(location, type) ? cuDeviceGetDefaultMemPool(pool, location->id) : not_supported;
}

int cuMemGetMemPool(void** pool, const MemoryLocation* location, int type) {
  return is_of_device(location, type) ? cuDeviceGetMemPool(pool, location->id) : not_supported;
}

int cuMemSetMemPool(const MemoryLocation* location, int type, void* pool) {
  return is_of_device(location, type) ? cuDeviceSetMemPool(location->id, pool) : not_supported;
}

// What a profiler of long ago was told; nothing depends on it.
int cuProfilerInitialize(const char*, const char*, int) {
  return success;
}

// No stream is in a green context.
int cuStreamGetGreenCtx(void*, void** context) {
  if (context == nullptr) return invalid_value;
  *context = nullptr;
  return success;
}

// No context is limited to some of the SMs.
int cuDeviceGetExecAffinitySupport(int* supported, int, int) {
  if (supported == nullptr) return invalid_value;
  *supported = 0;
  return success;
}

}  // extern "C"
