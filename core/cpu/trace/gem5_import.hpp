// SPDX-License-Identifier: Apache-2.0
// A data-dependency trace of gem5 as a stream of nodes.
//
// A node cannot count from the moment a load is sent, as gem5 does; there the producers of the load stand
// for it, with the delays of both. The requests of a fetch trace, which has no other tie to the nodes than
// their order, are spread evenly over the instructions, which gives each its address.
//
// Leaves out: producers beyond three (the oldest go), delays beyond 255 cycles, and accesses that gem5 itself
// does not play (strictly ordered ones, which only take their delay).
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <vector>

#include "cpu/trace/gem5_messages.hpp"
#include "cpu/trace/trace_node.hpp"

namespace manyscale::cpu::gem5 {

struct ImportSpec {
  std::uint16_t thread = 0;
  std::uint64_t ticks_per_second = 0;
  std::uint64_t clock = 1'000'000'000;  // in which delays are counted
  std::uint64_t instructions = 0;       // of the whole trace
  std::uint64_t packets = 0;            // of the fetch trace; 0: there is none
};

struct ImportStatistics {
  std::uint64_t nodes = 0;
  std::uint64_t instructions = 0;
  std::uint64_t dropped_producers = 0;
  std::uint64_t clipped_delays = 0;
  std::uint64_t skipped_packets = 0;
};

class Importer {
 public:
  using Sink = std::function<void(const TraceNode&)>;
  static constexpr std::uint32_t most_weight = 1 << 16;

  Importer(const ImportSpec& spec, Sink sink);

  // The next request of the fetch trace.
  void give(const Packet& packet);
  // Whether enough of them were given for this node to be taken next.
  bool can_take(const Node& node) const;
  // Throws std::invalid_argument.
  void take(const Node& node);
  // The stream ends.
  void finish();

  const ImportStatistics& statistics() const { return statistics_; }

 private:
  // A producer, by the number of its record, and cycles after it; or, of no record, after dispatch.
  struct Operand {
    std::uint64_t record = none;
    std::uint64_t delay = 0;
  };
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  static constexpr std::size_t operands = 3;
  // What later nodes need to know of a node.
  struct Past {
    std::uint64_t number = 0;
    std::uint64_t record = none;
    bool is_load = false;
    std::array<Operand, operands> sent{};  // when it was sent
  };
  static constexpr std::size_t window = 1 << 15;  // nodes remembered; distances have 15 bits

  std::uint64_t cycles(std::uint64_t ticks) const;
  const Past* find(std::uint64_t number) const;
  std::vector<Operand> operands_of(const Node& node, std::uint64_t delay) const;
  std::array<Operand, operands> nearest(std::vector<Operand> all);
  void emit(TraceNode node);
  void emit_compacted(std::uint32_t weight);
  std::uint64_t packets_until(const Node& node) const;
  std::uint64_t next_pc();

  const ImportSpec spec_;
  Sink sink_;
  ImportStatistics statistics_;
  std::vector<Past> past_;
  std::unordered_map<std::uint64_t, std::size_t> index_of_;  // in past_, by the number of the node
  std::size_t next_past_ = 0;
  std::uint64_t records_ = 0;
  std::deque<Packet> packets_;  // given and not used up
  std::uint64_t current_packet_ = none;
  Packet current_{};
  std::uint64_t within_packet_ = 0;  // instructions since it
};

}  // namespace manyscale::cpu::gem5
