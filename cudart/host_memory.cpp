// SPDX-License-Identifier: Apache-2.0
#include "host_memory.hpp"

#include <sys/mman.h>

#include <map>
#include <mutex>
#include <shared_mutex>

#include "process.hpp"

namespace manyscale::cudart {

namespace {

constexpr std::uint64_t kPage = 4096;

// Memory of the program whose pages are the heap's now.
struct Registered {
  std::uint64_t begin = 0;  // as the program gave it
  std::uint64_t bytes = 0;
  std::uint64_t first_page = 0;
  std::uint64_t page_bytes = 0;
  std::uint64_t heap_address = 0;  // of the first page
};

struct Registrations {
  std::shared_mutex mutex;
  std::map<std::uint64_t, Registered> by_begin;
};

Registrations& registrations() {
  static Registrations& only = *new Registrations;
  return only;
}

bool overlaps(const Registrations& known, std::uint64_t first, std::uint64_t bytes) {
  for (const auto& [_, each] : known.by_begin)
    if (first < each.first_page + each.page_bytes && each.first_page < first + bytes) return true;
  return false;
}

void* as_pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(address);
}

// Copies whole pages, also what lies beside the program's array: a sanitizer would not let memcpy read that.
[[gnu::no_sanitize("address")]]
void copy_pages(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  const auto* source = static_cast<const volatile std::uint64_t*>(as_pointer(from));
  auto* target = static_cast<std::uint64_t*>(as_pointer(to));
  for (std::uint64_t i = 0; i < bytes / sizeof(std::uint64_t); ++i) target[i] = source[i];
}

Error register_memory(void* pointer, std::size_t bytes, unsigned flags) {
  if (pointer == nullptr || bytes == 0) return Error::invalid_value;
  if (const Error error = connect_thread(); error != Error::success) return error;
  Registered made;
  made.begin = reinterpret_cast<std::uint64_t>(pointer);
  made.bytes = bytes;
  made.first_page = made.begin / kPage * kPage;
  made.page_bytes = (made.begin + bytes + kPage - 1) / kPage * kPage - made.first_page;
  Registrations& known = registrations();
  const std::unique_lock lock(known.mutex);
  if (heap().contains(pointer) || overlaps(known, made.first_page, made.page_bytes))
    return Error::host_memory_already_registered;
  Allocation memory;
  if (const Error error = allocate(MemoryKind::pinned, made.page_bytes, flags, memory);
      error != Error::success)
    return error;
  made.heap_address = memory.address;
  copy_pages(memory.address, made.first_page, made.page_bytes);
  const void* mapped =
      mmap(as_pointer(made.first_page), made.page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
           heap().file, static_cast<off_t>(memory.address - heap().begin));
  if (mapped == MAP_FAILED) {
    release(memory.address);
    return Error::memory_allocation;
  }
  memory.registered = as_pointer(made.first_page);
  enter_allocation(memory);
  known.by_begin.emplace(made.begin, made);
  return Error::success;
}

// The pages get memory of their own again, with what is in them now.
bool detach(const Registered& gone) {
  void* copy = mmap(nullptr, gone.page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return false;
  copy_pages(reinterpret_cast<std::uint64_t>(copy), gone.first_page, gone.page_bytes);
  return mremap(copy, gone.page_bytes, gone.page_bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                as_pointer(gone.first_page)) != MAP_FAILED;
}

Error unregister_memory(const void* pointer) {
  Registrations& known = registrations();
  Registered gone;
  {
    const std::unique_lock lock(known.mutex);
    const auto found = known.by_begin.find(reinterpret_cast<std::uint64_t>(pointer));
    if (found == known.by_begin.end()) return Error::host_memory_not_registered;
    gone = found->second;
    // Copies and kernels in flight may still write to it.
    if (const Error error = call<wire::DeviceSynchronize>({}); error != Error::success) return error;
    if (!detach(gone)) return Error::memory_allocation;
    known.by_begin.erase(found);
  }
  return release(gone.heap_address);
}

Error allocate_pinned(void** pointer, std::size_t bytes, unsigned flags) {
  if (pointer == nullptr) return Error::invalid_value;
  if (bytes == 0) {
    *pointer = nullptr;
    return Error::success;
  }
  Allocation made;
  const Error error = allocate(MemoryKind::pinned, bytes, flags, made);
  if (error == Error::success) *pointer = as_pointer(made.address);
  return error;
}

Error free_pinned(void* pointer) {
  if (pointer == nullptr) return Error::success;
  if (const Error error = connect_thread(); error != Error::success) return error;
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  const auto known = find_allocation(address);
  if (!known || known->address != address || known->kind != MemoryKind::pinned ||
      known->registered != nullptr || known->mapped)
    return Error::invalid_value;
  return release(address);
}

Error host_pointer_to_device(void** device, void* host) {
  if (device == nullptr || host == nullptr) return Error::invalid_value;
  if (const Error error = connect_thread(); error != Error::success) return error;
  const std::uint64_t address = device_address(host);
  const auto known = find_allocation(address);
  if (address == 0 || !known || known->kind == MemoryKind::device) return Error::invalid_value;
  *device = as_pointer(address);
  return Error::success;
}

constexpr unsigned kHostAllocFlags = 1 | 2 | 4;         // portable, mapped, write combined
constexpr unsigned kHostRegisterFlags = 1 | 2 | 4 | 8;  // portable, mapped, memory of a device, read only

}  // namespace

std::uint64_t registered_address(const void* pointer) {
  Registrations& known = registrations();
  const std::shared_lock lock(known.mutex);
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  auto after = known.by_begin.upper_bound(address);
  if (after == known.by_begin.begin()) return 0;
  const Registered& found = (--after)->second;
  return address - found.begin < found.bytes ? found.heap_address + (address - found.first_page) : 0;
}

void give_pages_back(const Allocation& registered) {
  Registrations& known = registrations();
  const std::unique_lock lock(known.mutex);
  std::erase_if(known.by_begin, [&](const auto& entry) {
    return entry.second.heap_address == registered.address && detach(entry.second);
  });
}

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

extern "C" {

Error cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  return finish((flags & ~kHostAllocFlags) != 0 ? Error::invalid_value
                                                : allocate_pinned(pointer, bytes, flags));
}

Error cudaMallocHost(void** pointer, std::size_t bytes) {
  return finish(allocate_pinned(pointer, bytes, 0));
}

Error cudaFreeHost(void* pointer) {
  return finish(free_pinned(pointer));
}

Error cudaHostRegister(void* pointer, std::size_t bytes, unsigned flags) {
  return finish((flags & ~kHostRegisterFlags) != 0 ? Error::invalid_value
                                                   : register_memory(pointer, bytes, flags));
}

Error cudaHostUnregister(void* pointer) {
  return finish(unregister_memory(pointer));
}

Error cudaHostGetDevicePointer(void** device, void* host, unsigned flags) {
  return finish(flags != 0 ? Error::invalid_value : host_pointer_to_device(device, host));
}

Error cudaHostGetFlags(unsigned* flags, void* pointer) {
  if (flags == nullptr) return finish(Error::invalid_value);
  const auto known = describe_pointer(pointer);
  if (!known || known->kind != MemoryKind::pinned) return finish(Error::invalid_value);
  constexpr unsigned mapped = 2;  // all memory is, with one address space
  *flags = known->flags | mapped;
  return finish(Error::success);
}

}  // extern "C"
