// SPDX-License-Identifier: Apache-2.0
// Prefetching managed memory and advising on it, and the advice of each allocation.
#include "managed_api.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "memory.hpp"
#include "operations.hpp"
#include "process.hpp"

namespace manyscale::cudart {

namespace {

constexpr int kNowhere = -2;  // cudaInvalidDeviceId

// Advice and prefetches of an allocation; ranges within it are not distinguished.
struct RangeAttributes {
  bool read_mostly = false;
  int preferred = kNowhere;
  int prefetched = kNowhere;
  std::set<int> accessed_by;
};

struct AttributeTable {
  std::mutex mutex;
  std::map<std::uint64_t, RangeAttributes> by_address;
};

AttributeTable& attributes() {
  static AttributeTable& only = *new AttributeTable;
  return only;
}

// The managed allocation that a range lies in.
Error managed_range(const void* pointer, std::size_t bytes, Allocation& found) {
  if (const Error error = connect_thread(); error != Error::success) return error;
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  const auto known = find_allocation(address);
  if (!known || known->kind != MemoryKind::managed || bytes == 0) return Error::invalid_value;
  if (address + bytes > known->address + std::max(known->bytes, known->reserved)) return Error::invalid_value;
  found = *known;
  return Error::success;
}

bool is_location(int device) {
  return device >= kHostDevice && device < device_count();
}

enum Advice : unsigned {
  set_read_mostly = 1,
  unset_read_mostly,
  set_preferred,
  unset_preferred,
  set_accessed_by,
  unset_accessed_by
};

void note(RangeAttributes& range_attributes, unsigned advice, int device) {
  switch (advice) {
    case set_read_mostly:
    case unset_read_mostly:
      range_attributes.read_mostly = advice == set_read_mostly;
      break;
    case set_preferred:
      range_attributes.preferred = device;
      break;
    case unset_preferred:
      range_attributes.preferred = kNowhere;
      break;
    case set_accessed_by:
      range_attributes.accessed_by.insert(device);
      break;
    default:
      range_attributes.accessed_by.erase(device);
  }
}

int location_type(int device) {
  return device == kNowhere ? 0 : device == kHostDevice ? 2 : 1;
}

Error range_attribute(void* data, std::size_t bytes, int attribute, const void* pointer, std::size_t range) {
  Allocation found;
  if (const Error error = managed_range(pointer, range, found); error != Error::success) return error;
  if (data == nullptr || bytes < sizeof(int) || bytes % sizeof(int) != 0) return Error::invalid_value;
  AttributeTable& known = attributes();
  const std::lock_guard lock(known.mutex);
  const RangeAttributes& range_attributes = known.by_address[found.address];
  auto* to = static_cast<int*>(data);
  switch (attribute) {
    case 1:
      *to = range_attributes.read_mostly ? 1 : 0;
      break;
    case 2:
    case 6:
      *to = range_attributes.preferred;
      break;
    case 3: {
      auto next = range_attributes.accessed_by.begin();
      for (std::size_t i = 0; i < bytes / sizeof(int); ++i)
        to[i] = next == range_attributes.accessed_by.end() ? kNowhere : *next++;
      break;
    }
    case 4:
    case 8:
      *to = range_attributes.prefetched;
      break;
    case 5:
      *to = location_type(range_attributes.preferred);
      break;
    case 7:
      *to = location_type(range_attributes.prefetched);
      break;
    default:
      return Error::invalid_value;
  }
  return Error::success;
}

Error attach(Stream* handle, const void* pointer, DefaultStream when_null) {
  Allocation found;
  if (const Error error = managed_range(pointer, 1, found); error != Error::success) return error;
  // Which stream uses memory makes no difference where the host and devices may use it at once.
  return with_stream(handle, when_null, [](Stream&) { return Error::success; });
}

Error prefetch_batch(void** pointers, std::size_t* bytes, std::size_t count, MemoryLocation* locations,
                     std::size_t* first_of_location, std::size_t location_count, Stream* stream,
                     DefaultStream when_null) {
  for (std::size_t i = 0, location = 0; i < count; ++i) {
    while (location + 1 < location_count && first_of_location[location + 1] <= i) ++location;
    const Error error = prefetch(pointers[i], bytes[i], device_of(locations[location]), stream, when_null);
    if (error != Error::success) return error;
  }
  return Error::success;
}

}  // namespace

int device_of(MemoryLocation location) {
  constexpr int device = 1;
  return location.type == device ? location.id : kHostDevice;
}

Error prefetch(const void* pointer, std::size_t bytes, int device, Stream* handle, DefaultStream when_null) {
  Allocation found;
  if (const Error error = managed_range(pointer, bytes, found); error != Error::success) return error;
  if (!is_location(device)) return Error::invalid_device;
  {
    AttributeTable& known = attributes();
    const std::lock_guard lock(known.mutex);
    known.by_address[found.address].prefetched = device;
  }
  return with_stream(handle, when_null, [&](Stream& stream) {
    return enqueue(stream, PrefetchOperation{pointer, bytes, device}, Wait::no);
  });
}

Error advise(const void* pointer, std::size_t bytes, unsigned advice, int device) {
  Allocation found;
  if (const Error error = managed_range(pointer, bytes, found); error != Error::success) return error;
  if (advice < set_read_mostly || advice > unset_accessed_by) return Error::invalid_value;
  if (advice >= set_preferred && !is_location(device)) return Error::invalid_device;
  {
    AttributeTable& known = attributes();
    const std::lock_guard lock(known.mutex);
    note(known.by_address[found.address], advice, device);
  }
  return call<wire::Advise>({advice, device, reinterpret_cast<std::uint64_t>(pointer), bytes});
}

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

extern "C" {

Error cudaMemRangeGetAttribute(void* data, std::size_t bytes, int attribute, const void* pointer,
                               std::size_t range) {
  return finish(range_attribute(data, bytes, attribute, pointer, range));
}

Error cudaMemRangeGetAttributes(void** data, std::size_t* bytes, int* attributes, std::size_t count,
                                const void* pointer, std::size_t range) {
  for (std::size_t i = 0; i < count; ++i) {
    const Error error = range_attribute(data[i], bytes[i], attributes[i], pointer, range);
    if (error != Error::success) return finish(error);
  }
  return finish(Error::success);
}

Error cudaStreamAttachMemAsync(Stream* stream, void* pointer, std::size_t, unsigned) {
  return finish(attach(stream, pointer, DefaultStream::legacy));
}

Error cudaStreamAttachMemAsync_ptsz(Stream* stream, void* pointer, std::size_t, unsigned) {
  return finish(attach(stream, pointer, DefaultStream::per_thread));
}

Error cudaMemPrefetchBatchAsync(void** pointers, std::size_t* bytes, std::size_t count,
                                MemoryLocation* locations, std::size_t* first_of_location,
                                std::size_t location_count, unsigned long long, Stream* stream) {
  return finish(prefetch_batch(pointers, bytes, count, locations, first_of_location, location_count, stream,
                               DefaultStream::legacy));
}

Error cudaMemPrefetchBatchAsync_ptsz(void** pointers, std::size_t* bytes, std::size_t count,
                                     MemoryLocation* locations, std::size_t* first_of_location,
                                     std::size_t location_count, unsigned long long, Stream* stream) {
  return finish(prefetch_batch(pointers, bytes, count, locations, first_of_location, location_count, stream,
                               DefaultStream::per_thread));
}

}  // extern "C"
