// SPDX-License-Identifier: Apache-2.0
#include "graph_memory.hpp"

#include <atomic>
#include <map>
#include <mutex>

#include "graphs.hpp"
#include "memory.hpp"

namespace manyscale::cudart {

namespace {

struct GraphMemory {
  std::mutex mutex;
  std::map<std::uint64_t, bool> launched;  // by address: allocated by a launch, and not freed since
  std::atomic<std::uint64_t> bytes{0};
};

GraphMemory& graph_memory() {
  static GraphMemory& only = *new GraphMemory;
  return only;
}

// The graph is gone. What one of its launches has allocated is from then on the program's.
void leave_graph(std::uint64_t address, std::uint64_t bytes) {
  GraphMemory& all = graph_memory();
  all.bytes -= bytes;
  bool launched = false;
  {
    const std::lock_guard lock(all.mutex);
    if (auto node = all.launched.extract(address); !node.empty()) launched = node.mapped();
  }
  if (launched) return;
  // The device may have been reset.
  if (const auto still = find_allocation(address); still && still->address == address) release(address);
}

}  // namespace

Error own_memory(GraphNode& node) {
  auto& wanted = std::get<AllocateOperation>(node.operation);
  Allocation made;
  const Error error = allocate(MemoryKind::device, wanted.bytes, 0, made);
  if (error != Error::success) return error;
  wanted.pointer = reinterpret_cast<void*>(made.address);
  GraphMemory& all = graph_memory();
  all.bytes += wanted.bytes;
  {
    const std::lock_guard lock(all.mutex);
    all.launched[made.address] = false;
  }
  node.owned = std::shared_ptr<void>(wanted.pointer, [bytes = wanted.bytes](void* pointer) {
    leave_graph(reinterpret_cast<std::uint64_t>(pointer), bytes);
  });
  return Error::success;
}

void launch_graph_memory(std::uint64_t address) {
  GraphMemory& all = graph_memory();
  const std::lock_guard lock(all.mutex);
  if (const auto found = all.launched.find(address); found != all.launched.end()) found->second = true;
}

bool free_graph_memory(std::uint64_t address) {
  GraphMemory& all = graph_memory();
  const std::lock_guard lock(all.mutex);
  const auto found = all.launched.find(address);
  if (found == all.launched.end()) return false;
  found->second = false;
  return true;
}

std::uint64_t graph_memory_bytes() {
  return graph_memory().bytes;
}

}  // namespace manyscale::cudart
