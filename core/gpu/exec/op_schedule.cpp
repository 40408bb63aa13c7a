// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/op_schedule.hpp"

#include <algorithm>
#include <array>
#include <queue>

namespace manyscale::gpu {

namespace {

constexpr std::size_t kLongest = 4096;  // operations that are reordered together
// Registers are given in steps, and an assembler fills the step that it needs anyway; up to the first one
// that costs occupancy they cost nothing.
constexpr std::uint32_t kRegistersForFree = 32;
constexpr std::uint32_t kRegisterStep = 8;
constexpr std::uint32_t kReserve = 5;  // of them, for what is not a value of the program

// Where registers hold something, as the stretch from the first mention to the last, over whole loops.
class Lifetimes {
 public:
  Lifetimes(std::span<const Block> blocks, const RegisterUses& uses, std::span<const Schedulable> operations,
            std::span<const std::uint8_t> bytes)
      : count_(operations.size()) {
    for (std::uint32_t id : uses.registers) registers_ = std::max(registers_, id + 1);
    words_.assign(registers_, 1);
    for (std::uint32_t id = 0; id < std::min<std::size_t>(registers_, bytes.size()); ++id)
      words_[id] = static_cast<std::uint8_t>((bytes[id] + 3) / 4);
    reads_.assign(registers_, 0);
    first_.assign(registers_, kNoBlock);
    last_.assign(registers_, 0);
    find_loops(blocks);
    for (std::uint32_t op = 0; op < count_; ++op) {
      for (std::uint32_t id : uses.reads(op)) {
        ++reads_[id];
        mention(id, op);
      }
      for (std::uint32_t id : uses.writes(op)) {
        mention(id, op);
        // Parameters and constants are operands and need no register.
        if (operations[op].touches == Touches::parameters ||
            (uses.reads(op).empty() && operations[op].touches == Touches::nothing))
          words_[id] = 0;
      }
    }
    std::vector<std::int32_t> change(count_ + 1, 0);
    for (std::uint32_t id = 0; id < registers_; ++id) {
      if (first_[id] == kNoBlock) continue;
      change[first_[id]] += words_[id];
      change[last_[id]] -= words_[id];
    }
    std::int32_t now = 0;
    for (std::uint32_t op = 0; op < count_; ++op) {
      now += change[op];
      pressure_.push_back(static_cast<std::uint32_t>(std::max(now, 0)));
      peak_ = std::max(peak_, pressure_.back());
    }
  }

  std::uint32_t registers() const { return registers_; }
  std::uint32_t words(std::uint32_t id) const { return words_[id]; }
  std::uint32_t reads(std::uint32_t id) const { return reads_[id]; }
  bool lives_beyond(std::uint32_t id, std::uint32_t op) const { return last_[id] >= op; }
  std::uint32_t pressure(std::uint32_t op) const { return pressure_[op]; }
  std::uint32_t peak() const { return peak_; }

 private:
  struct Loop {
    std::uint32_t first;
    std::uint32_t last;
    std::uint32_t outer;
  };

  void find_loops(std::span<const Block> blocks) {
    for (const Block& block : blocks)
      for (std::uint32_t successor : block.successors)
        if (blocks[successor].first < block.last && blocks[successor].first <= block.first)
          loops_.push_back({blocks[successor].first, block.last - 1, kNoBlock});
    std::ranges::sort(loops_, {}, [](const Loop& loop) { return std::pair(loop.first, ~loop.last); });
    innermost_.assign(count_, kNoBlock);
    std::vector<std::uint32_t> open;
    std::size_t next = 0;
    for (std::uint32_t op = 0; op < count_; ++op) {
      while (next < loops_.size() && loops_[next].first <= op) {
        loops_[next].outer = open.empty() ? kNoBlock : open.back();
        open.push_back(static_cast<std::uint32_t>(next++));
      }
      while (!open.empty() && loops_[open.back()].last < op) open.pop_back();
      innermost_[op] = open.empty() ? kNoBlock : open.back();
    }
  }

  void mention(std::uint32_t id, std::uint32_t op) {
    first_[id] = std::min(first_[id], op);
    std::uint32_t end = op;
    for (std::uint32_t loop = innermost_[op]; loop != kNoBlock && loops_[loop].first > first_[id];
         loop = loops_[loop].outer)
      end = std::max(end, loops_[loop].last);
    last_[id] = std::max(last_[id], end);
  }

