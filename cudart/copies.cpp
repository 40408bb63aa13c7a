// SPDX-License-Identifier: Apache-2.0
// Copies in all directions and shapes: they all become one operation with rows and slices.
#include <algorithm>

#include "arrays.hpp"
#include "memory.hpp"
#include "operations.hpp"
#include "process.hpp"
#include "registry.hpp"
#include "three_dimensional.hpp"

namespace manyscale::cudart {

namespace {

Error copy(CopyOperation operation, Wait wait, Stream* handle, DefaultStream when_null) {
  if (operation.kind < host_to_host || operation.kind > any_direction) return Error::invalid_copy_direction;
  return with_stream(handle, when_null, [&](Stream& stream) { return enqueue(stream, operation, wait); });
}

CopyOperation flat(void* target, const void* source, std::size_t bytes, CopyKind kind) {
  return {{target, bytes, bytes}, {const_cast<void*>(source), bytes, bytes}, bytes, 1, 1, kind};
}

Error copy_flat(void* target, const void* source, std::size_t bytes, CopyKind kind, Wait wait, Stream* stream,
                DefaultStream when_null) {
  return copy(flat(target, source, bytes, kind), wait, stream, when_null);
}

// Copies inside a program's own arrays and pointers, row by row.
Error copy_rows(Region target, Region source, std::size_t width, std::size_t rows, CopyKind kind, Wait wait,
                Stream* stream, DefaultStream when_null) {
  if (rows > 1 && (width > target.pitch || width > source.pitch)) return Error::invalid_pitch;
  target.slice = target.pitch * rows;
  source.slice = source.pitch * rows;
  return copy({target, source, width, rows, 1, kind}, wait, stream, when_null);
}

Region plain(const void* pointer, std::size_t pitch) {
  return {const_cast<void*>(pointer), pitch, 0};
}

// A part of an array, or an error if it reaches beyond.
Error array_part(const Array* handle, std::size_t x_bytes, std::size_t y, std::size_t width, std::size_t rows,
                 Region& part) {
  const Array* array = find_array(handle);
  if (array == nullptr) return Error::invalid_handle;
  if (x_bytes + width > array->extent.width * array->element_bytes() || y + rows > array->rows())
    return Error::invalid_value;
  part = region_of(*array, x_bytes, y, 0);
  return Error::success;
}

Error copy_to_array(Array* target, std::size_t x, std::size_t y, const void* source, std::size_t pitch,
                    std::size_t width, std::size_t rows, CopyKind kind, Wait wait, Stream* stream,
                    DefaultStream when_null) {
  Region part;
  const Error error = array_part(target, x, y, width, rows, part);
  if (error != Error::success) return error;
  return copy_rows(part, plain(source, pitch), width, rows, kind, wait, stream, when_null);
}

Error copy_from_array(void* target, std::size_t pitch, const Array* source, std::size_t x, std::size_t y,
                      std::size_t width, std::size_t rows, CopyKind kind, Wait wait, Stream* stream,
                      DefaultStream when_null) {
  Region part;
  const Error error = array_part(source, x, y, width, rows, part);
  if (error != Error::success) return error;
  return copy_rows(plain(target, pitch), part, width, rows, kind, wait, stream, when_null);
}

Error copy_between_arrays(Array* target, std::size_t to_x, std::size_t to_y, const Array* source,
                          std::size_t from_x, std::size_t from_y, std::size_t width, std::size_t rows,
                          CopyKind kind, DefaultStream when_null) {
  Region to;
  Region from;
  if (const Error error = array_part(target, to_x, to_y, width, rows, to); error != Error::success)
    return error;
  if (const Error error = array_part(source, from_x, from_y, width, rows, from); error != Error::success)
    return error;
  return copy_rows(to, from, width, rows, kind, Wait::yes, nullptr, when_null);
}

// The copies of old that give a number of bytes, which go on in the next row of the array.
template <class CopyRows>
Error in_rows(const Array* handle, std::size_t x, std::size_t y, std::size_t bytes, CopyRows copy_part) {
  const Array* array = find_array(handle);
  if (array == nullptr) return Error::invalid_handle;
  const std::size_t row_bytes = array->extent.width * array->element_bytes();
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t width = std::min(bytes - done, row_bytes - std::min(x, row_bytes));
    if (width == 0) return Error::invalid_value;
    const std::size_t rows = x == 0 && width == row_bytes ? (bytes - done) / row_bytes : 1;
    if (const Error error = copy_part(x, y, done, width, rows); error != Error::success) return error;
    done += width * rows;
    x = 0;
    y += rows;
  }
  return Error::success;
}

Error bytes_to_array(Array* target, std::size_t x, std::size_t y, const void* source, std::size_t bytes,
                     CopyKind kind, Wait wait, Stream* stream, DefaultStream when_null) {
  return in_rows(
      target, x, y, bytes,
      [&](std::size_t at_x, std::size_t at_y, std::size_t done, std::size_t width, std::size_t rows) {
        return copy_to_array(target, at_x, at_y, static_cast<const std::byte*>(source) + done, width, width,
                             rows, kind, wait, stream, when_null);
      });
}

Error bytes_from_array(void* target, const Array* source, std::size_t x, std::size_t y, std::size_t bytes,
                       CopyKind kind, Wait wait, Stream* stream, DefaultStream when_null) {
  return in_rows(
      source, x, y, bytes,
      [&](std::size_t at_x, std::size_t at_y, std::size_t done, std::size_t width, std::size_t rows) {
        return copy_from_array(static_cast<std::byte*>(target) + done, width, source, at_x, at_y, width, rows,
                               kind, wait, stream, when_null);
      });
}

Error symbol_part(const void* symbol, std::size_t offset, std::size_t bytes, void*& pointer) {
  wire::Symbol::Answer variable{};
  if (const Error error = find_symbol(symbol, variable); error != Error::success) return error;
  if (offset > variable.bytes || bytes > variable.bytes - offset) return Error::invalid_value;
  pointer = reinterpret_cast<void*>(variable.address + offset);
  return Error::success;
}

Error copy_to_symbol(const void* symbol, const void* source, std::size_t bytes, std::size_t offset,
                     CopyKind kind, Wait wait, Stream* stream, DefaultStream when_null) {
  void* target = nullptr;
  const Error error = symbol_part(symbol, offset, bytes, target);
  return error != Error::success ? error : copy_flat(target, source, bytes, kind, wait, stream, when_null);
}

Error copy_from_symbol(void* target, const void* symbol, std::size_t bytes, std::size_t offset, CopyKind kind,
                       Wait wait, Stream* stream, DefaultStream when_null) {
  void* source = nullptr;
  const Error error = symbol_part(symbol, offset, bytes, source);
  return error != Error::success ? error : copy_flat(target, source, bytes, kind, wait, stream, when_null);
}

Error copy_volume(const Copy3DParameters* parameters, Wait wait, Stream* stream, DefaultStream when_null) {
  CopyOperation operation;
  if (parameters == nullptr) return Error::invalid_value;
  const Error error = volume_copy(*parameters, operation);
  return error != Error::success ? error : copy(operation, wait, stream, when_null);
}

Error copy_peer_volume(const Copy3DPeerParameters* parameters, Wait wait, Stream* stream,
                       DefaultStream when_null) {
  if (parameters == nullptr) return Error::invalid_value;
  const Copy3DParameters same{
      parameters->source_array,    parameters->source_position, parameters->source, parameters->target_array,
      parameters->target_position, parameters->target,          parameters->extent, any_direction};
  return copy_volume(&same, wait, stream, when_null);
}

Error copy_peer(void* target, int target_device, const void* source, int source_device, std::size_t bytes,
                Wait wait, Stream* stream) {
  if (const Error error = connect_thread(); error != Error::success) return error;
  for (const int device : {target_device, source_device})
    if (device < 0 || device >= device_count()) return Error::invalid_device;
  return copy_flat(target, source, bytes, any_direction, wait, stream, DefaultStream::legacy);
}

Error copy_batch(void* const* targets, const void* const* sources, const std::size_t* bytes,
                 std::size_t count, Stream* stream, DefaultStream when_null) {
  for (std::size_t i = 0; i < count; ++i) {
    const Error error =
        copy_flat(targets[i], sources[i], bytes[i], any_direction, Wait::no, stream, when_null);
    if (error != Error::success) return error;
  }
  return Error::success;
}

}  // namespace

