// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/op_schedule.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace manyscale::gpu {

namespace {

constexpr std::size_t kLongest = 4096;  // operations that are reordered together

bool may_conflict(Touches a, Touches b) {
  if (a == Touches::nothing || b == Touches::nothing || a == Touches::parameters || b == Touches::parameters)
    return false;
  return a == b || a == Touches::anything || b == Touches::anything;
}

// List scheduling of the operations [first, last), none of which changes the flow.
class Segment {
 public:
  Segment(std::uint32_t first, std::uint32_t last, const RegisterUses& uses,
          std::span<const Schedulable> operations)
      : first_(first), count_(last - first), uses_(uses), operations_(operations), nodes_(count_) {}

  void append_to(std::vector<std::uint32_t>& order) {
    find_dependences();
    for (std::uint32_t i = count_; i-- > 0;)
      for (const Edge& edge : nodes_[i].successors)
        nodes_[i].height = std::max(nodes_[i].height, edge.latency + nodes_[edge.to].height);
    std::vector<std::uint32_t> ready;
    for (std::uint32_t i = 0; i < count_; ++i)
      if (nodes_[i].waits == 0) ready.push_back(i);
    std::uint32_t now = 0;
    while (!ready.empty()) {
      // Of those whose operands are there, the one with the longest way to go; else the one that is ready
      // first.
      std::size_t best = 0;
      for (std::size_t i = 1; i < ready.size(); ++i)
        if (before(ready[i], ready[best], now)) best = i;
      const std::uint32_t chosen = ready[best];
      ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(best));
      now = std::max(now, nodes_[chosen].ready);
      order.push_back(first_ + chosen);
      for (const Edge& edge : nodes_[chosen].successors) {
        Node& next = nodes_[edge.to];
        next.ready = std::max(next.ready, now + edge.latency);
        if (--next.waits == 0) ready.push_back(edge.to);
      }
      ++now;
    }
  }

 private:
  struct Edge {
    std::uint32_t to;
    std::uint32_t latency;
  };
  struct Node {
    std::vector<Edge> successors;
    std::uint32_t waits = 0;
    std::uint32_t ready = 0;
    std::uint32_t height = 0;
  };

  bool before(std::uint32_t a, std::uint32_t b, std::uint32_t now) const {
    const bool a_ready = nodes_[a].ready <= now;
    const bool b_ready = nodes_[b].ready <= now;
    if (a_ready != b_ready) return a_ready;
    if (!a_ready && nodes_[a].ready != nodes_[b].ready) return nodes_[a].ready < nodes_[b].ready;
    if (nodes_[a].height != nodes_[b].height) return nodes_[a].height > nodes_[b].height;
    return a < b;
  }

  void depend(std::uint32_t from, std::uint32_t to, std::uint32_t latency) {
    nodes_[from].successors.push_back({to, latency});
    ++nodes_[to].waits;
  }

  void find_dependences() {
    struct Register {
      std::int64_t writer = -1;
      std::vector<std::uint32_t> readers;
    };
    std::unordered_map<std::uint32_t, Register> registers;
    std::vector<std::uint32_t> memory;
    std::int64_t carry = -1;
    for (std::uint32_t i = 0; i < count_; ++i) {
      const Schedulable& operation = operations_[first_ + i];
      for (std::uint32_t id : uses_.reads(first_ + i)) {
        Register& r = registers[id];
        if (r.writer >= 0)
          depend(static_cast<std::uint32_t>(r.writer), i,
                 operations_[first_ + static_cast<std::uint32_t>(r.writer)].latency);
        r.readers.push_back(i);
      }
      for (std::uint32_t id : uses_.writes(first_ + i)) {
        Register& r = registers[id];
        for (std::uint32_t reader : r.readers)
          if (reader != i) depend(reader, i, 0);
        if (r.writer >= 0 && r.writer != i) depend(static_cast<std::uint32_t>(r.writer), i, 1);
        r.writer = i;
        r.readers.clear();
      }
      if (operation.uses_carry) {
        if (carry >= 0) depend(static_cast<std::uint32_t>(carry), i, 4);
        carry = i;
      }
      if (operation.touches == Touches::nothing || operation.touches == Touches::parameters) continue;
      for (std::uint32_t other : memory) {
        const Schedulable& earlier = operations_[first_ + other];
        if ((earlier.writes_memory || operation.writes_memory) &&
            may_conflict(earlier.touches, operation.touches))
          depend(other, i, 1);
      }
      memory.push_back(i);
    }
  }

  std::uint32_t first_;
  std::uint32_t count_;
  const RegisterUses& uses_;
  std::span<const Schedulable> operations_;
  std::vector<Node> nodes_;
};

}  // namespace

std::vector<std::uint32_t> schedule(std::span<const Block> blocks, const RegisterUses& uses,
                                    std::span<const Schedulable> operations) {
  std::vector<std::uint32_t> order;
  order.reserve(operations.size());
  for (const Block& block : blocks) {
    std::uint32_t first = block.first;
    for (std::uint32_t i = block.first; i <= block.last; ++i) {
      const bool end = i == block.last || operations[i].stays || i - first >= kLongest;
      if (!end) continue;
      if (i > first) Segment(first, i, uses, operations).append_to(order);
      if (i < block.last && operations[i].stays) order.push_back(i);
      first = i < block.last && !operations[i].stays ? i : i + 1;
    }
  }
  return order;
}

}  // namespace manyscale::gpu
