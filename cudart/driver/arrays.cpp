// SPDX-License-Identifier: Apache-2.0
// Arrays, textures and surfaces of the driver API.
#include "arrays.hpp"

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

using namespace manyscale::cuda_driver;
using manyscale::cudart::Array;
using manyscale::cudart::ChannelFormat;
using manyscale::cudart::Extent;
using manyscale::cudart::MipmappedArray;
using manyscale::cudart::ResourceDescription;
using manyscale::cudart::TextureDescription;

namespace manyscale::cuda_driver {

bool to_channels(ArrayFormat format, unsigned channels, ChannelFormat& made) {
  enum Kind : int { is_signed, is_unsigned, is_float };
  int bits = 0, kind = is_unsigned;
  switch (format) {
    case ArrayFormat::unsigned_8:
    case ArrayFormat::signed_8:
      bits = 8;
      break;
    case ArrayFormat::unsigned_16:
    case ArrayFormat::signed_16:
    case ArrayFormat::half:
      bits = 16;
      break;
    case ArrayFormat::unsigned_32:
    case ArrayFormat::signed_32:
    case ArrayFormat::single:
      bits = 32;
      break;
  }
  if (bits == 0 || (channels != 1 && channels != 2 && channels != 4)) return false;
  if (format == ArrayFormat::half || format == ArrayFormat::single) kind = is_float;
  if (format >= ArrayFormat::signed_8 && format <= ArrayFormat::signed_32) kind = is_signed;
  made = {bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 2 ? bits : 0, kind};
  return true;
}

void from_channels(const ChannelFormat& given, ArrayFormat& format, unsigned& channels) {
  constexpr int is_signed = 0, is_float = 2;
  const int size = given.x == 8 ? 0 : given.x == 16 ? 1 : 2;
  const int first =
      static_cast<int>(given.kind == is_signed ? ArrayFormat::signed_8 : ArrayFormat::unsigned_8);
  format = static_cast<ArrayFormat>(first + size);
  if (given.kind == is_float) format = size == 1 ? ArrayFormat::half : ArrayFormat::single;
  channels = given.w != 0 ? 4 : given.y != 0 ? 2 : 1;
}

std::size_t element_bytes(Array* array) {
  ChannelFormat format{};
  if (runtime("cudaArrayGetInfo", &format, static_cast<Extent*>(nullptr), static_cast<unsigned*>(nullptr),
              array) != success)
    return 0;
  return static_cast<std::size_t>(format.x + format.y + format.z + format.w) / 8;
}

}  // namespace manyscale::cuda_driver

