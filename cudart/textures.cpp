// SPDX-License-Identifier: Apache-2.0
// Texture and surface objects: descriptions of memory that the server reads through.
#include "textures.hpp"

#include <cstring>
#include <map>
#include <mutex>

#include "arrays.hpp"
#include "process.hpp"

namespace manyscale::cudart {

namespace {

struct Described {
  ResourceDescription resource{};
  TextureDescription texture{};
  bool has_view = false;
  char view[48] = {};  // cudaResourceViewDesc as given
};

struct Objects {
  std::mutex mutex;
  std::map<std::uint64_t, Described> by_handle;
};

Objects& objects() {
  static Objects& only = *new Objects;
  return only;
}

constexpr std::size_t kViewBytes = 48;  // since CUDA 13 followed by room that is 0

void describe_format(const ChannelFormat& format, wire::TextureCreate::Request& request) {
  request.format = static_cast<std::uint32_t>(format.kind);
  request.bits_x = static_cast<std::uint32_t>(format.x);
  request.bits_y = static_cast<std::uint32_t>(format.y);
  request.bits_z = static_cast<std::uint32_t>(format.z);
  request.bits_w = static_cast<std::uint32_t>(format.w);
}

std::size_t element_bytes(const ChannelFormat& format) {
  return static_cast<std::size_t>(format.x + format.y + format.z + format.w) / 8;
}

void describe_array(const Array& array, wire::TextureCreate::Request& request) {
  request.kind = 2;
  request.address = array.address;
  request.pitch = array.pitch;
  request.width = array.extent.width;
  request.height = array.rows();
  request.depth = array.slices();
  const bool flat = array.extent.height == 0;
  const bool stacked = array.extent.depth != 0;
  request.dimensions = flat ? 1 : stacked && !array.layered() && !array.cube() ? 3 : 2;
  request.layered = array.layered() ? 1 : 0;
  request.cube = array.cube() ? 1 : 0;
  describe_format(array.format, request);
}

Error describe_resource(const ResourceDescription& resource, wire::TextureCreate::Request& request) {
  switch (resource.type) {
    case 0: {
      const Array* array = find_array(resource.array);
      if (array == nullptr) return Error::invalid_handle;
      describe_array(*array, request);
      return Error::success;
    }
    case 1: {
      const MipmappedArray* array = find_mipmapped_array(resource.mipmap);
      if (array == nullptr) return Error::invalid_handle;
      if (array->levels.size() > 1)
        report_once(
            "textures of mipmapped arrays read level 0 only; bind the level with cudaGetMipmappedArrayLevel");
      describe_array(array->levels.front(), request);
      return Error::success;
    }
    case 2: {
      const std::size_t element = element_bytes(resource.linear.format);
      if (element == 0) return Error::invalid_channel_descriptor;
      request.kind = 0;
      request.address = reinterpret_cast<std::uint64_t>(resource.linear.pointer);
      request.width = resource.linear.bytes / element;
      request.height = request.depth = request.dimensions = 1;
      request.pitch = resource.linear.bytes;
      describe_format(resource.linear.format, request);
      return Error::success;
    }
    case 3: {
      request.kind = 1;
      request.address = reinterpret_cast<std::uint64_t>(resource.pitched.pointer);
      request.width = resource.pitched.width;
      request.height = resource.pitched.height;
      request.depth = 1;
      request.dimensions = 2;
      request.pitch = resource.pitched.pitch;
      describe_format(resource.pitched.format, request);
      return Error::success;
    }
    default:
      return Error::invalid_value;
  }
}

}  // namespace

Error create_texture(std::uint64_t* handle, const ResourceDescription* resource,
                     const TextureDescription* texture, const void* view, bool surface) {
  if (handle == nullptr || resource == nullptr || (texture == nullptr && !surface))
    return Error::invalid_value;
  wire::TextureCreate::Request request{};
  if (const Error error = describe_resource(*resource, request); error != Error::success) return error;
  if (surface && request.kind != 2) return Error::invalid_value;
  request.surface = surface ? 1 : 0;
  Described described{*resource, {}, view != nullptr, {}};
  if (texture != nullptr) {
    described.texture = *texture;
    request.mode_x = static_cast<std::uint32_t>(texture->address[0]);
    request.mode_y = static_cast<std::uint32_t>(texture->address[1]);
    request.mode_z = static_cast<std::uint32_t>(texture->address[2]);
    request.filter = static_cast<std::uint32_t>(texture->filter);
    request.read = static_cast<std::uint32_t>(texture->read);
    request.srgb = static_cast<std::uint32_t>(texture->srgb);
    request.normalized = static_cast<std::uint32_t>(texture->normalized);
    request.mipmap_bias = texture->mipmap_bias;
    request.border_x = texture->border[0];
    request.border_y = texture->border[1];
    request.border_z = texture->border[2];
    request.border_w = texture->border[3];
  }
  if (view != nullptr) std::memcpy(described.view, view, kViewBytes);
  wire::TextureCreate::Answer answer{};
  if (const Error error = call<wire::TextureCreate>(request, &answer); error != Error::success) return error;
  *handle = answer.texture;
  Objects& known = objects();
  const std::lock_guard lock(known.mutex);
  known.by_handle.insert_or_assign(answer.texture, described);
  return Error::success;
}

namespace {

Error destroy(std::uint64_t handle) {
  if (handle == 0) return Error::success;
  Objects& known = objects();
  {
    const std::lock_guard lock(known.mutex);
    if (known.by_handle.erase(handle) == 0) return Error::invalid_value;
  }
  return call<wire::TextureDestroy>({handle});
}

template <class Read>
Error read_description(std::uint64_t handle, const void* to, Read read) {
  Objects& known = objects();
  const std::lock_guard lock(known.mutex);
  const auto found = known.by_handle.find(handle);
  if (found == known.by_handle.end() || to == nullptr) return Error::invalid_value;
  return read(found->second);
}

Error read_resource(ResourceDescription* to, std::uint64_t handle) {
  return read_description(handle, to, [&](const Described& described) {
    *to = described.resource;
    return Error::success;
  });
}

}  // namespace

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

extern "C" {

Error cudaCreateTextureObject(std::uint64_t* handle, const ResourceDescription* resource,
                              const TextureDescription* texture, const void* view) {
  return finish(create_texture(handle, resource, texture, view, false));
}

Error cudaCreateTextureObject_v2(std::uint64_t* handle, const ResourceDescription* resource,
                                 const TextureDescription* texture, const void* view) {
  return cudaCreateTextureObject(handle, resource, texture, view);
}

Error cudaDestroyTextureObject(std::uint64_t handle) {
  return finish(destroy(handle));
}

Error cudaCreateSurfaceObject(std::uint64_t* handle, const ResourceDescription* resource) {
  return finish(create_texture(handle, resource, nullptr, nullptr, true));
}

Error cudaDestroySurfaceObject(std::uint64_t handle) {
  return finish(destroy(handle));
}

Error cudaGetTextureObjectResourceDesc(ResourceDescription* resource, std::uint64_t handle) {
  return finish(read_resource(resource, handle));
}

Error cudaGetSurfaceObjectResourceDesc(ResourceDescription* resource, std::uint64_t handle) {
  return finish(read_resource(resource, handle));
}

Error cudaGetTextureObjectTextureDesc(TextureDescription* texture, std::uint64_t handle) {
  return finish(read_description(handle, texture, [&](const Described& described) {
    *texture = described.texture;
    return Error::success;
  }));
}

Error cudaGetTextureObjectTextureDesc_v2(TextureDescription* texture, std::uint64_t handle) {
  return cudaGetTextureObjectTextureDesc(texture, handle);
}

Error cudaGetTextureObjectResourceViewDesc(void* view, std::uint64_t handle) {
  return finish(read_description(handle, view, [&](const Described& described) {
    if (!described.has_view) return Error::invalid_value;
    std::memcpy(view, described.view, kViewBytes);
    return Error::success;
  }));
}

}  // extern "C"
