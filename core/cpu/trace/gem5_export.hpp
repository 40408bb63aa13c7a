// SPDX-License-Identifier: Apache-2.0
// A stream of nodes as gem5's data-dependency trace and fetch trace.
//
// gem5 knows one delay of a node, after the last of those it waits for: that is the longest of the node's
// delays. An ALU instruction takes its latency and is then done; an atomic operation becomes a load. Stores
// come after the store and the load before them. Such a trace cannot hold synchronisation: its nodes only
// count as instructions. Requests for instructions are those for each new line, at one instruction a cycle.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "cpu/trace/gem5_messages.hpp"
#include "cpu/trace/trace_node.hpp"

namespace manyscale::cpu::gem5 {

struct ExportSpec {
  std::uint64_t ticks_per_cycle = 1000;
  std::uint32_t window = 1536;           // instructions beyond which nothing is waited for
  std::uint32_t line = 64;               // bytes of a request for instructions
  std::vector<std::uint64_t> latencies;  // in cycles, by kind
};

class Exporter {
 public:
  using NodeSink = std::function<void(const Node&)>;
  using PacketSink = std::function<void(const Packet&)>;

  Exporter(const ExportSpec& spec, NodeSink nodes, PacketSink packets);

  // The next record of the stream. Markers are left out.
  void take(const TraceNode& record);

 private:
  static constexpr std::size_t remembered = 1 << 16;  // distances have 16 bits

  void fetch(const Record& record);
  bool within_window(std::uint64_t number) const;

  const ExportSpec spec_;
  NodeSink nodes_;
  PacketSink packets_;
  std::vector<std::uint64_t> numbers_;  // of the last records, 0: not written
  std::uint64_t records_ = 0;
  std::uint64_t instructions_ = 0;
  std::uint32_t left_out_ = 0;  // instructions since the last node
  std::uint64_t last_load_ = 0, last_store_ = 0, last_line_ = ~std::uint64_t{0};
};

}  // namespace manyscale::cpu::gem5