namespace {

struct Description {
  std::size_t width, height;
  ArrayFormat format;
  unsigned channels;
};

struct Description3D {
  std::size_t width, height, depth;
  ArrayFormat format;
  unsigned channels;
  unsigned flags;
};

Result describe(Array* array, Description3D& made) {
  ChannelFormat format{};
  Extent extent{};
  const Result error = runtime("cudaArrayGetInfo", &format, &extent, &made.flags, array);
  if (error != success) return error;
  from_channels(format, made.format, made.channels);
  made.width = extent.width;
  made.height = extent.height;
  made.depth = extent.depth;
  return success;
}

// CUDA_RESOURCE_DESC
struct DriverResource {
  int type;  // 0 array, 1 mipmapped array, 2 linear, 3 pitched
  union {
    Array* array;
    MipmappedArray* mipmap;
    struct {
      void* pointer;
      ArrayFormat format;
      unsigned channels;
      std::size_t bytes;  // of a pitched one the width
      std::size_t height, pitch;
    } memory;
    int reserved[32];
  };
  unsigned flags;
};

// CUDA_TEXTURE_DESC
struct DriverTexture {
  int address[3];
  int filter;
  unsigned flags;
  unsigned anisotropy;
  int mipmap_filter;
  float mipmap_bias, mipmap_minimum, mipmap_maximum;
  float border[4];
  int reserved[12];
};

struct ResourceOfAllVersions {
  ResourceDescription known{};
  char later[128] = {};
};

struct TextureOfAllVersions {
  TextureDescription known{};
  char later[64] = {};
};

enum ResourceType : int { of_array, of_mipmap, linear, pitched };

Result convert(const DriverResource& given, ResourceDescription& made, ChannelFormat& format) {
  made.type = given.type;
  switch (given.type) {
    case of_array:
      made.array = given.array;
      return runtime("cudaArrayGetInfo", &format, static_cast<Extent*>(nullptr),
                     static_cast<unsigned*>(nullptr), given.array);
    case of_mipmap: {
      Array* first = nullptr;
      made.mipmap = given.mipmap;
      const Result error = runtime("cudaGetMipmappedArrayLevel", &first, given.mipmap, 0u);
      if (error != success) return error;
      return runtime("cudaArrayGetInfo", &format, static_cast<Extent*>(nullptr),
                     static_cast<unsigned*>(nullptr), first);
    }
    case linear:
      if (!to_channels(given.memory.format, given.memory.channels, format)) return invalid_value;
      made.linear = {given.memory.pointer, format, given.memory.bytes};
      return success;
    case pitched:
      if (!to_channels(given.memory.format, given.memory.channels, format)) return invalid_value;
      made.pitched = {given.memory.pointer, format, given.memory.bytes, given.memory.height,
                      given.memory.pitch};
      return success;
    default:
      return invalid_value;
  }
}

// CUDA_RESOURCE_VIEW_DESC
struct DriverView {
  int format;
  std::size_t width, height, depth;
  unsigned mipmap_from, mipmap_to, layer_from, layer_to;
  unsigned reserved[16];
};

// What textures and surfaces were made of, to be told again.
struct Made {
  DriverResource resource;
  DriverTexture texture;
  std::optional<DriverView> view;
};

struct Objects {
  std::mutex mutex;
  std::map<std::uint64_t, Made> textures, surfaces;
};

Objects& objects() {
  static auto& only = *new Objects;
  return only;
}

using ObjectTable = std::map<std::uint64_t, Made> Objects::*;

void remember(ObjectTable table, std::uint64_t handle, const Made& made) {
  const std::lock_guard lock(objects().mutex);
  (objects().*table).insert_or_assign(handle, made);
}

void forget(ObjectTable table, std::uint64_t handle) {
  const std::lock_guard lock(objects().mutex);
  (objects().*table).erase(handle);
}

// Gives a part of what an object was made of.
template <class Part, class Get>
Result recall(ObjectTable table, std::uint64_t handle, Part* part, Get get) {
  const std::lock_guard lock(objects().mutex);
  const auto found = (objects().*table).find(handle);
  if (part == nullptr || found == (objects().*table).end()) return invalid_value;
  return get(found->second, *part);
}

TextureDescription convert(const DriverTexture& given, const ChannelFormat& format) {
  constexpr unsigned as_integers = 1, normalized_coordinates = 2, srgb = 0x10, not_trilinear = 0x20;
  constexpr int is_float = 2;
  TextureDescription made{};
  std::memcpy(made.address, given.address, sizeof made.address);
  std::memcpy(made.border, given.border, sizeof made.border);
  made.filter = given.filter;
  // Integers of 8 and 16 bits are read as numbers from 0 to 1, or from -1, unless the program wants them as
  // they are.
  made.read = (given.flags & as_integers) == 0 && format.kind != is_float && format.x <= 16;
  made.srgb = (given.flags & srgb) != 0;
  made.normalized = (given.flags & normalized_coordinates) != 0;
  made.anisotropy = given.anisotropy;
  made.mipmap_filter = given.mipmap_filter;
  made.mipmap_bias = given.mipmap_bias;
  made.mipmap_minimum = given.mipmap_minimum;
  made.mipmap_maximum = given.mipmap_maximum;
  made.no_trilinear_optimization = (given.flags & not_trilinear) != 0;
  return made;
}

}  // namespace