// Rows and slices of a pitched pointer or an array from a position on. CUDA counts widths and positions in
// elements if an array takes part, in bytes otherwise.
Error volume_copy(const Copy3DParameters& given, CopyOperation& operation) {
  if ((given.source_array == nullptr) == (given.source.pointer == nullptr) ||
      (given.target_array == nullptr) == (given.target.pointer == nullptr))
    return Error::invalid_value;
  const Array* source = find_array(given.source_array);
  const Array* target = find_array(given.target_array);
  if ((given.source_array != nullptr && source == nullptr) ||
      (given.target_array != nullptr && target == nullptr))
    return Error::invalid_handle;
  const std::size_t element = source != nullptr   ? source->element_bytes()
                              : target != nullptr ? target->element_bytes()
                                                  : 1;
  if (source != nullptr && target != nullptr && source->element_bytes() != target->element_bytes())
    return Error::invalid_value;
  operation.width = given.extent.width * element;
  operation.rows = std::max<std::size_t>(given.extent.height, source != nullptr || target != nullptr ? 1 : 0);
  operation.slices =
      std::max<std::size_t>(given.extent.depth, source != nullptr || target != nullptr ? 1 : 0);
  operation.kind = given.kind;
  auto side = [&](const Array* array, const Position& position, const PitchedPointer& pointer,
                  Region& region) {
    if (array != nullptr) {
      if (position.x + given.extent.width > array->extent.width ||
          position.y + operation.rows > array->rows() || position.z + operation.slices > array->slices())
        return Error::invalid_value;
      region = region_of(*array, position.x * element, position.y, position.z);
      return Error::success;
    }
    const std::size_t slice =
        pointer.pitch * std::max<std::size_t>(pointer.height, operation.slices > 1 ? 1 : 0);
    if (operation.rows > 1 && operation.width > pointer.pitch) return Error::invalid_pitch;
    auto* first = static_cast<std::byte*>(pointer.pointer);
    // Positions in pitched memory are in bytes unless an array takes part.
    region = {first + position.x * element + position.y * pointer.pitch + position.z * slice, pointer.pitch,
              slice};
    return Error::success;
  };
  const Error error = side(source, given.source_position, given.source, operation.source);
  return error != Error::success ? error
                                 : side(target, given.target_position, given.target, operation.target);
}

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

