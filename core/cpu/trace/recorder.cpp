// SPDX-License-Identifier: Apache-2.0
#include "cpu/trace/recorder.hpp"

#include <algorithm>
#include <utility>

#include "cpu/trace/block.hpp"
#include "cpu/trace/recorder_implementation.hpp"

namespace manyscale::cpu {

using namespace recording;

namespace {

static_assert(none == StreamInfo::none);

// Instructions that a thread may execute before its own work; one that ends by then had none.
constexpr std::uint64_t most_before_work = 2000;

// How many instructions an access may be in flight.
std::uint64_t filter_window(const CoreSpec& core) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(128, core.reorder_buffer));
}

}  // namespace

Recorder::Implementation::Implementation(const CoreSpec& core_, const CompactionTuning& tuning,
                                         const RegionTable& regions_, const TaskTable& tasks_,
                                         BlockSink sink_)
    : core(core_), regions(regions_), tasks(tasks_), streams(core_, tuning, statistics, std::move(sink_)) {
  statistics.hit_cycles = streams.latencies().l1_hit();
  set_l1_filter(static_cast<std::uint64_t>(core.l1.size) / 2);
  code_filter =
      L1Filter(static_cast<std::uint64_t>(core.l1i.size) / 2, static_cast<std::uint64_t>(core.l1i.line), 0);
}

void Recorder::Implementation::set_l1_filter(std::uint64_t bytes) {
  data_filter = L1Filter(bytes, static_cast<std::uint64_t>(core.l1.line), filter_window(core),
                         static_cast<std::uint64_t>(core.store_queue) / 2);
  statistics.filter_bytes = data_filter.bytes();
}

void Recorder::Implementation::add_marker(const RecordedThread& thread, std::uint32_t stream,
                                          std::uint32_t region, MarkerAction action) {
  TraceNode marker;
  marker.kind = InstructionClass::marker;
  marker.address = marker_address(region, action);
  marker.thread = thread.number;
  streams.add(stream, marker);
}

void Recorder::Implementation::add_sync(const RecordedThread& thread, std::uint32_t stream, SyncKind kind,
                                        std::uint64_t object, std::uint64_t pc, bool sleeps) {
  ++costs[static_cast<std::size_t>(kind)].nodes;
  TraceNode node = sync_node(kind, object, thread.number, pc);
  node.sleeps = sleeps;
  streams.add(stream, node);
}

RecordedThread& Recorder::Implementation::thread_of(const Record& record) {
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

std::uint32_t Recorder::Implementation::own_stream(RecordedThread& thread) {
  if (thread.stream == none) {
    thread.stream =
        streams.open({.subject = thread.number, .process = thread.process, .thread = thread.number});
  }
  return thread.stream;
}

std::uint32_t Recorder::Implementation::current_stream(RecordedThread& thread) {
  if (const Frame* frame = ruling(thread)) return frame->left_out ? none : frame->stream;
  return thread.recorded ? own_stream(thread) : none;
}

void Recorder::Implementation::take(const Record& record) {
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

void Recorder::Implementation::record_instruction(RecordedThread& thread, std::uint32_t stream,
                                                  TraceNode& node, StreamPosition& slot) {
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

bool Recorder::Implementation::misses_l1i(RecordedThread& thread, std::uint32_t stream, const Record& node) {
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

void Recorder::Implementation::finish() {
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

std::vector<std::pair<std::uint64_t, std::uint32_t>> team_parts(const RecordedBlock& block) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> found;
  BlockReader reader(block.bytes);
  for (std::uint32_t index = 0; reader.left() > 0; ++index) {
    const TraceNode node = reader.next();
    if (!node.is_sync()) continue;
    if (node.sync == SyncKind::fork || node.sync == SyncKind::begin) found.emplace_back(node.address, index);
  }
  return found;
}

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