extern "C" {

int cuArray3DCreate_v2(Array** array, const Description3D* given) {
  ChannelFormat format{};
  if (array == nullptr || given == nullptr || !to_channels(given->format, given->channels, format))
    return invalid_value;
  return runtime("cudaMalloc3DArray", array, static_cast<const ChannelFormat*>(&format),
                 Extent{given->width, given->height, given->depth}, given->flags);
}

int cuArrayCreate_v2(Array** array, const Description* given) {
  if (given == nullptr) return invalid_value;
  const Description3D same{given->width, given->height, 0, given->format, given->channels, 0};
  return cuArray3DCreate_v2(array, &same);
}

int cuArray3DGetDescriptor_v2(Description3D* made, Array* array) {
  return made == nullptr ? invalid_value : describe(array, *made);
}

int cuArrayGetDescriptor_v2(Description* made, Array* array) {
  Description3D found{};
  if (made == nullptr) return invalid_value;
  const Result error = describe(array, found);
  if (error == success) *made = {found.width, found.height, found.format, found.channels};
  return error;
}

int cuMipmappedArrayCreate(MipmappedArray** array, const Description3D* given, unsigned levels) {
  ChannelFormat format{};
  if (array == nullptr || given == nullptr || !to_channels(given->format, given->channels, format))
    return invalid_value;
  return runtime("cudaMallocMipmappedArray", array, static_cast<const ChannelFormat*>(&format),
                 Extent{given->width, given->height, given->depth}, levels, given->flags);
}

int cuTexObjectCreate(std::uint64_t* handle, const DriverResource* resource, const DriverTexture* texture,
                      const DriverView* view) {
  ResourceOfAllVersions from;
  TextureOfAllVersions how;
  ChannelFormat format{};
  if (handle == nullptr || resource == nullptr || texture == nullptr) return invalid_value;
  if (const Result error = convert(*resource, from.known, format); error != success) return error;
  how.known = convert(*texture, format);
  const Result error =
      runtime("cudaCreateTextureObject", handle, &from, &how, static_cast<const void*>(view));
  if (error == success)
    remember(&Objects::textures, *handle,
             {*resource, *texture, view == nullptr ? std::nullopt : std::optional(*view)});
  return error;
}

int cuTexObjectDestroy(std::uint64_t handle) {
  forget(&Objects::textures, handle);
  return runtime("cudaDestroyTextureObject", handle);
}

int cuTexObjectGetResourceDesc(DriverResource* resource, std::uint64_t handle) {
  return recall(&Objects::textures, handle, resource, [](const Made& made, DriverResource& to) {
    to = made.resource;
    return success;
  });
}

int cuTexObjectGetTextureDesc(DriverTexture* texture, std::uint64_t handle) {
  return recall(&Objects::textures, handle, texture, [](const Made& made, DriverTexture& to) {
    to = made.texture;
    return success;
  });
}

int cuTexObjectGetResourceViewDesc(DriverView* view, std::uint64_t handle) {
  return recall(&Objects::textures, handle, view, [](const Made& made, DriverView& to) {
    if (!made.view) return invalid_value;
    to = *made.view;
    return success;
  });
}

int cuSurfObjectDestroy(std::uint64_t handle) {
  forget(&Objects::surfaces, handle);
  return runtime("cudaDestroySurfaceObject", handle);
}

int cuSurfObjectGetResourceDesc(DriverResource* resource, std::uint64_t handle) {
  return recall(&Objects::surfaces, handle, resource, [](const Made& made, DriverResource& to) {
    to = made.resource;
    return success;
  });
}

int cuDeviceGetTexture1DLinearMaxWidth(std::size_t* width, ArrayFormat format, unsigned channels,
                                       int device) {
  ChannelFormat made{};
  if (!to_channels(format, channels, made)) return invalid_value;
  return runtime("cudaDeviceGetTexture1DLinearMaxWidth", width, static_cast<const ChannelFormat*>(&made),
                 device);
}

int cuSurfObjectCreate(std::uint64_t* handle, const DriverResource* resource) {
  ResourceOfAllVersions from;
  ChannelFormat format{};
  if (handle == nullptr || resource == nullptr || resource->type != of_array) return invalid_value;
  if (const Result error = convert(*resource, from.known, format); error != success) return error;
  const Result error = runtime("cudaCreateSurfaceObject", handle, &from);
  if (error == success) remember(&Objects::surfaces, *handle, {*resource, {}, {}});
  return error;
}

}  // extern "C"