namespace {
constexpr auto kLegacy = DefaultStream::legacy;
constexpr auto kOwn = DefaultStream::per_thread;
}  // namespace

extern "C" {

Error cudaMemcpy(void* to, const void* from, std::size_t bytes, CopyKind kind) {
  return finish(copy_flat(to, from, bytes, kind, Wait::yes, nullptr, kLegacy));
}

Error cudaMemcpy_ptds(void* to, const void* from, std::size_t bytes, CopyKind kind) {
  return finish(copy_flat(to, from, bytes, kind, Wait::yes, nullptr, kOwn));
}

Error cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, CopyKind kind, Stream* stream) {
  return finish(copy_flat(to, from, bytes, kind, Wait::no, stream, kLegacy));
}

Error cudaMemcpyAsync_ptsz(void* to, const void* from, std::size_t bytes, CopyKind kind, Stream* stream) {
  return finish(copy_flat(to, from, bytes, kind, Wait::no, stream, kOwn));
}

Error cudaMemcpyBatchAsync(void* const* to, const void* const* from, const std::size_t* bytes,
                           std::size_t count, void*, std::size_t*, std::size_t, Stream* stream) {
  return finish(copy_batch(to, from, bytes, count, stream, kLegacy));
}

Error cudaMemcpyBatchAsync_ptsz(void* const* to, const void* const* from, const std::size_t* bytes,
                                std::size_t count, void*, std::size_t*, std::size_t, Stream* stream) {
  return finish(copy_batch(to, from, bytes, count, stream, kOwn));
}

