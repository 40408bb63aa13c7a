// SPDX-License-Identifier: Apache-2.0
// Folds a stream of executed instructions into fewer nodes that take as long. Loads and stores that may miss
// the first-level cache, atomics, fences, system calls and mispredicted branches stay; a calculation is
// folded into those who need its result: they then wait for what it waited for, and for its latency on top.
// A load that is sure to hit (near_lines.hpp) is a calculation, too; how many hits a delay has in it is kept,
// so that it can be played on a cache with another latency.
//
// When an operand of a node is there is the latest of a few times: the results of older nodes, each with a
// delay, and the dispatch of itself or of an older node with a delay. A node has three places for these.
// Where folding would need more, or a delay that is too long, calculations stay nodes: so chains keep their
// length, whatever number of instructions they take. A long delay after dispatch makes a node of the
// instruction that it begins with.
//
// The flow of data is exact: where nothing but operands is waited for, every node has its result when it
// would have it in the full stream, whatever loads take. What a delay from dispatch stands for was dispatched
// before the node; how long before is known only as far as width, jumps and mispredictions tell. Folded
// instructions take no register, and no issue port but among those that wait for the same node
// (port_bursts.hpp). How many wait for a node is kept with it: they stand in the issue queue. What keeps a
// unit busy for longer than a cycle stays, since others wait for the unit. Where the ports of some kinds are
// scarce, a node stays for every few instructions of these, and waits for the one before it as long as the
// ports need for them. What is complete last of some stays, since what follows it commits when it does.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "cpu/stream/record.hpp"
#include "cpu/trace/block.hpp"
#include "cpu/trace/latencies.hpp"
#include "cpu/trace/near_lines.hpp"
#include "cpu/trace/port_bursts.hpp"

namespace manyscale::cpu {

struct FoldLimits {
  std::uint64_t width = 4;     // instructions dispatched in a cycle; 0: any number
  std::uint64_t window = 512;  // instructions under way at a time, at least
  // … and of the machine recorded on: where a node has not enough places, older ones are left out first.
  std::uint64_t reorder_buffer = 512;
  bool keep_scarce = true;          // whether nodes stay for calculations whose ports are scarce
  std::uint32_t most_folded = 255;  // instructions folded into a node; few, where the reorder buffer is small
};

class Folder {
 public:
  Folder(const Latencies& latencies, const FoldLimits& limits);

  // The next instruction of the stream, or a marker. Producers count back in instructions.
  void take(const Record& record, const NearAccess& near = {});
  // The stream ends.
  void flush();
  // Begins anew with another stream.
  void reset();

  std::uint64_t instructions() const { return next_; }
  // The nodes folded so far, with markers among them; whoever takes them away clears them.
  std::vector<Record>& nodes() { return nodes_; }
  // Of each of them.
  std::vector<Hits>& hits() { return hits_; }

 private:
  // A time that an operand waits for: the result of an instruction that is a node, or the dispatch of the
  // instruction itself, and a delay after it.
  struct Slot {
    static constexpr std::uint64_t dispatch = ~std::uint64_t{0};
    std::uint64_t position = dispatch;
    std::uint32_t delay = 0;  // none, and at dispatch: nothing to wait for
    std::uint32_t hits = 0;   // of the first-level cache, in the delay
    // Of a delay after dispatch: the instruction whose dispatch it really counts from; the delay is what is
    // left of it, in whole cycles, where all between is dispatched at full speed.
    std::uint64_t start = dispatch;
    std::uint64_t ready = 0;  // … and the dispatch slot in which it is over: delays add up exactly
  };
  using Slots = std::array<Slot, 3>;
  struct Entry {
    Record record{};
    NearAccess near{};
    // What its operands wait for; of a near access that is folded, what its result does.
    Slots slots{};
    Slot ports{};            // among these, where the node stands for others of its ports
    std::uint64_t node = 0;  // number, once it is known: its own, or that of the node it is folded into
    std::uint64_t dispatch_slot = 0;  // where it is dispatched if only jumps and mispredictions delay it
    std::uint64_t awaited = Slot::dispatch;  // the last node that it waits for; dispatch: none
    std::uint32_t port_delay = 0;            // how long after that a port is free for it
    int waiters = 0;                         // folded ones that wait for this one in an issue queue
    std::uint64_t complete = 0;              // the cycle it would be complete in if only operands delayed it
    bool kept = false;
    bool last_of_part = false;  // a marker follows: what is folded must not move beyond it
    bool waits_for_memory = false;
  };
  // Something that an instruction needs: how far back it is, and how long after it the need is met.
  struct Need {
    std::uint16_t distance = 0;
    std::uint32_t lead = 0;
    std::uint32_t hits = 0;
  };
  struct Marker {
    std::uint64_t position = 0;  // of the instruction that follows
    Record record{};
  };
  // Instructions of scarce ports since the last node that stands for them.
  struct PortUse {
    std::uint64_t last = Slot::dispatch;  // that node
    std::uint32_t since = 0;
  };

