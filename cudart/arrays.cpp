// SPDX-License-Identifier: Apache-2.0
#include "arrays.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "memory.hpp"
#include "process.hpp"

namespace manyscale::cudart {

namespace {

constexpr std::uint64_t kRowAlignment = 32;
constexpr std::uint64_t kLevelAlignment = 512;

struct Arrays {
  std::mutex mutex;
  std::unordered_map<const void*, std::unique_ptr<Array>> plain;
  std::unordered_map<const void*, std::unique_ptr<MipmappedArray>> mipmapped;
};

Arrays& arrays() {
  static Arrays& only = *new Arrays;
  return only;
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) {
  return (value + to - 1) / to * to;
}

bool valid(const ChannelFormat& format) {
  // Channels are 8, 16 or 32 bits wide, from x on without gaps.
  bool ended = false;
  for (const int bits : {format.x, format.y, format.z, format.w}) {
    if (bits == 0) {
      ended = true;
    } else if (ended || (bits != 8 && bits != 16 && bits != 32)) {
      return false;
    }
  }
  return format.x != 0 && format.kind >= 0 && format.kind <= 3;
}

// Everything of an array but where it is; the bytes it takes.
std::uint64_t shape(Array& array) {
  array.pitch = round_up(array.extent.width * array.element_bytes(), kRowAlignment);
  array.slice = array.pitch * array.rows();
  return array.slice * array.slices();
}

Error make_array(const ChannelFormat* format, Extent extent, unsigned flags, Array& made,
                 std::uint64_t& bytes) {
  if (format == nullptr || !valid(*format)) return Error::invalid_channel_descriptor;
  constexpr std::size_t largest = std::size_t{1} << 28;
  if (extent.width == 0 || extent.width > largest || extent.height > largest || extent.depth > largest)
    return Error::invalid_value;
  made.format = *format;
  made.extent = extent;
  made.flags = flags;
  bytes = shape(made);
  return bytes > (std::uint64_t{1} << 40) ? Error::memory_allocation : Error::success;
}

Error create_array(Array** handle, const ChannelFormat* format, Extent extent, unsigned flags) {
  if (handle == nullptr) return Error::invalid_value;
  auto array = std::make_unique<Array>();
  std::uint64_t bytes = 0;
  if (const Error error = make_array(format, extent, flags, *array, bytes); error != Error::success)
    return error;
  Allocation memory;
  if (const Error error = allocate(MemoryKind::device, bytes, 0, memory); error != Error::success)
    return error;
  array->address = memory.address;
  *handle = array.get();
  Arrays& known = arrays();
  const std::lock_guard lock(known.mutex);
  known.plain.emplace(*handle, std::move(array));
  return Error::success;
}

Error free_array(Array* handle) {
  if (handle == nullptr) return Error::success;
  Arrays& known = arrays();
  std::unique_ptr<Array> gone;
  {
    const std::lock_guard lock(known.mutex);
    auto node = known.plain.extract(handle);
    if (node.empty()) return Error::invalid_handle;
    gone = std::move(node.mapped());
  }
  return release(gone->address);
}

Error create_mipmapped(MipmappedArray** handle, const ChannelFormat* format, Extent extent, unsigned levels,
                       unsigned flags) {
  if (handle == nullptr) return Error::invalid_value;
  const std::size_t longest = std::max({extent.width, extent.height, (flags & 1) != 0 ? 0 : extent.depth});
  const unsigned most = static_cast<unsigned>(std::bit_width(longest));
  levels = std::clamp(levels, 1u, std::max(most, 1u));
  auto made = std::make_unique<MipmappedArray>();
  std::uint64_t total = 0;
  std::vector<std::uint64_t> offsets;
  for (unsigned level = 0; level < levels; ++level) {
    auto shrink = [&](std::size_t size) { return size == 0 ? 0 : std::max<std::size_t>(size >> level, 1); };
    Array array;
    std::uint64_t bytes = 0;
    const Extent smaller{shrink(extent.width), shrink(extent.height),
                         (flags & 1) != 0 ? extent.depth : shrink(extent.depth)};
    if (const Error error = make_array(format, smaller, flags, array, bytes); error != Error::success)
      return error;
    array.level = true;
    offsets.push_back(total);
    total += round_up(bytes, kLevelAlignment);
    made->levels.push_back(array);
  }
  Allocation memory;
  if (const Error error = allocate(MemoryKind::device, total, 0, memory); error != Error::success)
    return error;
  for (unsigned level = 0; level < levels; ++level)
    made->levels[level].address = memory.address + offsets[level];
  *handle = made.get();
  Arrays& known = arrays();
  const std::lock_guard lock(known.mutex);
  known.mipmapped.emplace(*handle, std::move(made));
  return Error::success;
}

Error free_mipmapped(MipmappedArray* handle) {
  if (handle == nullptr) return Error::success;
  Arrays& known = arrays();
  std::unique_ptr<MipmappedArray> gone;
  {
    const std::lock_guard lock(known.mutex);
    auto node = known.mipmapped.extract(handle);
    if (node.empty()) return Error::invalid_handle;
    gone = std::move(node.mapped());
  }
  return release(gone->levels.front().address);
}

}  // namespace

std::size_t Array::element_bytes() const {
  return static_cast<std::size_t>(format.x + format.y + format.z + format.w) / 8;
}

Array* find_array(const Array* handle) {
  if (handle == nullptr) return nullptr;
  Arrays& known = arrays();
  const std::lock_guard lock(known.mutex);
  if (const auto found = known.plain.find(handle); found != known.plain.end()) return found->second.get();
  for (auto& [_, mipmapped] : known.mipmapped)
    for (Array& level : mipmapped->levels)
      if (&level == handle) return &level;
  return nullptr;
}

MipmappedArray* find_mipmapped_array(const MipmappedArray* handle) {
  Arrays& known = arrays();
  const std::lock_guard lock(known.mutex);
  const auto found = known.mipmapped.find(handle);
  return found == known.mipmapped.end() ? nullptr : found->second.get();
}

Region region_of(const Array& array, std::size_t x_bytes, std::size_t y, std::size_t z) {
  return {reinterpret_cast<void*>(array.address + x_bytes + y * array.pitch + z * array.slice), array.pitch,
          array.slice};
}

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

extern "C" {

ChannelFormat cudaCreateChannelDesc(int x, int y, int z, int w, int kind) {
  return {x, y, z, w, kind};
}

Error cudaGetChannelDesc(ChannelFormat* format, const Array* handle) {
  const Array* array = find_array(handle);
  if (array == nullptr || format == nullptr) return finish(Error::invalid_value);
  *format = array->format;
  return finish(Error::success);
}

Error cudaMallocArray(Array** array, const ChannelFormat* format, std::size_t width, std::size_t height,
                      unsigned flags) {
  return finish(create_array(array, format, {width, height, 0}, flags));
}

Error cudaMalloc3DArray(Array** array, const ChannelFormat* format, Extent extent, unsigned flags) {
  return finish(create_array(array, format, extent, flags));
}

Error cudaFreeArray(Array* array) {
  return finish(free_array(array));
}

Error cudaMallocMipmappedArray(MipmappedArray** array, const ChannelFormat* format, Extent extent,
                               unsigned levels, unsigned flags) {
  return finish(create_mipmapped(array, format, extent, levels, flags));
}

Error cudaFreeMipmappedArray(MipmappedArray* array) {
  return finish(free_mipmapped(array));
}

Error cudaGetMipmappedArrayLevel(Array** level, const MipmappedArray* handle, unsigned number) {
  MipmappedArray* array = find_mipmapped_array(handle);
  if (array == nullptr || level == nullptr || number >= array->levels.size())
    return finish(Error::invalid_value);
  *level = &array->levels[number];
  return finish(Error::success);
}

Error cudaArrayGetInfo(ChannelFormat* format, Extent* extent, unsigned* flags, Array* handle) {
  const Array* array = find_array(handle);
  if (array == nullptr) return finish(Error::invalid_handle);
  if (format != nullptr) *format = array->format;
  if (extent != nullptr) *extent = array->extent;
  if (flags != nullptr) *flags = array->flags;
  return finish(Error::success);
}

}  // extern "C"
