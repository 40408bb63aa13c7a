// SPDX-License-Identifier: Apache-2.0
// Trace compaction: turns a stream of executed instructions into fewer nodes that take as long, as gem5's
// elastic traces do. Loads and stores that may miss the L1 cache, atomics, fences, system calls and
// mispredicted branches are nodes. An ALU instruction is compacted into those that need its result: they then
// wait for what it waited for, and for its latency on top, the computational delay. A load that hits the L1
// filter cache (l1_filter.hpp) is compacted, too; the number of hits in a delay is kept, so that it can be
// replayed on a cache with another latency.
//
// A node has three dependences (dependence.hpp). Where compaction needs more, or a delay that is too long,
// ALU instructions stay nodes: so chains keep their length, whatever number of instructions they take. A long
// delay after dispatch makes a node of the first instruction of its chain.
//
// The flow of data is exact: where nothing but operands is waited for, every node has its result when it has
// it in the full stream, whatever loads take. The instructions of a delay after dispatch were dispatched
// before the node; how long before follows only from width, taken branches and mispredictions.
// Compacted instructions take no register, and no issue port but among those that wait for the same node
// (port_bursts.hpp). The number of those that wait for a node is kept with it: they stand in the issue queue.
// Instructions that keep a unit busy for longer than a cycle are nodes, since others wait for the unit. Where
// ports limit the rate, a node stays for every few instructions of these (port_pressure.hpp). The instruction
// that completes last of some is a node, since what follows it commits when it does.
#pragma once
#include <cstdint>
#include <vector>

#include "cpu/trace/block.hpp"
#include "cpu/trace/compaction_spec.hpp"
#include "cpu/trace/compaction_window.hpp"
#include "cpu/trace/l1_filter.hpp"
#include "cpu/trace/latencies.hpp"
#include "cpu/trace/operand_resolver.hpp"
#include "cpu/trace/port_bursts.hpp"
#include "cpu/trace/port_pressure.hpp"
#include "cpu/trace/trace_node.hpp"

namespace manyscale::cpu {

class TraceCompactor {
 public:
  TraceCompactor(const Latencies& latencies, const CompactionLimits& limits);
  TraceCompactor(const TraceCompactor&) = delete;
  TraceCompactor& operator=(const TraceCompactor&) = delete;

  // The next instruction of the stream, or a marker. Producers count back in instructions.
  void take(const TraceNode& record, const FilterResult& filter = {});
  // The stream ends.
  void flush();
  // Begins again with another stream.
  void reset();

  std::uint64_t instructions() const { return window_.next(); }
  // The nodes so far, with markers among them; the caller takes them and clears the list.
  std::vector<TraceNode>& nodes() { return nodes_; }
  // The L1 hits in the delays of each.
  std::vector<L1Hits>& l1_hits() { return l1_hits_; }

 private:
  struct Marker {
    std::uint64_t position = 0;  // of the instruction that follows
    TraceNode record{};
  };

  bool must_be_node(const TraceNode& record, const FilterResult& filter);
  void advance_dispatch(const TraceNode& record);
  std::uint64_t completion(const CompactionEntry& entry) const;
  void find_dependences(std::uint64_t position, CompactionEntry& entry);
  bool find_result_dependences(std::uint64_t position, CompactionEntry& entry);
  bool find_operand_dependences(std::uint64_t position, CompactionEntry& entry, bool allowed);
  void refine_dependences(std::uint64_t position, CompactionEntry& entry);
  void enter_issue_queue(std::uint64_t position, CompactionEntry& entry);
  static void wait_for_port(CompactionEntry& entry);
  void represent_group();
  void emit();
  void emit_markers(std::uint64_t until);
  void emit_node(CompactionEntry& entry);
  bool refer_to_dispatch(const CompactionEntry& entry, std::size_t operand, TraceNode& node) const;

  const Latencies& latencies_;
  const CompactionLimits limits_;
  CompactionWindow window_;
  OperandResolver resolver_{window_};
  PortPressure pressure_;
  PortBursts bursts_;
  std::uint64_t dispatch_slot_ = 0;
  std::uint64_t node_ = 0;                 // number of the next
  std::vector<std::uint64_t> node_slots_;  // dispatch slots of the last nodes, by number
  std::uint32_t compacted_ = 0;            // since the last node
  CompactedBranches branches_;             // among those
  std::vector<Marker> markers_;
  std::size_t first_marker_ = 0;
  std::vector<TraceNode> nodes_;
  std::vector<L1Hits> l1_hits_;
};

}  // namespace manyscale::cpu
