// SPDX-License-Identifier: Apache-2.0
// Copies of rows and slices, from and to memory and arrays. The driver counts in bytes; the runtime in
// elements where an array takes part.
#include "strided_copies.hpp"

#include <cstdint>

#include "arrays.hpp"

using namespace manyscale::cuda_driver;
using manyscale::cudart::Array;
using manyscale::cudart::Copy3DParameters;

namespace {

enum MemoryType : int { host_memory = 1, device_memory = 2, array_memory = 3, unified_memory = 4 };

// One side of CUDA_MEMCPY2D.
struct Side2D {
  std::size_t x, y;
  MemoryType type;
  void* host;
  void* device;
  Array* array;
  std::size_t pitch;
};

// CUDA_MEMCPY2D
struct Copy2D {
  Side2D source, target;
  std::size_t width, height;
};

Result put_side(const CopySide3D& given, std::size_t element, std::size_t width, std::size_t height,
                manyscale::cudart::PitchedPointer& pointer, Array*& array,
                manyscale::cudart::Position& position) {
  position = {given.x / element, given.y, given.z};
  switch (given.type) {
    case array_memory:
      if (given.array == nullptr || given.x % element != 0 || given.level != 0) return invalid_value;
      array = given.array;
      return success;
    case host_memory:
      pointer = {given.host, given.pitch, width, given.height};
      break;
    case device_memory:
    case unified_memory:
      pointer = {given.device, given.pitch, width, given.height};
      break;
    default:
      return invalid_value;
  }
  if (given.x % element != 0) return not_supported;
  // Of a single row or slice the program need not tell how far apart they are.
  if (pointer.pitch == 0) pointer.pitch = given.x + width;
  if (pointer.height == 0) pointer.height = given.y + height;
  return success;
}

manyscale::cudart::CopyKind direction(int from, int to) {
  if (from == unified_memory || to == unified_memory) return manyscale::cudart::any_direction;
  if (from == host_memory)
    return to == host_memory ? manyscale::cudart::host_to_host : manyscale::cudart::host_to_device;
  return to == host_memory ? manyscale::cudart::device_to_host : manyscale::cudart::device_to_device;
}

Copy3D expand(const Copy2D& given) {
  auto side = [](const Side2D& from) {
    return CopySide3D{from.x,      from.y,     0,       0,          from.type, from.host,
                      from.device, from.array, nullptr, from.pitch, 0};
  };
  return {side(given.source), side(given.target), given.width, given.height, 1};
}

Result perform(const Copy3D* given, void* stream, const char* name, bool waits) {
  Copy3DParameters made{};
  if (given == nullptr) return invalid_value;
  if (const Result error = to_runtime(*given, made); error != success) return error;
  const auto* parameters = static_cast<const Copy3DParameters*>(&made);
  return waits ? runtime(name, parameters) : runtime(name, parameters, stream);
}

Result perform(const Copy2D* given, void* stream, const char* name, bool waits) {
  if (given == nullptr) return invalid_value;
  const Copy3D expanded = expand(*given);
  return perform(&expanded, stream, name, waits);
}

// A part of one row of an array.
CopySide3D in_array(Array* array, std::size_t offset) {
  return {offset, 0, 0, 0, array_memory, nullptr, nullptr, array, nullptr, 0, 0};
}

CopySide3D on_host(const void* pointer) {
  return {0, 0, 0, 0, host_memory, const_cast<void*>(pointer), nullptr, nullptr, nullptr, 0, 0};
}

CopySide3D on_device(std::uint64_t address) {
  return {0, 0, 0, 0, device_memory, nullptr, reinterpret_cast<void*>(address), nullptr, nullptr, 0, 0};
}

Result copy_row(const CopySide3D& target, const CopySide3D& source, std::size_t bytes, void* stream,
                const char* name, bool waits) {
  if (bytes == 0) return success;
  const Copy3D copy{source, target, bytes, 1, 1};
  return perform(&copy, stream, name, waits);
}

}  // namespace

namespace manyscale::cuda_driver {

Result to_runtime(const Copy3D& given, Copy3DParameters& made) {
  std::size_t element = 1;
  for (const CopySide3D* side : {&given.source, &given.target}) {
    if (side->type != array_memory) continue;
    element = element_bytes(side->array);
    if (element == 0) return invalid_handle;
  }
  if (given.width % element != 0) return invalid_value;
  made = {};
  made.extent = {given.width / element, given.height, given.depth};
  made.kind = direction(given.source.type, given.target.type);
  const Result error = put_side(given.source, element, given.width, given.height, made.source,
                                made.source_array, made.source_position);
  if (error != success) return error;
  return put_side(given.target, element, given.width, given.height, made.target, made.target_array,
                  made.target_position);
}

}  // namespace manyscale::cuda_driver

