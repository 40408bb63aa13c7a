// SPDX-License-Identifier: Apache-2.0
// Copies and fills of the driver API. A name may have three forms: for the default stream of the process, for
// those of each thread (_ptds), and in a stream (Async, with _ptsz).
#include <cstddef>
#include <cstdint>

#include "../abi.hpp"
#include "contexts.hpp"

using namespace manyscale::cuda_driver;

namespace {

using Address = std::uint64_t;  // CUdeviceptr
using manyscale::cudart::any_direction;
using manyscale::cudart::device_to_device;
using manyscale::cudart::device_to_host;
using manyscale::cudart::host_to_device;

void* pointer(Address address) {
  return reinterpret_cast<void*>(address);
}

void* pointer(const void* host) {
  return const_cast<void*>(host);
}

// How a call names its stream.
struct Form {
  bool waits;
  bool per_thread;
};
constexpr Form kWaits{true, false}, kWaitsForThread{true, true}, kInStream{false, false},
    kInStreamOfThread{false, true};

Result copy(void* to, const void* from, std::size_t bytes, int kind, void* stream, Form form) {
  if (form.waits) return runtime(form.per_thread ? "cudaMemcpy_ptds" : "cudaMemcpy", to, from, bytes, kind);
  return runtime(form.per_thread ? "cudaMemcpyAsync_ptsz" : "cudaMemcpyAsync", to, from, bytes, kind, stream);
}

Result fill(Address address, std::size_t pitch, unsigned value, unsigned element, std::size_t width,
            std::size_t rows, void* stream, Form form) {
  return runtime("__cudaFill", pointer(address), pitch, std::uint64_t{value}, element, width, rows, stream,
                 form.waits, form.per_thread);
}

}  // namespace

#define COPY(name, version, target, source, kind)                                                       \
  extern "C" int name##version(target to, source from, std::size_t bytes) {                             \
    return copy(pointer(to), pointer(from), bytes, kind, nullptr, kWaits);                              \
  }                                                                                                     \
  extern "C" int name##version##_ptds(target to, source from, std::size_t bytes) {                      \
    return copy(pointer(to), pointer(from), bytes, kind, nullptr, kWaitsForThread);                     \
  }                                                                                                     \
  extern "C" int name##Async##version(target to, source from, std::size_t bytes, void* stream) {        \
    return copy(pointer(to), pointer(from), bytes, kind, stream, kInStream);                            \
  }                                                                                                     \
  extern "C" int name##Async##version##_ptsz(target to, source from, std::size_t bytes, void* stream) { \
    return copy(pointer(to), pointer(from), bytes, kind, stream, kInStreamOfThread);                    \
  }

COPY(cuMemcpy, , Address, Address, any_direction)
COPY(cuMemcpyHtoD, _v2, Address, const void*, host_to_device)
COPY(cuMemcpyDtoH, _v2, void*, Address, device_to_host)
COPY(cuMemcpyDtoD, _v2, Address, Address, device_to_device)

#define FILL(bits, type)                                                                                     \
  extern "C" int cuMemsetD##bits##_v2(Address to, type value, std::size_t count) {                           \
    return fill(to, count * sizeof(type), value, sizeof(type), count, 1, nullptr, kWaits);                   \
  }                                                                                                          \
  extern "C" int cuMemsetD##bits##_v2_ptds(Address to, type value, std::size_t count) {                      \
    return fill(to, count * sizeof(type), value, sizeof(type), count, 1, nullptr, kWaitsForThread);          \
  }                                                                                                          \
  extern "C" int cuMemsetD##bits##Async(Address to, type value, std::size_t count, void* stream) {           \
    return fill(to, count * sizeof(type), value, sizeof(type), count, 1, stream, kInStream);                 \
  }                                                                                                          \
  extern "C" int cuMemsetD##bits##Async_ptsz(Address to, type value, std::size_t count, void* stream) {      \
    return fill(to, count * sizeof(type), value, sizeof(type), count, 1, stream, kInStreamOfThread);         \
  }                                                                                                          \
  extern "C" int cuMemsetD2D##bits##_v2(Address to, std::size_t pitch, type value, std::size_t width,        \
                                        std::size_t rows) {                                                  \
    return fill(to, pitch, value, sizeof(type), width, rows, nullptr, kWaits);                               \
  }                                                                                                          \
  extern "C" int cuMemsetD2D##bits##_v2_ptds(Address to, std::size_t pitch, type value, std::size_t width,   \
                                             std::size_t rows) {                                             \
    return fill(to, pitch, value, sizeof(type), width, rows, nullptr, kWaitsForThread);                      \
  }                                                                                                          \
  extern "C" int cuMemsetD2D##bits##Async(Address to, std::size_t pitch, type value, std::size_t width,      \
                                          std::size_t rows, void* stream) {                                  \
    return fill(to, pitch, value, sizeof(type), width, rows, stream, kInStream);                             \
  }                                                                                                          \
  extern "C" int cuMemsetD2D##bits##Async_ptsz(Address to, std::size_t pitch, type value, std::size_t width, \
                                               std::size_t rows, void* stream) {                             \
    return fill(to, pitch, value, sizeof(type), width, rows, stream, kInStreamOfThread);                     \
  }

FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned)

extern "C" {

int cuMemcpyPeer(Address to, const Context* to_context, Address from, const Context* from_context,
                 std::size_t bytes) {
  return runtime("cudaMemcpyPeer", pointer(to), device_of(to_context),
                 static_cast<const void*>(pointer(from)), device_of(from_context), bytes);
}

int cuMemcpyPeerAsync(Address to, const Context* to_context, Address from, const Context* from_context,
                      std::size_t bytes, void* stream) {
  return runtime("cudaMemcpyPeerAsync", pointer(to), device_of(to_context),
                 static_cast<const void*>(pointer(from)), device_of(from_context), bytes, stream);
}

}  // extern "C"
