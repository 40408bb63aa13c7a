// SPDX-License-Identifier: Apache-2.0
// The recorder: which records go to which stream, what stands for the runtime, and what adds up.
#include <map>
#include <string>
#include <vector>

#include "cpu/trace/block.hpp"
#include "cpu/trace/recorder.hpp"
#include "test_checks.hpp"
#include "test_compaction.hpp"

using namespace manyscale;
using namespace manyscale::cpu;
using namespace manyscale::test;

namespace {

constexpr std::uint64_t process = std::uint64_t{1} << 40;
constexpr std::uint64_t outlined = 0x5000, body_of_task = 0x7000;

// A program made by hand, and its trace.
struct Recording {
  RegionTable regions;
  TaskTable tasks;
  std::map<std::uint32_t, std::vector<TraceNode>> nodes{};
  std::uint64_t instructions = 0;
  Recorder recorder{CoreSpec{}, fitted, regions, tasks, [this](RecordedBlock&& block) {
                      const std::vector<TraceNode> read = decode_block(std::move(block.bytes));
                      std::vector<TraceNode>& of = nodes[block.stream];
                      of.insert(of.end(), read.begin(), read.end());
                      instructions += block.instructions;
                    }};

  // Every access stays a node, so that what stands between two others can be counted.
  Recording() { recorder.set_l1_filter(0); }

  void give(Record record) { recorder.take({&record, 1}); }
  void mark(std::uint16_t thread, std::uint64_t subject, MarkerAction action) {
    Record marker;
    marker.kind = InstructionClass::marker;
    marker.address = marker_address(subject, action);
    marker.thread = thread;
    give(marker);
  }
  void enter(std::uint16_t thread, const Region& region) {
    mark(thread, regions.intern(region), MarkerAction::enter);
  }
  void leave(std::uint16_t thread, const Region& region) {
    mark(thread, regions.intern(region), MarkerAction::leave);
  }
  // Some loads from one address on, at one pc on.
  void load(std::uint16_t thread, std::uint64_t pc, int count, std::uint64_t address = 0x100000) {
    for (int i = 0; i < count; ++i) {
      Record record;
      record.kind = InstructionClass::load;
      record.pc = process | (pc + 4 * static_cast<std::uint64_t>(i));
      record.address = process | (address + 8 * static_cast<std::uint64_t>(i));
      record.size = 8;
      record.thread = thread;
      give(record);
    }
  }
  void call_system(std::uint16_t thread) {
    Record record;
    record.kind = InstructionClass::system;
    record.pc = process | 0x100;
    record.flags = Trait::halts_stream;
    record.thread = thread;
    give(record);
  }