Error cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, std::size_t bytes) {
  return finish(copy_peer(to, to_device, from, from_device, bytes, Wait::yes, nullptr));
}

Error cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                          Stream* stream) {
  return finish(copy_peer(to, to_device, from, from_device, bytes, Wait::no, stream));
}

Error cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                   std::size_t width, std::size_t rows, CopyKind kind) {
  return finish(copy_rows(plain(to, to_pitch), plain(from, from_pitch), width, rows, kind, Wait::yes, nullptr,
                          kLegacy));
}

Error cudaMemcpy2D_ptds(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                        std::size_t width, std::size_t rows, CopyKind kind) {
  return finish(
      copy_rows(plain(to, to_pitch), plain(from, from_pitch), width, rows, kind, Wait::yes, nullptr, kOwn));
}

Error cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                        std::size_t width, std::size_t rows, CopyKind kind, Stream* stream) {
  return finish(
      copy_rows(plain(to, to_pitch), plain(from, from_pitch), width, rows, kind, Wait::no, stream, kLegacy));
}

Error cudaMemcpy2DAsync_ptsz(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                             std::size_t width, std::size_t rows, CopyKind kind, Stream* stream) {
  return finish(
      copy_rows(plain(to, to_pitch), plain(from, from_pitch), width, rows, kind, Wait::no, stream, kOwn));
}

Error cudaMemcpy2DToArray(Array* to, std::size_t x, std::size_t y, const void* from, std::size_t pitch,
                          std::size_t width, std::size_t rows, CopyKind kind) {
  return finish(copy_to_array(to, x, y, from, pitch, width, rows, kind, Wait::yes, nullptr, kLegacy));
}

Error cudaMemcpy2DToArray_ptds(Array* to, std::size_t x, std::size_t y, const void* from, std::size_t pitch,
                               std::size_t width, std::size_t rows, CopyKind kind) {
  return finish(copy_to_array(to, x, y, from, pitch, width, rows, kind, Wait::yes, nullptr, kOwn));
}

Error cudaMemcpy2DToArrayAsync(Array* to, std::size_t x, std::size_t y, const void* from, std::size_t pitch,
                               std::size_t width, std::size_t rows, CopyKind kind, Stream* stream) {
  return finish(copy_to_array(to, x, y, from, pitch, width, rows, kind, Wait::no, stream, kLegacy));
}

Error cudaMemcpy2DToArrayAsync_ptsz(Array* to, std::size_t x, std::size_t y, const void* from,
                                    std::size_t pitch, std::size_t width, std::size_t rows, CopyKind kind,
                                    Stream* stream) {
  return finish(copy_to_array(to, x, y, from, pitch, width, rows, kind, Wait::no, stream, kOwn));
}

Error cudaMemcpy2DFromArray(void* to, std::size_t pitch, const Array* from, std::size_t x, std::size_t y,
                            std::size_t width, std::size_t rows, CopyKind kind) {
  return finish(copy_from_array(to, pitch, from, x, y, width, rows, kind, Wait::yes, nullptr, kLegacy));
}

Error cudaMemcpy2DFromArray_ptds(void* to, std::size_t pitch, const Array* from, std::size_t x, std::size_t y,
                                 std::size_t width, std::size_t rows, CopyKind kind) {
  return finish(copy_from_array(to, pitch, from, x, y, width, rows, kind, Wait::yes, nullptr, kOwn));
}

