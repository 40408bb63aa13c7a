// SPDX-License-Identifier: Apache-2.0
// cudaMemset in its shapes.
#include "memory.hpp"
#include "operations.hpp"
#include "process.hpp"

namespace manyscale::cudart {

namespace {

Error fill(Region target, int value, Extent extent, Wait wait, Stream* handle, DefaultStream when_null) {
  if (extent.width != 0 && extent.height != 0 && extent.depth != 0) {
    if (target.pointer == nullptr) return Error::invalid_value;
    if ((extent.height > 1 || extent.depth > 1) && target.pitch < extent.width) return Error::invalid_value;
  }
  const FillOperation operation{
      target, extent.width, extent.height, extent.depth, static_cast<std::uint32_t>(value) & 0xffu, 1};
  return with_stream(handle, when_null, [&](Stream& stream) { return enqueue(stream, operation, wait); });
}

Error fill_rows(void* target, std::size_t pitch, int value, std::size_t width, std::size_t rows, Wait wait,
                Stream* stream, DefaultStream when_null) {
  return fill({target, pitch, pitch * rows}, value, {width, rows, 1}, wait, stream, when_null);
}

Error fill_volume(const PitchedPointer& target, int value, Extent extent, Wait wait, Stream* stream,
                  DefaultStream when_null) {
  return fill({target.pointer, target.pitch, target.pitch * target.height}, value, extent, wait, stream,
              when_null);
}

constexpr auto kLegacy = DefaultStream::legacy;
constexpr auto kOwn = DefaultStream::per_thread;

}  // namespace

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

extern "C" {

Error cudaMemset(void* target, int value, std::size_t bytes) {
  return finish(fill_rows(target, bytes, value, bytes, 1, Wait::yes, nullptr, kLegacy));
}

Error cudaMemset_ptds(void* target, int value, std::size_t bytes) {
  return finish(fill_rows(target, bytes, value, bytes, 1, Wait::yes, nullptr, kOwn));
}

Error cudaMemsetAsync(void* target, int value, std::size_t bytes, Stream* stream) {
  return finish(fill_rows(target, bytes, value, bytes, 1, Wait::no, stream, kLegacy));
}

Error cudaMemsetAsync_ptsz(void* target, int value, std::size_t bytes, Stream* stream) {
  return finish(fill_rows(target, bytes, value, bytes, 1, Wait::no, stream, kOwn));
}

Error cudaMemset2D(void* target, std::size_t pitch, int value, std::size_t width, std::size_t rows) {
  return finish(fill_rows(target, pitch, value, width, rows, Wait::yes, nullptr, kLegacy));
}

Error cudaMemset2D_ptds(void* target, std::size_t pitch, int value, std::size_t width, std::size_t rows) {
  return finish(fill_rows(target, pitch, value, width, rows, Wait::yes, nullptr, kOwn));
}

Error cudaMemset2DAsync(void* target, std::size_t pitch, int value, std::size_t width, std::size_t rows,
                        Stream* stream) {
  return finish(fill_rows(target, pitch, value, width, rows, Wait::no, stream, kLegacy));
}

Error cudaMemset2DAsync_ptsz(void* target, std::size_t pitch, int value, std::size_t width, std::size_t rows,
                             Stream* stream) {
  return finish(fill_rows(target, pitch, value, width, rows, Wait::no, stream, kOwn));
}

Error cudaMemset3D(PitchedPointer target, int value, Extent extent) {
  return finish(fill_volume(target, value, extent, Wait::yes, nullptr, kLegacy));
}

Error cudaMemset3D_ptds(PitchedPointer target, int value, Extent extent) {
  return finish(fill_volume(target, value, extent, Wait::yes, nullptr, kOwn));
}

Error cudaMemset3DAsync(PitchedPointer target, int value, Extent extent, Stream* stream) {
  return finish(fill_volume(target, value, extent, Wait::no, stream, kLegacy));
}

Error cudaMemset3DAsync_ptsz(PitchedPointer target, int value, Extent extent, Stream* stream) {
  return finish(fill_volume(target, value, extent, Wait::no, stream, kOwn));
}

// Of our driver: elements of 1, 2, 4 or 8 bytes; the width counts them.
Error __cudaFill(void* target, std::size_t pitch, std::uint64_t value, unsigned element, std::size_t width,
                 std::size_t rows, Stream* handle, bool wait, bool per_thread) {
  if (element != 1 && element != 2 && element != 4 && element != 8) return finish(Error::invalid_value);
  const std::uint64_t address = reinterpret_cast<std::uint64_t>(target);
  if (address % element != 0 || (rows > 1 && (pitch % element != 0 || pitch < width * element)))
    return finish(Error::invalid_value);
  const FillOperation operation{{target, pitch, pitch * rows}, width, rows, 1, value, element};
  return finish(with_stream(handle, per_thread ? kOwn : kLegacy, [&](Stream& stream) {
    return enqueue(stream, operation, wait ? Wait::yes : Wait::no);
  }));
}

// Of our driver: what comes later in the stream waits for a value in memory.
Error __cudaWaitForValue(const void* pointer, std::uint64_t value, unsigned bits, unsigned comparison,
                         Stream* handle, bool per_thread) {
  if (const Error error = connect_thread(); error != Error::success) return finish(error);
  const std::uint64_t address = device_address(pointer);
  if (address == 0) return finish(Error::invalid_value);
  return finish(with_stream(handle, per_thread ? kOwn : kLegacy, [&](Stream& stream) {
    if (stream.capture != nullptr) return Error::capture_unsupported;
    return call<wire::StreamWaitValue>({stream.number, bits, address, value, comparison});
  }));
}

}  // extern "C"