  // A stream in words: sync nodes by name and object, how many others stand between them.
  std::string text(std::uint32_t stream) {
    std::string words;
    int others = 0;
    const auto flush = [&] {
      if (others > 0) words += std::to_string(others) + " ";
      others = 0;
    };
    for (const TraceNode& node : nodes[stream]) {
      if (node.kind == InstructionClass::marker) continue;
      if (!node.is_sync()) {
        ++others;
        continue;
      }
      flush();
      words += std::string(sync_kind_name(node.sync)) + " " + std::to_string(node.address & 0xffff) + " ";
    }
    flush();
    return words;
  }
};

const Region parallel{.kind = RegionKind::parallel, .pc = outlined};
const Region team_end{.kind = RegionKind::barrier, .pc = outlined};
const Region barrier{.kind = RegionKind::barrier, .pc = 0x5100};

void check_text(Recording& recording, std::uint32_t stream, const std::string& expected) {
  check(recording.text(stream) == expected, "stream " + std::to_string(stream) + ": '" +
                                                recording.text(stream) + "' instead of '" + expected + "'");
}

// Two threads: the runtime's instructions are left out, and so is what the second does outside the region.
TEST(parallel_regions_become_forks_and_joins) {
  Recording r;
  r.load(0, 0x1000, 10);
  r.load(1, 0x9000, 7);  // the pool waits
  r.enter(0, parallel);
  r.load(0, 0x8000, 20);  // libgomp wakes its threads
  r.load(0, outlined, 5, 0x200000);
  r.enter(1, parallel);
  r.load(1, outlined, 6, 0x201000);
  for (const std::uint16_t thread : {0, 1}) {
    r.enter(thread, barrier);
    r.load(thread, 0x8100, 30);
    r.leave(thread, barrier);
    r.load(thread, 0x5200, 3, 0x200000 + 0x1000u * thread);
    r.enter(thread, team_end);
    r.load(thread, 0x8200, 40);
    r.leave(thread, team_end);
    r.load(thread, 0x8300, 2);
    r.leave(thread, parallel);
  }
  r.load(1, 0x9000, 8);
  r.load(0, 0x1100, 4);
  r.call_system(0);
  r.recorder.finish();
  check_text(r, 0, "10 fork 0 5 barrier 0 3 join 0 4 system_call 0 thread_end 0 ");
  check_text(r, 1, "begin 0 6 barrier 0 3 join 0 thread_end 1 ");
  const RecorderStatistics& found = r.recorder.statistics();
  check_equal(static_cast<std::int64_t>(found.runtime_instructions), 20 + 2 * (30 + 40 + 2),
              "left out of libgomp");
  check_equal(static_cast<std::int64_t>(found.outside_instructions), 15, "left out of the pool");
  check_equal(static_cast<std::int64_t>(found.instructions), static_cast<std::int64_t>(r.instructions),
              "instructions of all blocks");
  check_equal(static_cast<std::int64_t>(r.recorder.teams().size()), 1, "teams");
  check_equal(r.recorder.teams().at(0).threads, 2, "threads of the team");
  const SyncCost& barriers = r.recorder.sync_costs()[static_cast<std::size_t>(SyncKind::barrier)];
  check(barriers.nodes == 2 && barriers.instructions == 60 && barriers.least_instructions == 30,
        "cost of barriers");
  const std::vector<SharedRange> shared = r.recorder.shared_ranges();
  check(shared.empty(), "each thread has touched its own pages");
}

TEST(pages_of_several_threads_are_shared) {
  Recording r;
  r.enter(0, parallel);
  r.load(0, 0x1000, 1, 0x300000);  // its first record, so that the marker before it is not seen
  r.enter(0, parallel);
  r.load(0, 0x8000, 1);
  r.load(0, outlined, 4, 0x300ff0);
  r.load(1, 0x9000, 1);
  r.enter(1, parallel);
  r.load(1, outlined, 3, 0x300ff8);
  r.load(1, outlined, 1, 0x305000);
  r.recorder.finish();
  const std::vector<SharedRange> shared = r.recorder.shared_ranges();
  check(
      shared.size() == 1 && shared[0].begin == (process | 0x300000) && shared[0].end == (process | 0x302000),
      "two pages side by side");
}

TEST(locks_are_acquired_and_released) {
  Recording r;
  const Region wait{.kind = RegionKind::critical_wait, .pc = 0x1200, .object = 0x40};
  const Region critical{.kind = RegionKind::critical, .pc = 0x1200, .object = 0x40};
  const Region lock{.kind = RegionKind::lock, .pc = 0x1300, .object = 0x48};
  r.load(0, 0x1000, 2);
  r.enter(0, wait);
  r.load(0, 0x8000, 9);
  r.leave(0, wait);
  r.enter(0, critical);
  r.load(0, 0x1200, 3);
  r.leave(0, critical);
  r.load(0, 0x1210, 1);
  r.enter(0, lock);
  r.load(0, 0x8000, 9);
  r.leave(0, lock);
  r.load(0, 0x1220, 4);
  r.mark(0, r.regions.intern({.kind = RegionKind::lock, .pc = 0x1400, .object = 0x48}),
         MarkerAction::released);
  r.load(0, 0x1230, 5);
  r.recorder.finish();
  check_text(r, 0, "2 acquire 64 3 release 64 1 acquire 72 4 release 72 5 thread_end 0 ");
}

// A task is made, and run while its maker waits; another is run at once.
TEST(tasks_have_streams_of_their_own) {
  Recording r;
  const Region task{.kind = RegionKind::task, .pc = body_of_task};
  const Region create{.kind = RegionKind::task_create, .pc = 0x1100};
  const Region wait{.kind = RegionKind::taskwait, .pc = 0x1200};
  const auto run = [&](std::uint64_t number, int loads) {
    r.mark(0, number, MarkerAction::task_starts);
    r.enter(0, task);
    r.load(0, body_of_task, loads);
    r.mark(0, number, MarkerAction::task_ends);
    r.leave(0, task);
  };
  const auto make = [&](const std::vector<TaskDependence>& dependences) {
    r.enter(0, create);
    r.mark(0, r.tasks.add({.region = r.regions.intern(task)}, dependences), MarkerAction::task_created);
    r.load(0, 0x8000, 11);
  };
  r.load(0, 0x1000, 1);
  make({{0x10, TaskDependence::Type::out}});
  r.leave(0, create);
  r.load(0, 0x1108, 2);
  make({{0x10, TaskDependence::Type::in}, {0x20, TaskDependence::Type::out}});
  run(1, 5);
  r.load(0, 0x8100, 3);
  r.leave(0, create);
  r.load(0, 0x1110, 3);
  r.enter(0, wait);
  r.load(0, 0x8200, 10);
  run(0, 4);
  r.load(0, 0x8200, 10);
  r.leave(0, wait);
  r.load(0, 0x1210, 6);
  r.recorder.finish();
  check_text(r, 0, "1 task_create 0 2 task_create 1 3 taskwait 0 6 thread_end 0 ");
  check_text(r, 1, "5 ");
  check_text(r, 2, "4 ");
  const StreamInfo& second = r.recorder.streams().at(1);
  check(second.is_task && second.subject == 1 && second.dependences.size() == 2 &&
            second.dependences[1].address == 0x20,
        "a task's dependences");
  check_equal(static_cast<std::int64_t>(second.instructions), 5, "instructions of a task");
}

// Where asked for, what a master does to form a team and what a thread does to make a task stay.
TEST(forks_and_the_making_of_tasks_can_be_kept) {
  Recording r;
  r.recorder.keep_forks(true);
  const Region create{.kind = RegionKind::task_create, .pc = 0x1100};
  r.load(0, 0x1000, 10);
  r.enter(0, parallel);
  r.load(0, 0x8000, 20);
  r.load(0, outlined, 5);
  r.enter(0, create);
  r.mark(0, r.tasks.add({}, {}), MarkerAction::task_created);
  r.load(0, 0x8100, 11);
  r.leave(0, create);
  r.load(0, 0x5200, 3);
  r.enter(0, team_end);
  r.load(0, 0x8200, 40);
  r.leave(0, team_end);
  r.leave(0, parallel);
  r.load(0, 0x1100, 4);
  r.recorder.finish();
  check_text(r, 0, "30 fork 0 5 task_create 0 14 join 0 4 thread_end 0 ");
  check_equal(static_cast<std::int64_t>(r.recorder.statistics().runtime_instructions), 40, "left out");
}

// Producers count back within the stream, over what was left out.
TEST(producers_reach_over_what_is_left_out) {
  Recording r;
  r.load(0, 0x1000, 1);
  r.enter(0, {.kind = RegionKind::lock, .pc = 0x10, .object = 0x48});
  r.load(0, 0x8000, 9);
  r.leave(0, {.kind = RegionKind::lock, .pc = 0x10, .object = 0x48});
  Record load;
  load.kind = InstructionClass::load;
  load.pc = process | 0x1100;
  load.size = 8;
  load.producers = {10, 3, 0};  // the first load, and one of those left out
  r.give(load);
  r.recorder.finish();
  const TraceNode& found = r.nodes[0].at(r.nodes[0].size() - 2);
  check(found.kind == InstructionClass::load && found.producers[0] == 2 && found.producers[1] == 0,
        "the first load is two nodes back, with a sync node between");
}

}  // namespace
