// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "host_memory.hpp"
#include "managed.hpp"
#include "process.hpp"

namespace manyscale::cudart {

namespace {

constexpr std::uint64_t kHostPage = 4096;

struct Table {
  std::shared_mutex mutex;
  std::map<std::uint64_t, Allocation> by_address;
};

Table& table() {
  static Table& only = *new Table;
  return only;
}

bool for_host(MemoryKind kind) {
  return kind == MemoryKind::pinned || kind == MemoryKind::managed;
}

// The host may touch what it just got.
void open_for_host(const Allocation& made) {
  if (made.kind == MemoryKind::pinned) protect(made.address, made.reserved, PROT_READ | PROT_WRITE);
  if (made.kind == MemoryKind::managed) add_managed(made.address, made.reserved);
}

// The host may no longer touch what it gave back.
void forget_for_host(const Allocation& gone) {
  if (gone.kind == MemoryKind::managed) forget_managed(gone.address);
  if (for_host(gone.kind)) protect(gone.address, gone.reserved, PROT_NONE);
}

// Forgotten before it is given back: from then on another thread may be handed the same address.
Error release_with(std::uint64_t address, const wire::Free::Request& request) {
  const auto gone = take_allocation(address);
  if (gone) forget_for_host(*gone);
  const Error error = call<wire::Free>(request);
  if (error != Error::success && gone) {
    enter_allocation(*gone);
    open_for_host(*gone);
  }
  return error;
}

}  // namespace

void protect(std::uint64_t address, std::uint64_t bytes, int protection) {
  const std::uint64_t first = address / kHostPage * kHostPage;
  const std::uint64_t last = (address + bytes + kHostPage - 1) / kHostPage * kHostPage;
  if (last > first) mprotect(reinterpret_cast<void*>(first), last - first, protection);
}

Error allocate(MemoryKind kind, std::uint64_t bytes, unsigned flags, Allocation& made) {
  const std::uint32_t asked = kind == MemoryKind::device ? 0 : kind == MemoryKind::pinned ? 1 : 2;
  wire::Malloc::Answer answer{};
  const Error error = call<wire::Malloc>({asked, flags, bytes, 0}, &answer);
  if (error != Error::success) return error;
  made = {answer.address, bytes,  std::max(answer.bytes, bytes), kind, current_device(), flags,
          nullptr,        nullptr};
  enter_allocation(made);
  open_for_host(made);
  return Error::success;
}

Error release(std::uint64_t address) {
  return release_with(address, {address, 0});
}

Error release_in_stream(std::uint64_t address, std::uint32_t stream) {
  return release_with(address, {address, stream + 1});
}

void enter_allocation(const Allocation& allocation) {
  Table& known = table();
  const std::unique_lock lock(known.mutex);
  known.by_address.insert_or_assign(allocation.address, allocation);
}

std::optional<Allocation> find_allocation(std::uint64_t address) {
  Table& known = table();
  const std::shared_lock lock(known.mutex);
  auto after = known.by_address.upper_bound(address);
  if (after == known.by_address.begin()) return {};
  --after;
  const Allocation& found = after->second;
  if (address - found.address >= std::max<std::uint64_t>(found.bytes, 1)) return {};
  return found;
}

std::optional<Allocation> take_allocation(std::uint64_t address) {
  Table& known = table();
  const std::unique_lock lock(known.mutex);
  auto node = known.by_address.extract(address);
  if (node.empty()) return {};
  return node.mapped();
}

void forget_allocations(int device) {
  std::vector<Allocation> gone;
  Table& known = table();
  {
    const std::unique_lock lock(known.mutex);
    std::erase_if(known.by_address, [&](const auto& entry) {
      const bool matches = entry.second.device == device && !entry.second.mapped;
      if (matches) gone.push_back(entry.second);
      return matches;
    });
  }
  for (const Allocation& each : gone) {
    if (each.registered != nullptr) {
      give_pages_back(each);
    } else {
      forget_for_host(each);
    }
  }
}

std::uint64_t device_address(const void* pointer) {
  if (heap().contains(pointer)) return reinterpret_cast<std::uint64_t>(pointer);
  return registered_address(pointer);
}

std::optional<Allocation> describe_pointer(const void* pointer) {
  const std::uint64_t address = device_address(pointer);
  if (address == 0) return {};
  if (const auto known = find_allocation(address)) return known;
  // A variable of a module, or what another process allocated.
  return Allocation{address, 1, 1, MemoryKind::device, current_device(), 0, nullptr, nullptr};
}

}  // namespace manyscale::cudart
