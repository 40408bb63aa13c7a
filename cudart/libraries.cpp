// SPDX-License-Identifier: Apache-2.0
// Device code that a program loads at run time (cudaLibrary*): a fat binary, or PTX as text.
#include <elf.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "memory.hpp"
#include "process.hpp"
#include "registry.hpp"

namespace manyscale::cudart {

struct Library {
  Module* module = nullptr;
  std::vector<std::byte> bytes;  // what the module was made of
  std::map<std::string, Function*> kernels;
};

namespace {

struct Libraries {
  std::mutex mutex;
  std::map<Library*, std::unique_ptr<Library>> known;
};

Libraries& libraries() {
  static Libraries& only = *new Libraries;
  return only;
}

// A container with one entry, as the compiler makes them, not compressed.
std::vector<std::byte> wrap(std::span<const std::byte> image, std::uint16_t kind,
                            std::uint32_t architecture) {
  struct [[gnu::packed]] {
    std::uint32_t magic = 0xBA55ED50;
    std::uint16_t version = 1;
    std::uint16_t header_bytes = 16;
    std::uint64_t bytes = 0;
    std::uint16_t kind = 0;
    std::uint16_t entry_version = 0x101;
    std::uint32_t entry_header_bytes = 64;
    std::uint64_t payload_bytes = 0;
    std::uint32_t compressed_bytes = 0;
    std::uint32_t options = 0;
    std::uint16_t minor = 0, major = 0;
    std::uint32_t architecture = 0;
    std::uint32_t name = 0, name_bytes = 0;
    std::uint64_t flags = 0x11;
    std::uint64_t reserved = 0;
    std::uint64_t uncompressed_bytes = 0;
  } header;
  static_assert(sizeof header == 80);
  const std::size_t padded = (image.size() + 7) / 8 * 8;
  header.bytes = 64 + padded;
  header.payload_bytes = padded;
  header.kind = kind;
  header.architecture = architecture;
  std::vector<std::byte> bytes(sizeof header + padded);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, image.data(), image.size());
  return bytes;
}

std::vector<std::byte> wrap_ptx(const char* text) {
  constexpr std::uint16_t is_ptx = 1;
  std::uint32_t architecture = 0;
  if (const char* target = std::strstr(text, ".target sm_"))
    architecture = static_cast<std::uint32_t>(std::strtoul(target + std::strlen(".target sm_"), nullptr, 10));
  return wrap(std::as_bytes(std::span(text, std::strlen(text) + 1)), is_ptx, architecture);
}

// SASS is an ELF file of 64 bits, which ends with the last of its sections or with their table. Empty
// if that would be behind the bytes that there are.
std::vector<std::byte> wrap_cubin(const std::byte* file, std::uint64_t most) {
  constexpr std::uint16_t is_sass = 2;
  Elf64_Ehdr header{};
  if (most < sizeof header) return {};
  std::memcpy(&header, file, sizeof header);
  const std::uint64_t table = std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr);
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shoff > most || most - header.e_shoff < table)
    return {};
  std::uint64_t end = header.e_shoff + table;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section{};
    std::memcpy(&section, file + header.e_shoff + i * sizeof section, sizeof section);
    if (section.sh_type == SHT_NOBITS) continue;
    if (section.sh_offset > most || most - section.sh_offset < section.sh_size) return {};
    end = std::max(end, section.sh_offset + section.sh_size);
  }
  // Of files of later assemblers the architecture stands one byte higher.
  const std::uint32_t low = header.e_flags & 0xff;
  const std::uint32_t high = header.e_flags >> 8 & 0xff;
  return wrap({file, end}, is_sass, low >= 50 && low < 200 ? low : high);
}

// Of code in memory nobody knows the size; it is what it says.
constexpr std::uint64_t kUnknownSize = std::uint64_t{1} << 40;

Error load(Library** handle, const void* code, std::uint64_t most = kUnknownSize) {
  if (handle == nullptr || code == nullptr) return Error::invalid_value;
  constexpr std::uint32_t wrapper_magic = 0x466243b1;
  std::uint32_t magic = 0;
  std::memcpy(&magic, code, sizeof magic);
  if (magic == wrapper_magic) {
    const void* data = nullptr;
    std::memcpy(&data, static_cast<const std::byte*>(code) + 8, sizeof data);
    return load(handle, data);
  }
  auto made = std::make_unique<Library>();
  if (std::memcmp(code, "\177ELF", 4) == 0) {
    made->bytes = wrap_cubin(static_cast<const std::byte*>(code), most);
    if (made->bytes.empty()) return Error::no_kernel_image;
  } else if (const auto container = container_at(code); !container.empty()) {
    made->bytes.assign(container.begin(), container.end());
  } else {
    made->bytes = wrap_ptx(static_cast<const char*>(code));
  }
  made->module = &add_module(1, {made->bytes});
  if (const Error error = load_module(*made->module); error != Error::success) {
    remove_module(*made->module);
    return error;
  }
  *handle = made.get();
  const std::lock_guard lock(libraries().mutex);
  libraries().known.emplace(*handle, std::move(made));
  return Error::success;
}

Error load_file(Library** handle, const char* path) {
  if (path == nullptr) return Error::invalid_value;
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return Error::file_not_found;
  std::vector<char> bytes;
  char part[1 << 16];
  for (std::size_t got = 0; (got = std::fread(part, 1, sizeof part, file)) != 0;)
    bytes.insert(bytes.end(), part, part + got);
  std::fclose(file);
  bytes.resize(bytes.size() + 16);  // a text ends with a zero
  return load(handle, bytes.data(), bytes.size());
}

