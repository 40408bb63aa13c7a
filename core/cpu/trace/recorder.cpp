// SPDX-License-Identifier: Apache-2.0
#include "cpu/trace/recorder.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "cpu/trace/l1_filter.hpp"
#include "cpu/trace/recorded_streams.hpp"
#include "cpu/trace/recorded_thread.hpp"
#include "cpu/trace/shared_pages.hpp"

namespace manyscale::cpu {

using namespace recording;

namespace {

static_assert(none == StreamInfo::none);
// Where an address space begins; see linux/address_space.hpp.
constexpr int process_shift = 40;
constexpr std::uint64_t within_process = (std::uint64_t{1} << process_shift) - 1;

// Instructions that a thread may execute before its own work; one that ends by then had none.
constexpr std::uint64_t most_before_work = 2000;

std::uint32_t process_of(std::uint64_t address) {
  return static_cast<std::uint32_t>((address >> process_shift) - 1);
}

// How many instructions an access may be in flight.
std::uint64_t filter_window(const CoreSpec& core) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(128, core.reorder_buffer));
}

}  // namespace

struct Recorder::Implementation {
  const CoreSpec core;
  const RegionTable& regions;
  const TaskTable& tasks;
  RecorderStatistics statistics;
  RecordedStreams streams;
  std::vector<TeamInfo> teams;
  std::vector<std::uint32_t> open_teams;
  std::array<SyncCost, sync_kinds> costs{};
  SyncCost scheduling;
  std::vector<std::unique_ptr<RecordedThread>> threads;
  std::vector<bool> processes_seen;
  SharedPages pages;
  L1Filter data_filter;
  L1Filter code_filter;
  bool finished = false;
  bool forks_kept = false;

  Implementation(const CoreSpec& core_, const CompactionTuning& tuning, const RegionTable& regions_,
                 const TaskTable& tasks_, BlockSink sink_)
      : core(core_), regions(regions_), tasks(tasks_), streams(core_, tuning, statistics, std::move(sink_)) {
    statistics.hit_cycles = streams.latencies().l1_hit();
    set_l1_filter(static_cast<std::uint64_t>(core.l1.size) / 2);
    code_filter =
        L1Filter(static_cast<std::uint64_t>(core.l1i.size) / 2, static_cast<std::uint64_t>(core.l1i.line), 0);
  }

  void set_l1_filter(std::uint64_t bytes) {
    data_filter = L1Filter(bytes, static_cast<std::uint64_t>(core.l1.line), filter_window(core),
                           static_cast<std::uint64_t>(core.store_queue) / 2);
    statistics.filter_bytes = data_filter.bytes();
  }

  // Nodes that are no instructions.

  void add_marker(const RecordedThread& thread, std::uint32_t stream, std::uint32_t region,
                  MarkerAction action) {
    TraceNode marker;
    marker.kind = InstructionClass::marker;
    marker.address = marker_address(region, action);
    marker.thread = thread.number;
    streams.add(stream, marker);
  }

  void add_sync(const RecordedThread& thread, std::uint32_t stream, SyncKind kind, std::uint64_t object,
                std::uint64_t pc, bool sleeps = false) {
    ++costs[static_cast<std::size_t>(kind)].nodes;
    TraceNode node = sync_node(kind, object, thread.number, pc);
    node.sleeps = sleeps;
    streams.add(stream, node);
  }

  // Threads.

  RecordedThread& thread_of(const Record& record) {
    if (record.thread >= threads.size()) threads.resize(record.thread + std::size_t{1});
    std::unique_ptr<RecordedThread>& thread = threads[record.thread];
    if (!thread) {
      const std::uint32_t process = record.kind == InstructionClass::marker ? 0 : process_of(record.pc);
      if (process >= processes_seen.size()) processes_seen.resize(process + std::size_t{1});
      const bool first = !processes_seen[process];
      processes_seen[process] = true;
      thread = std::make_unique<RecordedThread>(core.branch, record.thread, process, first);
    }
    return *thread;
  }

  std::uint32_t own_stream(RecordedThread& thread) {
    if (thread.stream == none) {
      thread.stream =
          streams.open({.subject = thread.number, .process = thread.process, .thread = thread.number});
    }
    return thread.stream;
  }

  // The innermost frame that says what is recorded; null: the thread is in none.
  static Frame* ruling(RecordedThread& thread) {
    const auto found = std::find_if(thread.frames.rbegin(), thread.frames.rend(),
                                    [](const Frame& frame) { return frame.role != Frame::Role::plain; });
    return found == thread.frames.rend() ? nullptr : &*found;
  }