  std::size_t count_;
  std::uint32_t registers_ = 0;
  std::vector<std::uint8_t> words_;
  std::vector<std::uint32_t> reads_;
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> last_;
  std::vector<Loop> loops_;
  std::vector<std::uint32_t> innermost_;
  std::vector<std::uint32_t> pressure_;
  std::uint32_t peak_ = 0;
};

// What the segments of a function use in turn, so that each need not clear it.
struct Scratch {
  struct Register {
    std::uint32_t stamp = kNoBlock;   // the segment that it was used for last
    std::uint32_t writer = kNoBlock;  // operation of the segment
    std::uint32_t reads_left = 0;     // in the segment
    bool holds = false;               // a value, at this point
    std::vector<std::uint32_t> readers;
  };
  std::vector<Register> registers;
};

// List scheduling of the operations [first, last), none of which changes the flow.
class Segment {
 public:
  Segment(std::uint32_t first, std::uint32_t last, const RegisterUses& uses,
          std::span<const Schedulable> operations, const Lifetimes& lifetimes, std::uint32_t limit,
          Scratch& scratch)
      : first_(first),
        count_(last - first),
        uses_(uses),
        operations_(operations),
        lifetimes_(lifetimes),
        limit_(limit),
        scratch_(scratch),
        nodes_(count_) {}