Library* find_library(Library* handle) {
  const std::lock_guard lock(libraries().mutex);
  const auto found = libraries().known.find(handle);
  return found == libraries().known.end() ? nullptr : found->second.get();
}

Error find_kernel(Function** kernel, Library* handle, const char* name) {
  Library* library = find_library(handle);
  if (library == nullptr || kernel == nullptr || name == nullptr) return Error::invalid_value;
  Function*& known = library->kernels[name];
  if (known == nullptr) {
    Function& added = add_function(*library->module, name, nullptr);
    const FunctionLayout* layout = nullptr;
    if (lay_out(added, layout) != Error::success) return Error::symbol_not_found;
    known = &added;
  }
  *kernel = known;
  return Error::success;
}

// All kernels of a library, in the order of its code.
Error list_kernels(Library* handle, std::vector<Function*>& kernels) {
  Library* library = find_library(handle);
  if (library == nullptr) return Error::invalid_value;
  std::vector<std::byte> names;
  const Error error = call<wire::Kernels>({library->module->number}, nullptr, {}, &names);
  if (error != Error::success) return error;
  const auto* next = reinterpret_cast<const char*>(names.data());
  for (const auto* end = next + names.size(); next < end; next += std::strlen(next) + 1) {
    Function* kernel = nullptr;
    if (find_kernel(&kernel, handle, next) == Error::success) kernels.push_back(kernel);
  }
  return Error::success;
}

Error find_global(void** pointer, std::size_t* bytes, Library* handle, const char* name) {
  Library* library = find_library(handle);
  if (library == nullptr || name == nullptr) return Error::invalid_value;
  wire::Symbol::Answer variable{};
  if (find_symbol(*library->module, name, variable) != Error::success) return Error::symbol_not_found;
  if (pointer != nullptr) *pointer = reinterpret_cast<void*>(variable.address);
  if (bytes != nullptr) *bytes = variable.bytes;
  return Error::success;
}

}  // namespace

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

extern "C" {

Error cudaLibraryLoadData(Library** library, const void* code, const int*, void**, unsigned, const int*,
                          void**, unsigned) {
  return finish(load(library, code));
}

Error cudaLibraryLoadFromFile(Library** library, const char* path, const int*, void**, unsigned, const int*,
                              void**, unsigned) {
  return finish(load_file(library, path));
}

Error cudaLibraryUnload(Library* handle) {
  std::unique_ptr<Library> gone;
  {
    const std::lock_guard lock(libraries().mutex);
    auto node = libraries().known.extract(handle);
    if (!node.empty()) gone = std::move(node.mapped());
  }
  if (gone == nullptr) return finish(Error::invalid_value);
  remove_module(*gone->module);
  return finish(Error::success);
}

Error cudaLibraryGetKernel(Function** kernel, Library* library, const char* name) {
  return finish(find_kernel(kernel, library, name));
}

Error cudaLibraryGetKernelCount(unsigned* count, Library* library) {
  std::vector<Function*> kernels;
  if (count == nullptr) return finish(Error::invalid_value);
  const Error error = list_kernels(library, kernels);
  if (error == Error::success) *count = static_cast<unsigned>(kernels.size());
  return finish(error);
}

Error cudaLibraryEnumerateKernels(Function** kernels, unsigned room, Library* library) {
  std::vector<Function*> all;
  if (kernels == nullptr && room != 0) return finish(Error::invalid_value);
  const Error error = list_kernels(library, all);
  if (error == Error::success) std::copy_n(all.begin(), std::min<std::size_t>(room, all.size()), kernels);
  return finish(error);
}

// Of our driver: the library that a kernel is from.
Error __cudaFindLibrary(Library** library, const void* kernel) {
  const Function* function = find_function(kernel);
  if (function == nullptr || library == nullptr) return finish(Error::invalid_handle);
  const std::lock_guard lock(libraries().mutex);
  for (const auto& [handle, known] : libraries().known) {
    if (known->module != function->module) continue;
    *library = handle;
    return finish(Error::success);
  }
  return finish(Error::invalid_handle);
}

Error cudaLibraryGetGlobal(void** pointer, std::size_t* bytes, Library* library, const char* name) {
  return finish(find_global(pointer, bytes, library, name));
}

Error cudaLibraryGetManaged(void** pointer, std::size_t* bytes, Library* library, const char* name) {
  return finish(find_global(pointer, bytes, library, name));
}

// Of our driver: links images, each of a kind (CUjitInputType), into one that can be loaded.
Error __cudaLinkImages(std::vector<std::byte>* linked, const std::vector<std::vector<std::byte>>* images,
                       const std::vector<int>* kinds) {
  if (const Error error = connect_thread(); error != Error::success) return finish(error);
  std::vector<std::uint64_t> rows;
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < images->size(); ++i) {
    rows.push_back(static_cast<std::uint64_t>((*kinds)[i]));
    rows.push_back((*images)[i].size());
    all += (*images)[i].size();
  }
  constexpr std::uint64_t for_renamed = 1 << 20;
  std::byte* staging = connection().staging(2 * all + for_renamed);
  if (staging == nullptr) return finish(Error::memory_allocation);
  for (std::uint64_t at = 0; const auto& image : *images) {
    std::memcpy(staging + at, image.data(), image.size());
    at += image.size();
  }
  wire::Link::Answer answer{};
  const Error error = call<wire::Link>({static_cast<std::uint32_t>(images->size())}, &answer,
                                       std::as_bytes(std::span(rows)), nullptr, all);
  if (error == Error::success) linked->assign(staging, staging + answer.bytes);
  connection().trim_staging();
  return finish(error);
}

}  // extern "C"