  // Where the thread's records go now; none if they are left out.
  std::uint32_t current_stream(RecordedThread& thread) {
    if (const Frame* frame = ruling(thread)) return frame->left_out ? none : frame->stream;
    return thread.recorded ? own_stream(thread) : none;
  }

  void take(const Record& record) {
    if (record.kind == InstructionClass::marker) {
      // A thread's first marker comes after its first record, unless its first instruction is marked.
      if (record.thread < threads.size() && threads[record.thread]) {
        threads[record.thread]->markers.push_back(record.address);
      }
      return;
    }
    RecordedThread& thread = thread_of(record);
    if (!thread.markers.empty()) take_markers(thread, record.pc);
    TraceNode node{record};
    if (record.is_control()) node.timing.prediction = thread.predictor.predict(record);
    Frame* frame = ruling(thread);
    if (frame != nullptr && frame->awaits_body && (record.pc & within_process) == regions[frame->region].pc) {
      form_team(thread, *frame, record.pc);
    }
    StreamPosition& slot = thread.positions[thread.executed % positions_kept];
    if (frame != nullptr ? frame->left_out : !thread.recorded) {
      ++(frame != nullptr ? statistics.runtime_instructions : statistics.outside_instructions);
      if (frame != nullptr) {
        ++frame->instructions;
        frame->system_calls += record.kind == InstructionClass::system ? 1 : 0;
      }
      slot.stream = none;
    } else {
      const std::uint32_t stream = frame != nullptr ? frame->stream : own_stream(thread);
      record_instruction(thread, stream, node, slot);
    }
    ++thread.executed;
  }

  void record_instruction(RecordedThread& thread, std::uint32_t stream, TraceNode& node,
                          StreamPosition& slot) {
    const std::uint64_t position = streams.instructions(stream);
    for (std::uint16_t& distance : node.producers) {
      if (distance == 0) continue;
      const bool known = distance < positions_kept && distance <= thread.executed;
      const StreamPosition& producer = thread.positions[(thread.executed - distance) % positions_kept];
      distance = known && producer.stream == stream && position - producer.position < positions_kept
                     ? static_cast<std::uint16_t>(position - producer.position)
                     : std::uint16_t{0};
    }
    slot = {stream, position};
    if (node.kind == InstructionClass::system) {
      add_sync(thread, stream, SyncKind::system_call, 0, node.pc);
      return;
    }
    node.flags &= static_cast<std::uint8_t>(~Trait::halts_stream);
    FilterResult filter;
    if (node.touches_memory()) {
      const bool others = pages.touch(thread.number, node.address);
      filter = data_filter.touch(node, stream, position, others);
    }
    filter.misses_l1i = misses_l1i(thread, stream, node);
    streams.add(stream, node, filter);
  }

  // Whether the line of an instruction may not be in an L1 cache: then it stays a node, so that a
  // replay fetches the line.
  bool misses_l1i(RecordedThread& thread, std::uint32_t stream, const Record& node) {
    const std::uint64_t line = node.pc & ~(static_cast<std::uint64_t>(core.l1i.line) - 1);
    if (core.l1i.size == 0 || (line == thread.code_line && stream == thread.code_stream)) return false;
    thread.code_line = line;
    thread.code_stream = stream;
    Record fetch;
    fetch.kind = InstructionClass::load;
    fetch.address = line;
    fetch.size = 4;
    fetch.thread = thread.number;
    return !code_filter.touch(fetch, stream, 0, false).is_hit;
  }

  // Regions.

  void take_markers(RecordedThread& thread, std::uint64_t pc) {
    for (const std::uint64_t marker : std::exchange(thread.markers, {})) {
      const std::uint64_t subject = marker_subject(marker);
      switch (marker_action(marker)) {
        case MarkerAction::enter:
          enter(thread, static_cast<std::uint32_t>(subject), pc);
          break;
        case MarkerAction::leave:
          leave(thread, static_cast<std::uint32_t>(subject), pc);
          break;
        case MarkerAction::released:
          add_lock(thread, static_cast<std::uint32_t>(subject), SyncKind::release, pc);
          break;
        case MarkerAction::acquired:
          add_lock(thread, static_cast<std::uint32_t>(subject), SyncKind::acquire, pc);
          break;
        case MarkerAction::thread_begins:
          thread.recorded = true;
          add_event(thread, SyncKind::thread_begin, subject, pc);
          break;
        case MarkerAction::posted:
          add_event(thread, SyncKind::post, subject, pc);
          break;
        case MarkerAction::awaited:
          add_event(thread, SyncKind::await, subject, pc);
          break;
        case MarkerAction::task_created:
          create_task(thread, subject, pc);
          break;
        case MarkerAction::task_starts:
          start_task(thread, subject);
          break;
        case MarkerAction::task_ends:
          end_task(thread, subject, pc);
          break;
      }
    }
  }