  void append_to(std::vector<std::uint32_t>& order) {
    find_dependences();
    for (std::uint32_t i = count_; i-- > 0;)
      for (const Edge& edge : nodes_[i].successors)
        nodes_[i].height = std::max(nodes_[i].height, edge.latency + nodes_[edge.to].height);
    pressure_ = lifetimes_.pressure(first_);
    for (std::uint32_t i = 0; i < count_; ++i)
      if (nodes_[i].waits == 0) become_ready(i);
    std::uint32_t now = 0;
    for (std::uint32_t done = 0; done < count_; ++done) {
      const std::uint32_t chosen = choose(now);
      Node& node = nodes_[chosen];
      node.done = true;
      now = std::max(now, node.ready);
      order.push_back(first_ + chosen);
      update_pressure(first_ + chosen);
      for (const Edge& edge : node.successors) {
        Node& next = nodes_[edge.to];
        next.ready = std::max(next.ready, now + edge.latency);
        if (--next.waits == 0) become_ready(edge.to);
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
    bool done = false;
  };
  template <class Key>
  using Heap = std::priority_queue<std::pair<Key, std::uint32_t>, std::vector<std::pair<Key, std::uint32_t>>,
                                   std::greater<>>;

  void become_ready(std::uint32_t i) {
    waiting_.push({nodes_[i].ready, i});
    in_order_.insert(std::ranges::lower_bound(in_order_, i), i);
  }

  std::uint32_t choose_for_registers() {
    constexpr std::size_t kLookedAt = 64;
    std::erase_if(in_order_, [&](std::uint32_t i) { return nodes_[i].done; });
    std::uint32_t best = in_order_.front();
    std::int32_t least = 0;
    for (std::uint32_t i : std::span(in_order_).first(std::min(kLookedAt, in_order_.size())))
      if (const std::int32_t change = registers_taken(first_ + i); change < least) {
        least = change;
        best = i;
      }
    return best;
  }

  // By how many registers an operation, carried out now, adds to those in use.
  std::int32_t registers_taken(std::uint32_t op) const {
    std::int32_t result = 0;
    for (std::uint32_t id : uses_.reads(op)) {
      const Scratch::Register& r = scratch_.registers[id];
      if (r.reads_left == 1 && r.holds && !lifetimes_.lives_beyond(id, first_ + count_))
        result -= static_cast<std::int32_t>(lifetimes_.words(id));
    }
    for (std::uint32_t id : uses_.writes(op)) {
      const Scratch::Register& r = scratch_.registers[id];
      if (!r.holds && (r.reads_left != 0 || lifetimes_.lives_beyond(id, first_ + count_)))
        result += static_cast<std::int32_t>(lifetimes_.words(id));
    }
    return result;
  }

  // Of those whose operands are there, the one with the longest way to go; else the one that is ready first.
  // When registers run out, the one that frees most of them, else the one that the program has first: its own
  // order does with those it needs.
  std::uint32_t choose(std::uint32_t now) {
    while (!waiting_.empty() && waiting_.top().first <= now) {
      const std::uint32_t i = waiting_.top().second;
      waiting_.pop();
      if (!nodes_[i].done) available_.push({{~nodes_[i].height, i}, i});
    }
    if (pressure_ >= limit_) return choose_for_registers();
    while (!available_.empty() && nodes_[available_.top().second].done) available_.pop();
    if (!available_.empty()) return available_.top().second;
    while (nodes_[waiting_.top().second].done) waiting_.pop();
    return waiting_.top().second;
  }

  void update_pressure(std::uint32_t op) {
    for (std::uint32_t id : uses_.reads(op)) {
      Scratch::Register& r = scratch_.registers[id];
      if (--r.reads_left == 0 && r.holds && !lifetimes_.lives_beyond(id, first_ + count_)) {
        r.holds = false;
        pressure_ -= std::min(pressure_, lifetimes_.words(id));
      }
    }
    for (std::uint32_t id : uses_.writes(op)) {
      Scratch::Register& r = scratch_.registers[id];
      if (r.holds || (r.reads_left == 0 && !lifetimes_.lives_beyond(id, first_ + count_))) continue;
      r.holds = true;
      pressure_ += lifetimes_.words(id);
    }
  }

  void depend(std::uint32_t from, std::uint32_t to, std::uint32_t latency) {
    nodes_[from].successors.push_back({to, latency});
    ++nodes_[to].waits;
  }

  Scratch::Register& fresh(std::uint32_t id) {
    Scratch::Register& r = scratch_.registers[id];
    if (r.stamp != first_) {
      r.stamp = first_;
      r.writer = kNoBlock;
      r.reads_left = 0;
      r.holds = false;
      r.readers.clear();
    }
    return r;
  }

  void find_dependences() {
    std::uint32_t carry = kNoBlock;
    for (std::uint32_t i = 0; i < count_; ++i) {
      for (std::uint32_t id : uses_.reads(first_ + i)) {
        Scratch::Register& r = fresh(id);
        if (r.writer != kNoBlock)
          depend(r.writer, i, operations_[first_ + r.writer].latency);
        else
          r.holds = true;
        ++r.reads_left;
        r.readers.push_back(i);
      }
      for (std::uint32_t id : uses_.writes(first_ + i)) {
        Scratch::Register& r = fresh(id);
        for (std::uint32_t reader : r.readers)
          if (reader != i) depend(reader, i, 0);
        if (r.writer != kNoBlock && r.writer != i) depend(r.writer, i, 1);
        r.writer = i;
        r.readers.clear();
      }
      if (operations_[first_ + i].uses_carry) {
        if (carry != kNoBlock) depend(carry, i, 4);
        carry = i;
      }
      order_memory(i);
    }
  }

  // Writes stay behind what may touch the same memory, reads behind writes. Those before a write need not be
  // looked at again: whoever waits for the write waits for them.
  void order_memory(std::uint32_t i) {
    const Schedulable& operation = operations_[first_ + i];
    if (operation.touches == Touches::nothing || operation.touches == Touches::parameters) return;
    const auto own = static_cast<std::size_t>(operation.touches);
    const auto any = static_cast<std::size_t>(Touches::anything);
    for (std::size_t other = 0; other < memory_.size(); ++other) {
      if (other != own && other != any && own != any) continue;
      Memory& memory = memory_[other];
      if (memory.writer != kNoBlock) depend(memory.writer, i, 1);
      if (!operation.writes_memory) continue;
      for (std::uint32_t reader : memory.readers) depend(reader, i, 1);
    }
    if (!operation.writes_memory) {
      memory_[own].readers.push_back(i);
      return;
    }
    memory_[own].writer = i;
    memory_[own].readers.clear();
    if (own == any)
      for (Memory& memory : memory_) memory = memory_[own];
  }

  struct Memory {
    std::uint32_t writer = kNoBlock;
    std::vector<std::uint32_t> readers;  // since the writer
  };

  std::uint32_t first_;
  std::uint32_t count_;
  const RegisterUses& uses_;
  std::span<const Schedulable> operations_;
  const Lifetimes& lifetimes_;
  const std::uint32_t limit_;
  Scratch& scratch_;
  std::vector<Node> nodes_;
  std::uint32_t pressure_ = 0;
  Heap<std::uint32_t> waiting_;                              // by the time they are ready
  Heap<std::pair<std::uint32_t, std::uint32_t>> available_;  // by height
  std::vector<std::uint32_t> in_order_;                      // as in the program
  std::array<Memory, 6> memory_;
};

}  // namespace

std::vector<std::uint32_t> schedule(std::span<const Block> blocks, const RegisterUses& uses,
                                    std::span<const Schedulable> operations,
                                    std::span<const std::uint8_t> bytes, std::uint32_t most_registers) {
  const Lifetimes lifetimes(blocks, uses, operations, bytes);
  const std::uint32_t needed =
      (lifetimes.peak() + kReserve + kRegisterStep - 1) / kRegisterStep * kRegisterStep;
  const std::uint32_t limit =
      std::min(std::max(needed, kRegistersForFree), std::max(most_registers, 2 * kReserve)) - kReserve;
  Scratch scratch;
  scratch.registers.resize(lifetimes.registers());
  std::vector<std::uint32_t> order;
  order.reserve(operations.size());
  for (const Block& block : blocks) {
    std::uint32_t first = block.first;
    for (std::uint32_t i = block.first; i <= block.last; ++i) {
      const bool end = i == block.last || operations[i].stays || i - first >= kLongest;
      if (!end) continue;
      if (i > first) Segment(first, i, uses, operations, lifetimes, limit, scratch).append_to(order);
      if (i < block.last && operations[i].stays) order.push_back(i);
      first = i < block.last && !operations[i].stays ? i : i + 1;
    }
  }
  return order;
}

}  // namespace manyscale::gpu