Error cudaMemcpy2DFromArrayAsync(void* to, std::size_t pitch, const Array* from, std::size_t x, std::size_t y,
                                 std::size_t width, std::size_t rows, CopyKind kind, Stream* stream) {
  return finish(copy_from_array(to, pitch, from, x, y, width, rows, kind, Wait::no, stream, kLegacy));
}

Error cudaMemcpy2DFromArrayAsync_ptsz(void* to, std::size_t pitch, const Array* from, std::size_t x,
                                      std::size_t y, std::size_t width, std::size_t rows, CopyKind kind,
                                      Stream* stream) {
  return finish(copy_from_array(to, pitch, from, x, y, width, rows, kind, Wait::no, stream, kOwn));
}

Error cudaMemcpy2DArrayToArray(Array* to, std::size_t to_x, std::size_t to_y, const Array* from,
                               std::size_t from_x, std::size_t from_y, std::size_t width, std::size_t rows,
                               CopyKind kind) {
  return finish(copy_between_arrays(to, to_x, to_y, from, from_x, from_y, width, rows, kind, kLegacy));
}

Error cudaMemcpy2DArrayToArray_ptds(Array* to, std::size_t to_x, std::size_t to_y, const Array* from,
                                    std::size_t from_x, std::size_t from_y, std::size_t width,
                                    std::size_t rows, CopyKind kind) {
  return finish(copy_between_arrays(to, to_x, to_y, from, from_x, from_y, width, rows, kind, kOwn));
}

Error cudaMemcpyArrayToArray(Array* to, std::size_t to_x, std::size_t to_y, const Array* from,
                             std::size_t from_x, std::size_t from_y, std::size_t bytes, CopyKind kind) {
  return finish(copy_between_arrays(to, to_x, to_y, from, from_x, from_y, bytes, 1, kind, kLegacy));
}

Error cudaMemcpyArrayToArray_ptds(Array* to, std::size_t to_x, std::size_t to_y, const Array* from,
                                  std::size_t from_x, std::size_t from_y, std::size_t bytes, CopyKind kind) {
  return finish(copy_between_arrays(to, to_x, to_y, from, from_x, from_y, bytes, 1, kind, kOwn));
}

Error cudaMemcpyToArray(Array* to, std::size_t x, std::size_t y, const void* from, std::size_t bytes,
                        CopyKind kind) {
  return finish(bytes_to_array(to, x, y, from, bytes, kind, Wait::yes, nullptr, kLegacy));
}

Error cudaMemcpyToArray_ptds(Array* to, std::size_t x, std::size_t y, const void* from, std::size_t bytes,
                             CopyKind kind) {
  return finish(bytes_to_array(to, x, y, from, bytes, kind, Wait::yes, nullptr, kOwn));
}

Error cudaMemcpyToArrayAsync(Array* to, std::size_t x, std::size_t y, const void* from, std::size_t bytes,
                             CopyKind kind, Stream* stream) {
  return finish(bytes_to_array(to, x, y, from, bytes, kind, Wait::no, stream, kLegacy));
}

Error cudaMemcpyToArrayAsync_ptsz(Array* to, std::size_t x, std::size_t y, const void* from,
                                  std::size_t bytes, CopyKind kind, Stream* stream) {
  return finish(bytes_to_array(to, x, y, from, bytes, kind, Wait::no, stream, kOwn));
}

Error cudaMemcpyFromArray(void* to, const Array* from, std::size_t x, std::size_t y, std::size_t bytes,
                          CopyKind kind) {
  return finish(bytes_from_array(to, from, x, y, bytes, kind, Wait::yes, nullptr, kLegacy));
}

Error cudaMemcpyFromArray_ptds(void* to, const Array* from, std::size_t x, std::size_t y, std::size_t bytes,
                               CopyKind kind) {
  return finish(bytes_from_array(to, from, x, y, bytes, kind, Wait::yes, nullptr, kOwn));
}