  // Enters a region whose runtime's work a sync node stands for.
  void enter_runtime(RecordedThread& thread, Frame& frame, SyncKind kind, std::uint64_t object,
                     std::uint64_t pc) {
    if (frame.marked != none) add_sync(thread, frame.marked, kind, object, pc, regions[frame.region].sleeps);
    frame.role = Frame::Role::runtime;
    frame.left_out = true;
    frame.sync = kind;
  }

  std::uint64_t object_of(const RecordedThread& thread, const Region& region) const {
    return (std::uint64_t{thread.process} + 1) << process_shift |
           (region.object != 0 || region.kind == RegionKind::critical_wait ? region.object : region.pc);
  }

  void enter(RecordedThread& thread, std::uint32_t number, std::uint64_t pc) {
    const Region& region = regions[number];
    Frame frame{.kind = region.kind, .region = number};
    if (region.kind == RegionKind::parallel) {
      enter_team(thread, frame, pc);
      return;
    }
    frame.stream = frame.marked = current_stream(thread);
    if (frame.marked != none) add_marker(thread, frame.marked, number, MarkerAction::enter);
    Frame* team = innermost(thread, Frame::Role::team);
    switch (region.kind) {
      case RegionKind::barrier:
        if (team == nullptr) break;
        if (region.pc == regions[team->region].pc) {
          team->joined = true;
          enter_runtime(thread, frame, SyncKind::join, team->subject, pc);
        } else {
          enter_runtime(thread, frame, SyncKind::barrier, team->subject, pc);
        }
        break;
      case RegionKind::critical_wait:
      case RegionKind::lock:
      case RegionKind::ordered_wait:
        enter_runtime(thread, frame, SyncKind::acquire, object_of(thread, region), pc);
        break;
      case RegionKind::wait:
        // The sync node comes with what ended the waiting.
        frame.role = Frame::Role::runtime;
        frame.left_out = true;
        frame.sync = SyncKind::await;
        break;
      case RegionKind::critical:
        frame.subject = (std::uint64_t{thread.process} + 1) << process_shift | region.object;
        break;
      case RegionKind::ordered:
        frame.subject = object_of(thread, region);
        break;
      case RegionKind::task_create:
        // The sync node comes with the task's number.
        if (forks_kept) break;
        frame.role = Frame::Role::runtime;
        frame.left_out = true;
        frame.sync = SyncKind::task_create;
        break;
      case RegionKind::taskwait:
        enter_runtime(thread, frame,
                      ends_group(thread, region) ? SyncKind::taskgroup_end : SyncKind::taskwait, 0, pc);
        break;
      case RegionKind::taskgroup:
        if (frame.marked != none) add_sync(thread, frame.marked, SyncKind::taskgroup_begin, 0, pc);
        break;
      default:
        break;
    }
    // A task that has no number is executed within whatever made it.
    if (region.kind == RegionKind::task && frame.marked == none) {
      if (const Frame* runtime = ruling(thread); runtime != nullptr && runtime->stream != none) {
        frame.role = Frame::Role::task;
        frame.stream = runtime->stream;
      }
    }
    thread.frames.push_back(frame);
  }

  static Frame* innermost(RecordedThread& thread, Frame::Role role) {
    const auto found = std::find_if(thread.frames.rbegin(), thread.frames.rend(),
                                    [&](const Frame& frame) { return frame.role == role; });
    return found == thread.frames.rend() ? nullptr : &*found;
  }

  bool ends_group(const RecordedThread& thread, const Region& wait) const {
    const auto group = std::find_if(thread.frames.rbegin(), thread.frames.rend(),
                                    [](const Frame& frame) { return frame.kind == RegionKind::taskgroup; });
    return group != thread.frames.rend() && regions[group->region].pc == wait.pc;
  }