extern "C" {

int cuMemcpy2D_v2(const Copy2D* copy) {
  return perform(copy, nullptr, "cudaMemcpy3D", true);
}

int cuMemcpy2D_v2_ptds(const Copy2D* copy) {
  return perform(copy, nullptr, "cudaMemcpy3D_ptds", true);
}

int cuMemcpy2DUnaligned_v2(const Copy2D* copy) {
  return perform(copy, nullptr, "cudaMemcpy3D", true);
}

int cuMemcpy2DUnaligned_v2_ptds(const Copy2D* copy) {
  return perform(copy, nullptr, "cudaMemcpy3D_ptds", true);
}

int cuMemcpy2DAsync_v2(const Copy2D* copy, void* stream) {
  return perform(copy, stream, "cudaMemcpy3DAsync", false);
}

int cuMemcpy2DAsync_v2_ptsz(const Copy2D* copy, void* stream) {
  return perform(copy, stream, "cudaMemcpy3DAsync_ptsz", false);
}

int cuMemcpy3D_v2(const Copy3D* copy) {
  return perform(copy, nullptr, "cudaMemcpy3D", true);
}

int cuMemcpy3D_v2_ptds(const Copy3D* copy) {
  return perform(copy, nullptr, "cudaMemcpy3D_ptds", true);
}

int cuMemcpy3DAsync_v2(const Copy3D* copy, void* stream) {
  return perform(copy, stream, "cudaMemcpy3DAsync", false);
}

int cuMemcpy3DAsync_v2_ptsz(const Copy3D* copy, void* stream) {
  return perform(copy, stream, "cudaMemcpy3DAsync_ptsz", false);
}

// Between devices: all have one address space, so the contexts do not matter.
int cuMemcpy3DPeer(const Copy3D* copy) {
  return perform(copy, nullptr, "cudaMemcpy3D", true);
}

int cuMemcpy3DPeer_ptds(const Copy3D* copy) {
  return perform(copy, nullptr, "cudaMemcpy3D_ptds", true);
}

int cuMemcpy3DPeerAsync(const Copy3D* copy, void* stream) {
  return perform(copy, stream, "cudaMemcpy3DAsync", false);
}

int cuMemcpy3DPeerAsync_ptsz(const Copy3D* copy, void* stream) {
  return perform(copy, stream, "cudaMemcpy3DAsync_ptsz", false);
}

}  // extern "C"

// Parts of rows of arrays, by an offset in bytes.
#define OF_ARRAYS(ending, name)                                                                              \
  extern "C" int cuMemcpyHtoA_v2##ending(Array* to, std::size_t at, const void* from, std::size_t bytes) {   \
    return copy_row(in_array(to, at), on_host(from), bytes, nullptr, name, true);                            \
  }                                                                                                          \
  extern "C" int cuMemcpyAtoH_v2##ending(void* to, Array* from, std::size_t at, std::size_t bytes) {         \
    return copy_row(on_host(to), in_array(from, at), bytes, nullptr, name, true);                            \
  }                                                                                                          \
  extern "C" int cuMemcpyDtoA_v2##ending(Array* to, std::size_t at, std::uint64_t from, std::size_t bytes) { \
    return copy_row(in_array(to, at), on_device(from), bytes, nullptr, name, true);                          \
  }                                                                                                          \
  extern "C" int cuMemcpyAtoD_v2##ending(std::uint64_t to, Array* from, std::size_t at, std::size_t bytes) { \
    return copy_row(on_device(to), in_array(from, at), bytes, nullptr, name, true);                          \
  }                                                                                                          \
  extern "C" int cuMemcpyAtoA_v2##ending(Array* to, std::size_t at, Array* from, std::size_t from_at,        \
                                         std::size_t bytes) {                                                \
    return copy_row(in_array(to, at), in_array(from, from_at), bytes, nullptr, name, true);                  \
  }

#define OF_ARRAYS_IN_STREAM(ending, name)                                                               \
  extern "C" int cuMemcpyHtoAAsync_v2##ending(Array* to, std::size_t at, const void* from,              \
                                              std::size_t bytes, void* stream) {                        \
    return copy_row(in_array(to, at), on_host(from), bytes, stream, name, false);                       \
  }                                                                                                     \
  extern "C" int cuMemcpyAtoHAsync_v2##ending(void* to, Array* from, std::size_t at, std::size_t bytes, \
                                              void* stream) {                                           \
    return copy_row(on_host(to), in_array(from, at), bytes, stream, name, false);                       \
  }

OF_ARRAYS(, "cudaMemcpy3D")
OF_ARRAYS(_ptds, "cudaMemcpy3D_ptds")
OF_ARRAYS_IN_STREAM(, "cudaMemcpy3DAsync")
OF_ARRAYS_IN_STREAM(_ptsz, "cudaMemcpy3DAsync_ptsz")