  Entry& at(std::uint64_t position) { return entries_[position & mask_]; }
  const Entry& at(std::uint64_t position) const { return entries_[position & mask_]; }
  bool must_stay(const Record& record, const NearAccess& near);
  bool is_in_scarce_group(const Record& record) const;
  void count_ports(const Record& record);
  void hold_ports(std::uint64_t position, Entry& entry);
  std::uint32_t latency_of(const Entry& entry) const {
    return entry.near.is_near ? 0 : latencies_.latency(entry.record);
  }
  static Slot* free_place(Entry& entry);
  void find_slots(std::uint64_t position, Entry& entry);
  bool find_near_slots(std::uint64_t position, Entry& entry);
  bool find_node_slots(std::uint64_t position, Entry& entry, bool allowed);
  void find_slots_again(std::uint64_t position, Entry& entry);
  void keep(std::uint64_t position);
  void stand_in_line(std::uint64_t position, Entry& entry);
  void wait_for_port(Entry& entry);
  void add_waiter(std::uint64_t position, const Entry& entry, int added);
  // Finds what these needs of the instruction at `position` wait for, which is `own` after its dispatch at
  // least. If that is more than there are slots, some of the needed become nodes where that is `allowed`;
  // else false.
  bool combine(std::uint64_t position, std::span<const Need> needs, const Slot& own, std::span<Slot> slots,
               bool allowed);
  // A delay after dispatch whose first instruction has become a node counts from the result of that.
  Slot anchored(const Slot& slot) const;
  bool redundant(const Slot& slot, const Slot& other);
  bool is_over(const Slot& slot, std::uint64_t cycle) const;
  bool is_committed(std::uint64_t position, const Slot& slot, std::uint32_t later) const;
  bool over_at_dispatch(std::uint64_t position, const Slot& slot);
  void represent_group();
  bool refer_to_dispatch(const Entry& entry, std::size_t operand, Record& node) const;
  void emit();
  void emit_node(Entry& entry);

  const Latencies& latencies_;
  const FoldLimits limits_;
  const std::uint64_t cycle_slots_;  // dispatch slots of a cycle
  const std::uint64_t lag_;          // instructions that a node is held back
  std::vector<Entry> entries_;
  const std::uint64_t mask_;
  std::uint64_t next_ = 0, emitted_ = 0, node_ = 0;
  std::vector<std::uint64_t> node_slots_;  // dispatch slots of the last nodes, by number
  std::uint64_t dispatch_slot_ = 0;
  std::uint32_t folded_ = 0;  // since the last node
  FoldedTurns turns_;         // among those
  std::vector<Marker> markers_;
  std::size_t first_marker_ = 0;
  std::array<std::uint16_t, Latencies::rows> executed_{};
  std::uint64_t mispredicted_ = 0;
  std::uint64_t scarce_groups_ = 0;  // of ports
  std::array<PortUse, Latencies::most_groups> uses_{};
  PortBursts bursts_;
  std::vector<Record> nodes_;
  std::vector<Hits> hits_;
};

}  // namespace manyscale::cpu