  // A thread that is at the region's function was given it; one that is elsewhere is about to form a team.
  void enter_team(RecordedThread& thread, Frame& frame, std::uint64_t pc) {
    frame.role = Frame::Role::team;
    frame.master = (pc & within_process) != regions[frame.region].pc;
    if (frame.master) {
      frame.stream = frame.marked = current_stream(thread);
      frame.subject = teams.size();
      frame.awaits_body = true;
      frame.left_out = !forks_kept;
      frame.sync = SyncKind::fork;
      teams.push_back({.region = frame.region, .master = thread.number, .process = thread.process});
      open_teams.push_back(static_cast<std::uint32_t>(frame.subject));
      if (frame.marked != none) {
        add_marker(thread, frame.marked, frame.region, MarkerAction::enter);
        if (!forks_kept) add_sync(thread, frame.marked, SyncKind::fork, frame.subject, pc);
      }
    } else {
      const auto team = std::find_if(open_teams.rbegin(), open_teams.rend(), [&](std::uint32_t number) {
        return teams[number].region == frame.region && teams[number].process == thread.process;
      });
      frame.stream = frame.marked = own_stream(thread);
      if (team == open_teams.rend()) {
        frame.role = Frame::Role::plain;
      } else {
        frame.subject = *team;
        ++teams[*team].threads;
        add_sync(thread, frame.marked, SyncKind::begin, frame.subject, pc);
      }
      add_marker(thread, frame.marked, frame.region, MarkerAction::enter);
    }
    thread.frames.push_back(frame);
  }

  // The master's own part of the region begins.
  void form_team(RecordedThread& thread, Frame& frame, std::uint64_t pc) {
    if (forks_kept && frame.marked != none) {
      add_sync(thread, frame.marked, SyncKind::fork, frame.subject, pc);
    }
    frame.awaits_body = frame.left_out = false;
    settle_cost(frame);
  }

  void settle_cost(Frame& frame) {
    add_cost(costs[static_cast<std::size_t>(frame.sync)], frame.instructions, frame.system_calls);
    frame.instructions = frame.system_calls = 0;
  }

  static void add_cost(SyncCost& cost, std::uint64_t instructions, std::uint64_t system_calls) {
    if (instructions == 0) return;
    cost.instructions += instructions;
    cost.system_calls += system_calls;
    if (cost.least_instructions == 0 || instructions < cost.least_instructions) {
      cost.least_instructions = instructions;
      cost.least_system_calls = system_calls;
    }
  }

  void leave(RecordedThread& thread, std::uint32_t region, std::uint64_t pc) {
    const auto found = std::find_if(thread.frames.rbegin(), thread.frames.rend(),
                                    [&](const Frame& frame) { return frame.region == region; });
    if (found == thread.frames.rend()) return;
    const auto left = static_cast<std::size_t>(thread.frames.rend() - found) - 1;
    while (thread.frames.size() > left) close_innermost(thread, pc);
  }

  void close_innermost(RecordedThread& thread, std::uint64_t pc) {
    Frame frame = thread.frames.back();
    thread.frames.pop_back();
    if (frame.awaits_body) form_team(thread, frame, pc);
    settle_cost(frame);
    if (frame.role == Frame::Role::team) {
      if (!frame.joined && frame.marked != none) {
        add_sync(thread, frame.marked, SyncKind::join, frame.subject, pc);
      }
      if (frame.master) std::erase(open_teams, static_cast<std::uint32_t>(frame.subject));
    }
    const bool holds_lock = frame.kind == RegionKind::critical || frame.kind == RegionKind::ordered;
    if (frame.marked != none) {
      if (holds_lock) add_sync(thread, frame.marked, SyncKind::release, frame.subject, pc);
      add_marker(thread, frame.marked, frame.region, MarkerAction::leave);
    }
    // What the runtime still does after the join belongs to it.
    if (frame.sync == SyncKind::join && frame.role == Frame::Role::runtime) {
      if (Frame* team = innermost(thread, Frame::Role::team)) {
        team->left_out = true;
        team->sync = SyncKind::join;
      }
    }
    if (frame.role == Frame::Role::task && frame.region == none) streams.close(frame.stream);
  }

  // The stream whose node stands for what the thread does now, be it left out or not; none if there is none.
  std::uint32_t synced_stream(RecordedThread& thread) {
    const Frame* frame = ruling(thread);
    return frame != nullptr && frame->left_out ? frame->marked : current_stream(thread);
  }

