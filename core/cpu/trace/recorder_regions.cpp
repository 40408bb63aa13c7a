// SPDX-License-Identifier: Apache-2.0
// Recording of regions, locks, events and tasks: which of a thread's instructions are recorded, and in which
// stream.
#include <algorithm>
#include <utility>

#include "cpu/trace/recorder_implementation.hpp"

namespace manyscale::cpu {

using namespace recording;

void Recorder::Implementation::take_markers(RecordedThread& thread, std::uint64_t pc) {
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

void Recorder::Implementation::enter_runtime(RecordedThread& thread, Frame& frame, SyncKind kind,
                                             std::uint64_t object, std::uint64_t pc) {
  if (frame.marked != none) add_sync(thread, frame.marked, kind, object, pc, regions[frame.region].sleeps);
  frame.role = Frame::Role::runtime;
  frame.left_out = true;
  frame.sync = kind;
}

std::uint64_t Recorder::Implementation::object_of(const RecordedThread& thread, const Region& region) const {
  return (std::uint64_t{thread.process} + 1) << process_shift |
         (region.object != 0 || region.kind == RegionKind::critical_wait ? region.object : region.pc);
}

void Recorder::Implementation::enter(RecordedThread& thread, std::uint32_t number, std::uint64_t pc) {
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
      enter_runtime(thread, frame, ends_group(thread, region) ? SyncKind::taskgroup_end : SyncKind::taskwait,
                    0, pc);
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

Frame* Recorder::Implementation::innermost(RecordedThread& thread, Frame::Role role) {
  const auto found = std::find_if(thread.frames.rbegin(), thread.frames.rend(),
                                  [&](const Frame& frame) { return frame.role == role; });
  return found == thread.frames.rend() ? nullptr : &*found;
}

bool Recorder::Implementation::ends_group(const RecordedThread& thread, const Region& wait) const {
  const auto group = std::find_if(thread.frames.rbegin(), thread.frames.rend(),
                                  [](const Frame& frame) { return frame.kind == RegionKind::taskgroup; });
  return group != thread.frames.rend() && regions[group->region].pc == wait.pc;
}

void Recorder::Implementation::enter_team(RecordedThread& thread, Frame& frame, std::uint64_t pc) {
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

void Recorder::Implementation::form_team(RecordedThread& thread, Frame& frame, std::uint64_t pc) {
  if (forks_kept && frame.marked != none) {
    add_sync(thread, frame.marked, SyncKind::fork, frame.subject, pc);
  }
  frame.awaits_body = frame.left_out = false;
  settle_cost(frame);
}

void Recorder::Implementation::settle_cost(Frame& frame) {
  add_cost(costs[static_cast<std::size_t>(frame.sync)], frame.instructions, frame.system_calls);
  frame.instructions = frame.system_calls = 0;
}

void Recorder::Implementation::add_cost(SyncCost& cost, std::uint64_t instructions,
                                        std::uint64_t system_calls) {
  if (instructions == 0) return;
  cost.instructions += instructions;
  cost.system_calls += system_calls;
  if (cost.least_instructions == 0 || instructions < cost.least_instructions) {
    cost.least_instructions = instructions;
    cost.least_system_calls = system_calls;
  }
}

void Recorder::Implementation::leave(RecordedThread& thread, std::uint32_t region, std::uint64_t pc) {
  const auto found = std::find_if(thread.frames.rbegin(), thread.frames.rend(),
                                  [&](const Frame& frame) { return frame.region == region; });
  if (found == thread.frames.rend()) return;
  const auto left = static_cast<std::size_t>(thread.frames.rend() - found) - 1;
  while (thread.frames.size() > left) close_innermost(thread, pc);
}

void Recorder::Implementation::close_innermost(RecordedThread& thread, std::uint64_t pc) {
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

std::uint32_t Recorder::Implementation::synced_stream(RecordedThread& thread) {
  const Frame* frame = ruling(thread);
  return frame != nullptr && frame->left_out ? frame->marked : current_stream(thread);
}

void Recorder::Implementation::add_lock(RecordedThread& thread, std::uint32_t number, SyncKind kind,
                                        std::uint64_t pc) {
  const Region& region = regions[number];
  if (region.kind != RegionKind::lock) return;
  if (const std::uint32_t stream = synced_stream(thread); stream != none)
    add_sync(thread, stream, kind, object_of(thread, region), pc, region.sleeps);
}

void Recorder::Implementation::add_event(RecordedThread& thread, SyncKind kind, std::uint64_t event,
                                         std::uint64_t pc) {
  if (const std::uint32_t stream = synced_stream(thread); stream != none)
    add_sync(thread, stream, kind, std::uint64_t{thread.process} << process_shift | event, pc);
}

void Recorder::Implementation::create_task(RecordedThread& thread, std::uint64_t task, std::uint64_t pc) {
  const Frame* frame = ruling(thread);
  const std::uint32_t stream = frame != nullptr ? frame->stream : current_stream(thread);
  if (stream != none) add_sync(thread, stream, SyncKind::task_create, task, pc);
}

void Recorder::Implementation::start_task(RecordedThread& thread, std::uint64_t number) {
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

void Recorder::Implementation::end_task(RecordedThread& thread, std::uint64_t number, std::uint64_t pc) {
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

}  // namespace manyscale::cpu
