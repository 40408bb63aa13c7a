// SPDX-License-Identifier: Apache-2.0
// Stream-ordered allocation. Pools only count: memory comes from the device and goes back to it.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "graph_memory.hpp"
#include "graphs.hpp"
#include "memory.hpp"
#include "operations.hpp"
#include "process.hpp"

namespace manyscale::cudart {

struct MemoryPool {
  int device = 0;
  bool made_by_program = false;
  std::map<int, std::uint64_t> settings{{1, 1}, {2, 1}, {3, 1}, {4, 0}};  // by cudaMemPoolAttr
  std::uint64_t used = 0;
  std::uint64_t most_used = 0;
  std::map<int, int> access;  // of other devices: cudaMemAccessFlags
};

namespace {

struct Pools {
  std::mutex mutex;
  std::map<int, std::unique_ptr<MemoryPool>> of_device;  // the default ones
  std::map<int, MemoryPool*> current;
  std::map<MemoryPool*, std::unique_ptr<MemoryPool>> made;
};

Pools& pools() {
  static Pools& only = *new Pools;
  return only;
}

MemoryPool& default_pool(Pools& known, int device) {
  auto& pool = known.of_device[device];
  if (pool == nullptr) {
    pool = std::make_unique<MemoryPool>();
    pool->device = device;
  }
  return *pool;
}

MemoryPool& current_pool(Pools& known, int device) {
  const auto found = known.current.find(device);
  return found != known.current.end() ? *found->second : default_pool(known, device);
}

bool is_pool(const Pools& known, MemoryPool* pool) {
  return known.made.contains(pool) ||
         std::ranges::any_of(known.of_device, [&](const auto& entry) { return entry.second.get() == pool; });
}

Error allocate_in_stream(void** pointer, std::size_t bytes, MemoryPool* from, Stream* handle,
                         DefaultStream when_null) {
  if (pointer == nullptr) return Error::invalid_value;
  if (bytes == 0) {
    *pointer = nullptr;
    return Error::success;
  }
  return with_stream(handle, when_null, [&](Stream& stream) {
    if (stream.capture != nullptr) {
      const Error error = enqueue(stream, AllocateOperation{{}, bytes, nullptr}, Wait::no);
      if (error != Error::success) return error;
      GraphNode& node = *stream.last_nodes.front();
      const Error owned = own_memory(node);
      if (owned == Error::success) *pointer = std::get<AllocateOperation>(node.operation).pointer;
      return owned;
    }
    Allocation made;
    if (const Error error = allocate(MemoryKind::device, bytes, 0, made); error != Error::success)
      return error;
    Pools& known = pools();
    const std::lock_guard lock(known.mutex);
    MemoryPool& pool = from != nullptr ? *from : current_pool(known, current_device());
    pool.used += bytes;
    pool.most_used = std::max(pool.most_used, pool.used);
    made.pool = &pool;
    enter_allocation(made);
    *pointer = reinterpret_cast<void*>(made.address);
    return Error::success;
  });
}

Error allocate_from(void** pointer, std::size_t bytes, MemoryPool* pool, Stream* stream,
                    DefaultStream when_null) {
  {
    const std::lock_guard lock(pools().mutex);
    if (!is_pool(pools(), pool)) return Error::invalid_value;
  }
  return allocate_in_stream(pointer, bytes, pool, stream, when_null);
}

Error free_in_stream(void* pointer, Stream* handle, DefaultStream when_null) {
  if (pointer == nullptr) return Error::success;
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  return with_stream(handle, when_null, [&](Stream& stream) {
    if (stream.capture != nullptr) return enqueue(stream, FreeOperation{pointer}, Wait::no);
    if (free_graph_memory(address)) return Error::success;
    const auto known = find_allocation(address);
    if (!known || known->address != address || known->kind != MemoryKind::device) return Error::invalid_value;
    if (const Error error = release_in_stream(address, stream.number); error != Error::success) return error;
    const std::lock_guard lock(pools().mutex);
    if (known->pool != nullptr && is_pool(pools(), known->pool)) known->pool->used -= known->bytes;
    return Error::success;
  });
}

// Does something with a pool that is there.
template <class Action>
Error with_pool(MemoryPool* pool, Action action) {
  Pools& known = pools();
  const std::lock_guard lock(known.mutex);
  return is_pool(known, pool) ? action(known) : Error::invalid_value;
}

bool is_device_of_pool(int device) {
  return connect_thread() == Error::success && device >= 0 && device < device_count();
}

// Settings of pools that are 32-bit numbers: how memory may be used again.
bool is_reuse(int attribute) {
  return attribute >= 1 && attribute <= 3;
}

}  // namespace

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

extern "C" {

Error cudaMallocAsync(void** pointer, std::size_t bytes, Stream* stream) {
  return finish(allocate_in_stream(pointer, bytes, nullptr, stream, DefaultStream::legacy));
}

Error cudaMallocAsync_ptsz(void** pointer, std::size_t bytes, Stream* stream) {
  return finish(allocate_in_stream(pointer, bytes, nullptr, stream, DefaultStream::per_thread));
}

Error cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, MemoryPool* pool, Stream* stream) {
  return finish(allocate_from(pointer, bytes, pool, stream, DefaultStream::legacy));
}

Error cudaMallocFromPoolAsync_ptsz(void** pointer, std::size_t bytes, MemoryPool* pool, Stream* stream) {
  return finish(allocate_from(pointer, bytes, pool, stream, DefaultStream::per_thread));
}

Error cudaFreeAsync(void* pointer, Stream* stream) {
  return finish(free_in_stream(pointer, stream, DefaultStream::legacy));
}

Error cudaFreeAsync_ptsz(void* pointer, Stream* stream) {
  return finish(free_in_stream(pointer, stream, DefaultStream::per_thread));
}

Error cudaDeviceGetDefaultMemPool(MemoryPool** pool, int device) {
  if (pool == nullptr || !is_device_of_pool(device)) return finish(Error::invalid_value);
  const std::lock_guard lock(pools().mutex);
  *pool = &default_pool(pools(), device);
  return finish(Error::success);
}

Error cudaDeviceGetMemPool(MemoryPool** pool, int device) {
  if (pool == nullptr || !is_device_of_pool(device)) return finish(Error::invalid_value);
  const std::lock_guard lock(pools().mutex);
  *pool = &current_pool(pools(), device);
  return finish(Error::success);
}

Error cudaDeviceSetMemPool(int device, MemoryPool* pool) {
  if (!is_device_of_pool(device)) return finish(Error::invalid_value);
  return finish(with_pool(pool, [&](Pools& known) {
    known.current[device] = pool;
    return Error::success;
  }));
}

Error cudaMemPoolCreate(MemoryPool** pool, const MemoryPoolProperties* properties) {
  constexpr int on_device = 1;
  if (pool == nullptr || properties == nullptr) return finish(Error::invalid_value);
  if (properties->location.type != on_device) {
    report_once("memory pools of the host are not supported; allocate with cudaHostAlloc");
    return finish(Error::not_supported);
  }
  if (!is_device_of_pool(properties->location.id)) return finish(Error::invalid_device);
  auto made = std::make_unique<MemoryPool>();
  made->device = properties->location.id;
  made->made_by_program = true;
  *pool = made.get();
  const std::lock_guard lock(pools().mutex);
  pools().made.emplace(*pool, std::move(made));
  return finish(Error::success);
}

Error cudaMemPoolDestroy(MemoryPool* pool) {
  return finish(with_pool(pool, [&](Pools& known) {
    if (!pool->made_by_program) return Error::invalid_value;
    std::erase_if(known.current, [&](const auto& entry) { return entry.second == pool; });
    known.made.erase(pool);
    return Error::success;
  }));
}

Error cudaMemPoolTrimTo(MemoryPool* pool, std::size_t) {
  return finish(with_pool(pool, [](Pools&) { return Error::success; }));
}

Error cudaMemPoolSetAttribute(MemoryPool* pool, int attribute, void* value) {
  if (value == nullptr) return finish(Error::invalid_value);
  return finish(with_pool(pool, [&](Pools&) {
    if (is_reuse(attribute)) {
      pool->settings[attribute] = static_cast<std::uint64_t>(*static_cast<int*>(value));
    } else if (attribute == 4) {
      pool->settings[attribute] = *static_cast<std::uint64_t*>(value);
    } else if (attribute == 6 || attribute == 8) {
      pool->most_used = pool->used;  // the high-water marks can only be set back
    } else {
      return Error::invalid_value;
    }
    return Error::success;
  }));
}

Error cudaMemPoolGetAttribute(MemoryPool* pool, int attribute, void* value) {
  if (value == nullptr) return finish(Error::invalid_value);
  return finish(with_pool(pool, [&](Pools&) {
    if (is_reuse(attribute)) {
      *static_cast<int*>(value) = static_cast<int>(pool->settings[attribute]);
    } else if (attribute == 4) {
      *static_cast<std::uint64_t*>(value) = pool->settings[attribute];
    } else if (attribute >= 5 && attribute <= 8) {
      const bool most = attribute == 6 || attribute == 8;
      *static_cast<std::uint64_t*>(value) = most ? pool->most_used : pool->used;
    } else {
      return Error::invalid_value;
    }
    return Error::success;
  }));
}

struct MemoryAccess {
  MemoryLocation location;
  int flags;
};

Error cudaMemPoolSetAccess(MemoryPool* pool, const MemoryAccess* accesses, std::size_t count) {
  return finish(with_pool(pool, [&](Pools&) {
    for (std::size_t i = 0; i < count; ++i) pool->access[accesses[i].location.id] = accesses[i].flags;
    return Error::success;
  }));
}

Error cudaMemPoolGetAccess(int* flags, MemoryPool* pool, MemoryLocation* location) {
  if (flags == nullptr || location == nullptr) return finish(Error::invalid_value);
  constexpr int read_write = 3;
  return finish(with_pool(pool, [&](Pools&) {
    const auto found = pool->access.find(location->id);
    *flags = location->id == pool->device ? read_write : found != pool->access.end() ? found->second : 0;
    return Error::success;
  }));
}

}  // extern "C"