Error cudaMemcpyFromArrayAsync(void* to, const Array* from, std::size_t x, std::size_t y, std::size_t bytes,
                               CopyKind kind, Stream* stream) {
  return finish(bytes_from_array(to, from, x, y, bytes, kind, Wait::no, stream, kLegacy));
}

Error cudaMemcpyFromArrayAsync_ptsz(void* to, const Array* from, std::size_t x, std::size_t y,
                                    std::size_t bytes, CopyKind kind, Stream* stream) {
  return finish(bytes_from_array(to, from, x, y, bytes, kind, Wait::no, stream, kOwn));
}

Error cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                         CopyKind kind) {
  return finish(copy_to_symbol(symbol, from, bytes, offset, kind, Wait::yes, nullptr, kLegacy));
}

Error cudaMemcpyToSymbol_ptds(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                              CopyKind kind) {
  return finish(copy_to_symbol(symbol, from, bytes, offset, kind, Wait::yes, nullptr, kOwn));
}

Error cudaMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                              CopyKind kind, Stream* stream) {
  return finish(copy_to_symbol(symbol, from, bytes, offset, kind, Wait::no, stream, kLegacy));
}

Error cudaMemcpyToSymbolAsync_ptsz(const void* symbol, const void* from, std::size_t bytes,
                                   std::size_t offset, CopyKind kind, Stream* stream) {
  return finish(copy_to_symbol(symbol, from, bytes, offset, kind, Wait::no, stream, kOwn));
}

Error cudaMemcpyFromSymbol(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                           CopyKind kind) {
  return finish(copy_from_symbol(to, symbol, bytes, offset, kind, Wait::yes, nullptr, kLegacy));
}

Error cudaMemcpyFromSymbol_ptds(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                                CopyKind kind) {
  return finish(copy_from_symbol(to, symbol, bytes, offset, kind, Wait::yes, nullptr, kOwn));
}

Error cudaMemcpyFromSymbolAsync(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                                CopyKind kind, Stream* stream) {
  return finish(copy_from_symbol(to, symbol, bytes, offset, kind, Wait::no, stream, kLegacy));
}

Error cudaMemcpyFromSymbolAsync_ptsz(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                                     CopyKind kind, Stream* stream) {
  return finish(copy_from_symbol(to, symbol, bytes, offset, kind, Wait::no, stream, kOwn));
}

Error cudaMemcpy3D(const Copy3DParameters* parameters) {
  return finish(copy_volume(parameters, Wait::yes, nullptr, kLegacy));
}

Error cudaMemcpy3D_ptds(const Copy3DParameters* parameters) {
  return finish(copy_volume(parameters, Wait::yes, nullptr, kOwn));
}

Error cudaMemcpy3DAsync(const Copy3DParameters* parameters, Stream* stream) {
  return finish(copy_volume(parameters, Wait::no, stream, kLegacy));
}

Error cudaMemcpy3DAsync_ptsz(const Copy3DParameters* parameters, Stream* stream) {
  return finish(copy_volume(parameters, Wait::no, stream, kOwn));
}

Error cudaMemcpy3DPeer(const Copy3DPeerParameters* parameters) {
  return finish(copy_peer_volume(parameters, Wait::yes, nullptr, kLegacy));
}

Error cudaMemcpy3DPeer_ptds(const Copy3DPeerParameters* parameters) {
  return finish(copy_peer_volume(parameters, Wait::yes, nullptr, kOwn));
}

Error cudaMemcpy3DPeerAsync(const Copy3DPeerParameters* parameters, Stream* stream) {
  return finish(copy_peer_volume(parameters, Wait::no, stream, kLegacy));
}

Error cudaMemcpy3DPeerAsync_ptsz(const Copy3DPeerParameters* parameters, Stream* stream) {
  return finish(copy_peer_volume(parameters, Wait::no, stream, kOwn));
}

}  // extern "C"
