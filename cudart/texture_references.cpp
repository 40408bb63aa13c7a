// SPDX-License-Identifier: Apache-2.0
// Texture and surface references, as programs had them before texture objects and up to CUDA 11: variables of
// a module that name a texture. Binding one makes a texture object and writes its handle into the variable,
// in the order of the default stream.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "arrays.hpp"
#include "memory.hpp"
#include "operations.hpp"
#include "process.hpp"
#include "registry.hpp"
#include "textures.hpp"

namespace manyscale::cudart {

namespace {

// The part of struct textureReference that counts.
struct TextureReference {
  int normalized;
  int filter;
  int address[3];
  ChannelFormat format;
  int srgb;
};

struct Reference {
  Module* module = nullptr;
  std::string name;
  bool reads_normalized = false;  // integers are read as numbers from 0 or -1 to 1
  bool surface = false;
};

struct References {
  std::mutex mutex;
  std::map<const void*, Reference> by_host;  // by the program's variable
};

References& references() {
  static References& only = *new References;
  return only;
}

bool find_reference(const void* host, Reference& found) {
  References& all = references();
  const std::lock_guard lock(all.mutex);
  const auto known = all.by_host.find(host);
  if (known == all.by_host.end()) return false;
  found = known->second;
  return true;
}

void add_reference(void** module, const void* host, const char* name, bool reads_normalized, bool surface) {
  References& all = references();
  const std::lock_guard lock(all.mutex);
  all.by_host[host] = {reinterpret_cast<Module*>(module), name, reads_normalized, surface};
}

Error write_handle(const Reference& reference, std::uint64_t handle) {
  wire::Symbol::Answer variable{};
  if (const Error error = find_symbol(*reference.module, reference.name, variable); error != Error::success)
    return error;
  return with_stream(nullptr, DefaultStream::legacy, [&](Stream& stream) {
    CopyOperation copy;
    copy.target.pointer = reinterpret_cast<void*>(variable.address);
    copy.source.pointer = &handle;
    copy.width = sizeof handle;
    copy.kind = host_to_device;
    return perform(stream, copy, Wait::yes);
  });
}

Error bind(const void* host, const ResourceDescription& resource) {
  Reference reference;
  if (host == nullptr || !find_reference(host, reference)) return Error::invalid_texture;
  TextureDescription how{};
  if (!reference.surface) {
    TextureReference description{};
    std::memcpy(&description, host, sizeof description);
    std::copy(description.address, description.address + 3, how.address);
    how.filter = description.filter;
    how.normalized = description.normalized;
    how.srgb = description.srgb;
    how.read = reference.reads_normalized ? 1 : 0;
  }
  std::uint64_t handle = 0;
  const Error error =
      create_texture(&handle, &resource, reference.surface ? nullptr : &how, nullptr, reference.surface);
  const UntimedCalls untimed;
  return error == Error::success ? write_handle(reference, handle) : error;
}

Error bind_linear(std::size_t* offset, const void* host, const void* pointer, const ChannelFormat* format,
                  std::size_t bytes) {
  if (pointer == nullptr || format == nullptr) return Error::invalid_value;
  if (const Error error = connect_thread(); error != Error::success) return error;
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  // Without a size, programs give the largest there is.
  if (const auto memory = find_allocation(address))
    bytes = std::min<std::size_t>(bytes, memory->address + memory->bytes - address);
  ResourceDescription resource{};
  resource.type = 2;
  resource.linear = {const_cast<void*>(pointer), *format, bytes};
  if (offset != nullptr) *offset = 0;  // any address will do
  return bind(host, resource);
}

Error bind_pitched(std::size_t* offset, const void* host, const void* pointer, const ChannelFormat* format,
                   std::size_t width, std::size_t height, std::size_t pitch) {
  if (pointer == nullptr || format == nullptr) return Error::invalid_value;
  ResourceDescription resource{};
  resource.type = 3;
  resource.pitched = {const_cast<void*>(pointer), *format, width, height, pitch};
  if (offset != nullptr) *offset = 0;
  return bind(host, resource);
}

Error bind_array(const void* host, const void* array, int type) {
  if (array == nullptr) return Error::invalid_handle;
  ResourceDescription resource{};
  resource.type = type;
  resource.array = static_cast<Array*>(const_cast<void*>(array));
  return bind(host, resource);
}

Error unbind(const void* host) {
  Reference reference;
  if (host == nullptr || !find_reference(host, reference)) return Error::invalid_texture;
  return write_handle(reference, 0);
}

Error tell_reference(const void** to, const void* host) {
  Reference reference;
  if (to == nullptr) return Error::invalid_value;
  if (!find_reference(host, reference)) return Error::invalid_texture;
  *to = host;
  return Error::success;
}

}  // namespace

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

extern "C" {

void __cudaRegisterTexture(void** module, const void* host, const void**, const char* name, int,
                           int reads_normalized, int) {
  add_reference(module, host, name, reads_normalized != 0, false);
}

void __cudaRegisterSurface(void** module, const void* host, const void**, const char* name, int, int) {
  add_reference(module, host, name, false, true);
}

Error cudaBindTexture(std::size_t* offset, const void* reference, const void* pointer,
                      const ChannelFormat* format, std::size_t bytes) {
  return finish(bind_linear(offset, reference, pointer, format, bytes));
}

Error cudaBindTexture2D(std::size_t* offset, const void* reference, const void* pointer,
                        const ChannelFormat* format, std::size_t width, std::size_t height,
                        std::size_t pitch) {
  return finish(bind_pitched(offset, reference, pointer, format, width, height, pitch));
}

Error cudaBindTextureToArray(const void* reference, const void* array, const ChannelFormat*) {
  return finish(bind_array(reference, array, 0));
}

Error cudaBindTextureToMipmappedArray(const void* reference, const void* array, const ChannelFormat*) {
  return finish(bind_array(reference, array, 1));
}

Error cudaBindSurfaceToArray(const void* reference, const void* array, const ChannelFormat*) {
  return finish(bind_array(reference, array, 0));
}

Error cudaUnbindTexture(const void* reference) {
  return finish(unbind(reference));
}

Error cudaGetTextureReference(const void** reference, const void* symbol) {
  return finish(tell_reference(reference, symbol));
}

Error cudaGetSurfaceReference(const void** reference, const void* symbol) {
  return finish(tell_reference(reference, symbol));
}

Error cudaGetTextureAlignmentOffset(std::size_t* offset, const void* reference) {
  Reference known;
  if (offset == nullptr) return finish(Error::invalid_value);
  if (!find_reference(reference, known)) return finish(Error::invalid_texture);
  *offset = 0;
  return finish(Error::success);
}

}  // extern "C"