  void add_lock(RecordedThread& thread, std::uint32_t number, SyncKind kind, std::uint64_t pc) {
    const Region& region = regions[number];
    if (region.kind != RegionKind::lock) return;
    if (const std::uint32_t stream = synced_stream(thread); stream != none)
      add_sync(thread, stream, kind, object_of(thread, region), pc, region.sleeps);
  }

  // Events have numbers of their own in each process.
  void add_event(RecordedThread& thread, SyncKind kind, std::uint64_t event, std::uint64_t pc) {
    if (const std::uint32_t stream = synced_stream(thread); stream != none)
      add_sync(thread, stream, kind, std::uint64_t{thread.process} << process_shift | event, pc);
  }

  void create_task(RecordedThread& thread, std::uint64_t task, std::uint64_t pc) {
    const Frame* frame = ruling(thread);
    const std::uint32_t stream = frame != nullptr ? frame->stream : current_stream(thread);
    if (stream != none) add_sync(thread, stream, SyncKind::task_create, task, pc);
  }

  void start_task(RecordedThread& thread, std::uint64_t number) {
    StreamInfo info{.is_task = true, .subject = number, .process = thread.process, .thread = thread.number};
    if (number < tasks.tasks().size()) {
      const Task& task = tasks.tasks()[number];
      info.region = task.region;
      info.parent = task.parent;
      const auto first = tasks.dependences().begin() + task.first_dependence;
      info.dependences.assign(first, first + task.dependence_count);
    }
    if (const Frame* runtime = ruling(thread); runtime != nullptr && runtime->idle_from) {
      add_cost(scheduling, runtime->instructions - *runtime->idle_from, 0);
      ++scheduling.nodes;
    }
    Frame frame{.role = Frame::Role::task, .kind = RegionKind::task, .subject = number};
    frame.stream = streams.open(std::move(info));
    thread.frames.push_back(frame);
  }

  void end_task(RecordedThread& thread, std::uint64_t number, std::uint64_t pc) {
    const auto found = std::find_if(thread.frames.rbegin(), thread.frames.rend(), [&](const Frame& frame) {
      return frame.role == Frame::Role::task && frame.region == none && frame.subject == number;
    });
    if (found == thread.frames.rend()) return;
    const auto left = static_cast<std::size_t>(thread.frames.rend() - found) - 1;
    while (thread.frames.size() > left) close_innermost(thread, pc);
    if (Frame* runtime = ruling(thread); runtime != nullptr && runtime->role == Frame::Role::runtime) {
      runtime->idle_from = runtime->instructions;
    }
  }

  void finish() {
    if (std::exchange(finished, true)) return;
    for (const auto& thread : threads) {
      if (!thread) continue;
      if (!thread->markers.empty()) take_markers(*thread, 0);
      while (!thread->frames.empty()) close_innermost(*thread, 0);
      if (thread->stream == none) {
        if (thread->executed > most_before_work) ++statistics.unknown_threads;
        continue;
      }
      add_sync(*thread, thread->stream, SyncKind::thread_end, thread->number, 0);
      streams.close(thread->stream);
    }
  }
};

Recorder::Recorder(const CoreSpec& core, const CompactionTuning& tuning, const RegionTable& regions,
                   const TaskTable& tasks, BlockSink sink)
    : implementation_(std::make_unique<Implementation>(core, tuning, regions, tasks, std::move(sink))) {}

Recorder::~Recorder() = default;

const SyncCost& Recorder::scheduling_cost() const {
  return implementation_->scheduling;
}

void Recorder::keep_forks(bool keep) {
  implementation_->forks_kept = keep;
}

void Recorder::set_l1_filter(std::uint64_t bytes) {
  implementation_->set_l1_filter(bytes);
}

void Recorder::take(std::span<const Record> records) {
  for (const Record& record : records) implementation_->take(record);
}

void Recorder::finish() {
  implementation_->finish();
}

const RecorderStatistics& Recorder::statistics() const {
  return implementation_->statistics;
}
const std::vector<StreamInfo>& Recorder::streams() const {
  return implementation_->streams.infos();
}
const std::vector<TeamInfo>& Recorder::teams() const {
  return implementation_->teams;
}
const std::array<SyncCost, sync_kinds>& Recorder::sync_costs() const {
  return implementation_->costs;
}
std::vector<SharedRange> Recorder::shared_ranges() const {
  return implementation_->pages.shared();
}

}  // namespace manyscale::cpu
