// SPDX-License-Identifier: Apache-2.0
// The window of trace compaction: the last instructions of a stream, with what is known of each, and which of
// them are nodes. It estimates when results are there, as far as that follows from latencies, dispatch width
// and branches; it leaves out the cache misses, which a replay finds out.
#pragma once
#include <cstdint>
#include <vector>

#include "cpu/stream/record.hpp"
#include "cpu/trace/compaction_spec.hpp"
#include "cpu/trace/dependence.hpp"
#include "cpu/trace/l1_filter.hpp"
#include "cpu/trace/latencies.hpp"
#include "cpu/trace/trace_node.hpp"

namespace manyscale::cpu {

// An instruction of the window.
struct CompactionEntry {
  TraceNode record{};
  FilterResult filter{};
  // What its operands wait for; of a filtered access that is compacted, what its result waits for.
  Dependences dependences{};
  Dependence port_dependence{};  // among these, where the node stands for others of its ports
  std::uint64_t node = 0;  // number, once it is known: its own, or that of the node it is compacted into
  std::uint64_t dispatch_slot =
      0;  // where it is dispatched if only taken branches and mispredictions delay it
  std::uint64_t awaited = Dependence::on_dispatch;  // the youngest node that it waits for
  std::uint32_t port_delay = 0;                     // how long after that a port is free for it
  int waiters = 0;             // compacted instructions that wait for this one in an issue queue
  std::uint64_t complete = 0;  // the cycle of its result if only operands delay it
  bool is_node = false;
  bool ends_part = false;  // a marker follows: no compacted instruction moves beyond it
  bool waits_for_memory = false;

  // One that is on nothing; null if there is none.
  Dependence* unused_dependence();
};

class CompactionWindow {
 public:
  CompactionWindow(const Latencies& latencies, const CompactionLimits& limits);

  const Latencies& latencies() const { return latencies_; }
  const CompactionLimits& limits() const { return limits_; }
  // Dispatch slots of a cycle.
  std::uint64_t slots_per_cycle() const { return slots_per_cycle_; }
  // Instructions that a node is held back; older producers do not matter.
  std::uint64_t lag() const { return lag_; }
  std::uint64_t size() const { return entries_.size(); }
  std::uint64_t mask() const { return mask_; }
  // The position of the next instruction that comes, and of the next that leaves.
  std::uint64_t next() const { return next_; }
  std::uint64_t oldest() const { return oldest_; }

  CompactionEntry& operator[](std::uint64_t position) { return entries_[position & mask_]; }
  const CompactionEntry& operator[](std::uint64_t position) const { return entries_[position & mask_]; }

  void reset() { next_ = oldest_ = 0; }
  // Room for the next instruction, with nothing known of it.
  CompactionEntry& push(const TraceNode& record, const FilterResult& filter);
  void advance_next() { ++next_; }
  void advance_oldest() { ++oldest_; }

  // Makes a node of an instruction that was compacted.
  void make_node(std::uint64_t position);
  // A compacted instruction has its issue queue entry until the last of its operands is there: it counts with
  // each of the nodes that it waits for.
  void count_waiter(std::uint64_t position, const CompactionEntry& entry, int change);

  // Cycles from the dispatch of an older instruction to that of a younger one, at least.
  std::uint64_t cycles_between(const CompactionEntry& older, const CompactionEntry& younger) const {
    return limits_.width > 0 ? (younger.dispatch_slot - older.dispatch_slot) / limits_.width : 0;
  }
  // Cycles from the operands of an instruction to its result, with a hit of the L1 cache if it is a load.
  std::uint32_t hit_latency(const Record& record) const {
    return latencies_.latency(record) + (record.kind == InstructionClass::load ? latencies_.l1_hit() : 0);
  }
  // The same dependence, counted from the result of the chain's first instruction where that is a node.
  Dependence from_chain_start(const Dependence& dependence) const;
  // Whether the dependence is over before the instruction at `position` is dispatched, since its node waits
  // for its own dispatch only.
  bool over_at_dispatch(std::uint64_t position, const Dependence& dependence) const;
  // Whether the dependence is over before this cycle if all is dispatched at full width; not known of nodes
  // that wait for memory.
  bool over_before(const Dependence& dependence, std::uint64_t cycle) const;
  // Whether the node has left the recorded machine's reorder buffer when the instruction at `position` is
  // dispatched, and its delay is over `later` cycles later.
  bool is_committed(std::uint64_t position, const Dependence& dependence, std::uint32_t later) const;
  // Whether `other` is on a node that waits for that of `dependence`, and ends no sooner.
  bool is_covered(const Dependence& dependence, const Dependence& other) const;

 private:
  const Latencies& latencies_;
  const CompactionLimits limits_;
  const std::uint64_t slots_per_cycle_;
  const std::uint64_t lag_;
  std::vector<CompactionEntry> entries_;
  const std::uint64_t mask_;
  std::uint64_t next_ = 0, oldest_ = 0;
};

}  // namespace manyscale::cpu
