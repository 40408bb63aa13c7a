// SPDX-License-Identifier: Apache-2.0
// Records a running program as a trace: a stream of nodes for each thread and for each explicit task.
//
// What OpenMP's runtime does to start, join and synchronise threads and tasks is left out; a sync node stands
// for it (trace_node.hpp), and so it is with waiting for threads that the program makes itself. Of a thread
// that OpenMP's runtime made, only what it does in parallel regions and tasks is recorded. All else is
// compacted (compactor.hpp), and leaves as blocks (block.hpp).
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cpu/core/core_spec.hpp"
#include "cpu/stream/marker.hpp"
#include "cpu/stream/record_sink.hpp"
#include "cpu/stream/region_table.hpp"
#include "cpu/stream/task_table.hpp"
#include "cpu/trace/compaction_spec.hpp"
#include "cpu/trace/shared_pages.hpp"
#include "cpu/trace/trace_node.hpp"

namespace manyscale::cpu {

// One stream of a trace.
struct StreamInfo {
  static constexpr std::uint32_t none = ~0u;

  bool is_task = false;
  std::uint64_t subject = 0;    // software thread, or number of the task
  std::uint32_t process = 0;    // rank
  std::uint32_t region = none;  // of a task: its region in the RegionTable
  std::uint64_t parent = 0;     // of a task: number + 1 of the task that made it; 0: an implicit one
  std::uint16_t thread = 0;     // that recorded it (of a task: that executed it)
  std::vector<TaskDependence> dependences{};
  std::uint64_t instructions = 0;
  std::uint64_t nodes = 0;  // markers not counted
  std::uint64_t bytes = 0;
  std::uint32_t blocks = 0;
};

// Threads that execute a parallel region together.
struct TeamInfo {
  std::uint32_t region = 0;
  std::uint16_t master = 0;
  std::uint32_t process = 0;
  std::uint32_t threads = 1;  // its master and those that began work in it
};

// What was left out for one kind of sync node.
struct SyncCost {
  std::uint64_t nodes = 0;
  std::uint64_t instructions = 0;        // of the runtime, waiting included
  std::uint64_t least_instructions = 0;  // of one such node: hardly any waiting in it
  std::uint64_t system_calls = 0;        // among the instructions
  std::uint64_t least_system_calls = 0;  // of the node with the fewest instructions
};

struct RecorderStatistics {
  std::uint64_t instructions = 0;  // in streams
  std::uint64_t nodes = 0;
  std::uint64_t bytes = 0;
  std::uint64_t runtime_instructions = 0;  // left out: sync nodes stand for them
  std::uint64_t outside_instructions = 0;  // left out: of other threads outside parallel regions
  std::uint64_t unknown_threads = 0;       // of which nothing was recorded: how they were made is not known
  std::uint64_t mispredicted = 0;          // nodes
  std::uint64_t filter_bytes = 0;          // of the L1 filter cache
  std::uint64_t hit_cycles = 0;            // that each of these takes
};

// A block that is complete.
struct RecordedBlock {
  std::uint32_t stream = 0;
  std::uint32_t number = 0;  // within the stream
  std::uint32_t nodes = 0;   // records in it, markers included
  std::uint64_t instructions = 0;
  std::vector<std::uint8_t> bytes{};
};

// The parts of teams' work that a stream begins in a block: number of the team, index of the node.
std::vector<std::pair<std::uint64_t, std::uint32_t>> team_parts(const RecordedBlock& block);

class Recorder final : public RecordSink {
 public:
  using BlockSink = std::function<void(RecordedBlock&&)>;

  // The tables are those of the running program; the core is that which the trace is to be played on, or one
  // like it: its latencies, ports and branch predictor count.
  Recorder(const CoreSpec& core, const CompactionTuning& tuning, const RegionTable& regions,
           const TaskTable& tasks, BlockSink sink);
  ~Recorder() override;

  // Whether what the master of a team does to form it, and what threads do to make tasks, is recorded as
  // other work is, and not left out: right where threads run in their time, so that it hardly waits. Before
  // the first record.
  void keep_forks(bool keep);
  // Accesses that hit an L1 filter cache of so many bytes are compacted; by default half of the core's own L1
  // cache. Before the first record.
  void set_l1_filter(std::uint64_t bytes);

  void take(std::span<const Record> records) override;
  // The program has ended: the streams end, too. Once.
  void finish();

  const RecorderStatistics& statistics() const;
  // By the number that blocks carry.
  const std::vector<StreamInfo>& streams() const;
  // By the object of fork, begin, join and barrier nodes.
  const std::vector<TeamInfo>& teams() const;
  const std::array<SyncCost, sync_kinds>& sync_costs() const;
  // Of the runtime from the end of a task to the beginning of the next of the same wait.
  const SyncCost& scheduling_cost() const;
  // Whole pages, in the order of addresses.
  std::vector<SharedRange> shared_ranges() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace manyscale::cpu
