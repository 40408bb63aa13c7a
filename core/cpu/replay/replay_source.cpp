// SPDX-License-Identifier: Apache-2.0
// Replay of a trace: which core executes what, and when.
#include "cpu/replay/replay_source.hpp"

#include <algorithm>
#include <utility>

#include "engine/registry.hpp"

namespace manyscale::cpu {

namespace {

const Registered<ReplaySource> registered{"cpu.trace",
                                          "A recorded trace of a program, replayed on the cores."};

// Forgets producers further back than the nodes that came before this one.
void forget_producers(Record& record, ElasticTiming& timing, std::uint32_t nodes) {
  for (std::size_t i = 0; i < record.producers.size(); ++i) {
    if (record.producers[i] > nodes) record.producers[i] = timing.delays[i] = 0;
  }
}

// Whether a thread never waits at this node: it releases a lock or posts an event.
bool goes_on_at_once(const TraceNode& node) {
  return node.sync == SyncKind::release || node.sync == SyncKind::post;
}

}  // namespace

ReplaySource::ReplaySource(const Spec& spec) : spec_(spec) {
  if (spec.cores % spec.copies != 0) {
    throw std::invalid_argument("copies: " + std::to_string(spec.cores) + " cores cannot be divided among " +
                                std::to_string(spec.copies) + " copies");
  }
  declare(statistics_);
  cores_.on_receive<&ReplaySource::requested>();
  resume_timer_.on_expire<&ReplaySource::resumed>();
  ready_timer_.on_expire<&ReplaySource::became_ready>();
  for (std::int64_t i = 0; i < spec.cores; ++i) {
    lanes_.push_back(std::make_unique<Lane>(spec.run_ahead, RecordRing::Contents::replayed));
    declare(lanes_.back()->states, "core[" + std::to_string(i) + "].");
  }
}

void ReplaySource::start() {
  if (!trace_) throw SimulationError(name() + ": no trace to replay");
  if (cores_.width() != lanes_.size()) {
    throw SimulationError(name() + ": `cores` is " + std::to_string(lanes_.size()) + ", but " +
                          std::to_string(cores_.width()) + " cores are connected");
  }
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) lanes_[i]->attach(cores_, i);
  for (const auto& worker : workers_) await_first_region(*worker);
  for (const auto& lane : lanes_) advance(*lane);
  if (arbiter_->finished()) end_all();
}

void ReplaySource::requested(const StreamRequest& request, std::uint32_t number) {
  if (ended_) return;
  Lane& lane = *lanes_[number];
  lane.taken = std::max(lane.taken, request.number);
  if (request.type == StreamRequest::Type::wants_more) {
    advance(lane);
  } else if (std::exchange(lane.halted, false)) {
    reached(lane);
  }
}

void ReplaySource::resumed(const Resume& resume) {
  Lane& lane = *lanes_[resume.lane];
  lane.delayed = false;
  if (std::exchange(lane.ends_task, false)) {
    end_replica(lane);
  } else if (std::exchange(lane.arrives, false)) {
    arrive(lane);
  } else {
    advance(lane);
  }
}

void ReplaySource::became_ready(const Ready& ready) {
  Worker& worker = *workers_[ready.worker];
  Lane& lane = *lanes_[worker.lane];
  lane.ready.push_back(&worker);
  advance(lane);
}

void ReplaySource::reached(Lane& lane) {
  const Execution& execution = lane.current->executions.back();
  if (execution.at_end) {
    // Dependent tasks may run when the end of this one is entered in the queue.
    const bool is_task = execution.replica >= arbiter_->threads();
    const Time wait = is_task ? task_queue(lane_number(lane)).use(lane_number(lane), now()) : 0;
    if (wait > 0) {
      lane.ends_task = true;
      delay(lane, State::end, wait);
    } else {
      end_replica(lane);
    }
    return;
  }
  const Time before = time_before(execution.node, lane_number(lane));
  if (before > 0) {
    lane.arrives = true;
    delay(lane, State::init, before);
  } else {
    arrive(lane);
  }
}

void ReplaySource::arrive(Lane& lane) {
  Worker& worker = *lane.current;
  Execution& execution = worker.executions.back();
  const bool goes_on = arbiter_->arrive(execution.replica, execution.node);
  const bool retried = std::exchange(execution.retries, false);
  if (!retried) count(execution.node, goes_on);
  if (!goes_on) {
    execution.waiting = true;
    execution.waits_since = now();
    lane.current = nullptr;
    follow_up(worker.lane);
    advance(lane);
    return;
  }
  const Time after = retried ? execution.acquire_time : time_after(execution.node, false);
  execution.resumes = now() + after;
  const std::size_t executions = worker.executions.size();
  follow_up(worker.lane);
  // An undeferred task of this thread comes first.
  const bool goes_on_itself = worker.executions.size() == executions;
  delay(lane, goes_on_itself ? State::end : State::init, goes_on_itself ? after : spec_.schedule_latency);
}

void ReplaySource::end_replica(Lane& lane) {
  Worker& worker = *lane.current;
  const Execution& execution = worker.executions.back();
  const Replica replica = execution.replica;
  if (replica >= arbiter_->threads()) {
    task_runs_.push_back({trace_->streams[arbiter_->stream_of(replica)].subject, arbiter_->copy_of(replica),
                          worker.lane, execution.began, now()});
  }
  worker.executions.pop_back();
  arbiter_->finish(replica);
  const bool goes_on = !worker.executions.empty() && !worker.executions.back().waiting;
  if (!goes_on) lane.current = nullptr;
  follow_up(worker.lane);
  if (arbiter_->finished()) {
    end_all();
  } else if (goes_on) {
    delay(lane, State::end, std::max<Time>(0, worker.executions.back().resumes - now()));
  } else {
    advance(lane);
  }
}

void ReplaySource::follow_up(std::uint32_t core) {
  for (const Arbiter::Release& each : arbiter_->take_released()) release(each);
  bool added = false;
  for (const Replica task : arbiter_->take_ready()) {
    const Replica creator = arbiter_->creator_of(task);
    Worker& maker = *workers_[worker_of_[creator]];
    const bool at_once = arbiter_->is_undeferred(task) && lanes_[core]->current == &maker &&
                         maker.executions.back().replica == creator;
    if (at_once) {
      begin_task(maker, task);
      continue;
    }
    const std::uint32_t home =
        scheduler_->add(task - arbiter_->threads(), creator, arbiter_->group_of(task), core);
    added = true;
    if (lanes_[home]->current == nullptr) advance(*lanes_[home]);
  }
  for (std::size_t i = 0; i < lanes_.size() && scheduler_->size() > 0; ++i) {
    if (lanes_[i]->current == nullptr) advance(*lanes_[i]);
  }
  if (added) task_queue(core).add_failed_dequeues(idle_cores(core), now());
}

void ReplaySource::release(const Arbiter::Release& release) {
  Worker& worker = *workers_[worker_of_[release.replica]];
  const auto execution = std::find_if(worker.executions.begin(), worker.executions.end(),
                                      [&](const Execution& each) { return each.replica == release.replica; });
  execution->waiting = false;
  execution->retries = release.kind == SyncKind::acquire;
  execution->resumes =
      now() + (execution->retries ? time_to_retry(*execution) : time_after(execution->node, true));
  // A thread that executes a task meanwhile goes on when the task is done.
  if (&*execution == &worker.executions.back()) resume(worker);
}

void ReplaySource::resume(Worker& worker) {
  worker.resuming = true;
  Lane& lane = *lanes_[worker.lane];
  if (lane.current == nullptr) enter(lane, State::end);
  ready_timer_.after(std::max<Time>(0, worker.executions.back().resumes - now()), {worker.number});
}

void ReplaySource::advance(Lane& lane) {
  if (ended_ || lane.delayed || lane.halted) return;
  if (lane.current == nullptr && !choose(lane)) {
    rest(lane);
    return;
  }
  if (lane.delayed) return;
  if (std::exchange(lane.arrives, false)) {
    arrive(lane);
    return;
  }
  enter(lane, State::processing);
  write_records(lane);
  announce(lane);
}

// Whether there is something to execute on the lane's core: a thread that can go on, or else a task.
bool ReplaySource::choose(Lane& lane) {
  Worker* worker = nullptr;
  Time cost = 0;
  if (!lane.ready.empty()) {
    worker = lane.ready.front();
    lane.ready.pop_front();
    worker->resuming = false;
  } else {
    for (Worker* each : lane.workers) {
      const auto choice = choose_task(*each);
      if (!choice) continue;
      worker = each;
      cost = spec_.schedule_latency + (choice->stolen ? spec_.steal_latency : 0) +
             task_queue(each->lane).use(each->lane, now());
      if (choice->stolen) ++statistics_.stolen_tasks;
      begin_task(*each, arbiter_->threads() + choice->task);
      break;
    }
  }
  if (worker == nullptr) return false;
  lane.asleep = false;
  lane.current = worker;
  if (lane.last != nullptr && lane.last != worker) {
    ++statistics_.context_switches;
    cost += spec_.switch_latency;
  }
  lane.last = worker;
  lane.arrives = !worker->executions.empty() && worker->executions.back().retries;
  if (cost > 0) delay(lane, State::init, cost);
  return true;
}

std::optional<TaskScheduler::Choice> ReplaySource::choose_task(const Worker& worker) {
  using Scope = TaskScheduler::Scope;
  if (worker.resuming || scheduler_->size() == 0) return std::nullopt;
  if (worker.executions.empty()) return scheduler_->take(worker.lane, Scope::any);
  const Execution& execution = worker.executions.back();
  switch (execution.node.sync) {
    case SyncKind::begin:
    case SyncKind::join:
    case SyncKind::barrier:
      return scheduler_->take(worker.lane, Scope::any);
    case SyncKind::taskwait:
      return scheduler_->take(worker.lane, Scope::children, execution.replica);
    case SyncKind::taskgroup_end:
      return scheduler_->take(worker.lane, Scope::group, arbiter_->open_group(execution.replica));
    default:
      return std::nullopt;
  }
}

void ReplaySource::begin_task(Worker& worker, Replica task) {
  ++statistics_.tasks;
  worker_of_[task] = worker.number;
  worker.executions.emplace_back(task, arbiter_->stream_of(task));
  worker.executions.back().began = now();
}

// The core has nothing to do now.
void ReplaySource::rest(Lane& lane) {
  if (std::any_of(lane.workers.begin(), lane.workers.end(),
                  [](const Worker* each) { return each->resuming; })) {
    enter(lane, State::end);
    return;
  }
  const bool waits = std::any_of(lane.workers.begin(), lane.workers.end(), [](const Worker* each) {
    return !each->executions.empty() && !each->executions.back().node.is_beginning();
  });
  enter(lane, waits ? State::stall : State::idle);
  if (!waits) lane.sleep(cores_, lane_number(lane));
}

void ReplaySource::delay(Lane& lane, State state, Time time) {
  if (time == 0) {
    advance(lane);
    return;
  }
  enter(lane, state);
  lane.delayed = true;
  resume_timer_.after(time, {lane_number(lane)});
}

void ReplaySource::write_records(Lane& lane) {
  Worker& worker = *lane.current;
  Execution& execution = worker.executions.back();
  const std::uint32_t copy = arbiter_->copy_of(execution.replica);
  const bool moves = copy > 0 && offset_;
  const std::uint64_t limit = lane.limit();
  if (std::exchange(lane.executing, execution.replica) != execution.replica) lane.nodes = 0;
  while (lane.end < limit) {
    const TraceNode* node = execution.cursor.next(*blocks_, *trace_);
    if (node == nullptr) {
      write_end(lane, execution);
      return;
    }
    Record& record = lane.ring[lane.end];
    ElasticTiming& timing = lane.ring.timing(lane.end++);
    record = *node;
    timing = node->timing;
    record.thread = worker.thread;
    if (record.kind == InstructionClass::marker) continue;
    if (lane.nodes < Record::furthest_producer) forget_producers(record, timing, lane.nodes++);
    record.flags &= static_cast<std::uint8_t>(~Trait::halts_stream);
    if (node->is_sync()) {
      record.flags |= Trait::halts_stream;
      execution.node = *node;
      execution.at_end = node->sync == SyncKind::thread_end;
      lane.halted = true;
      // The core reaches a fence when all before it is done, but goes on fetching: there is no system call.
      if (goes_on_at_once(*node)) record.kind = InstructionClass::fence;
      return;
    }
    if (moves && record.touches_memory()) record.address = offset_->move(record.address, copy);
  }
}

// A last node that the core reaches when it has executed the whole stream.
void ReplaySource::write_end(Lane& lane, Execution& execution) {
  const std::uint64_t pc = lane.end > 0 ? lane.ring[lane.end - 1].pc : 0;
  lane.ring.timing(lane.end) = {};
  lane.ring[lane.end++] = sync_node(SyncKind::thread_end, 0, lane.current->thread, pc);
  execution.at_end = true;
  lane.halted = true;
}

void ReplaySource::announce(Lane& lane) {
  statistics_.records += lane.announce(cores_, lane_number(lane));
}

void ReplaySource::enter(Lane& lane, State state) {
  if (state == lane.state) return;
  add_state_time(lane);
  lane.state = state;
  Counter* const counts[] = {&lane.states.init, &lane.states.processing, &lane.states.stall, &lane.states.end,
                             &lane.states.idle};
  ++*counts[static_cast<std::size_t>(state)];
}

void ReplaySource::add_state_time(Lane& lane) {
  Counter* const times[] = {&lane.states.init_time, &lane.states.processing_time, &lane.states.stall_time,
                            &lane.states.end_time, &lane.states.idle_time};
  *times[static_cast<std::size_t>(lane.state)] += now() - std::exchange(lane.since, now());
}

void ReplaySource::end_all() {
  ended_ = true;
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
    enter(*lanes_[i], State::idle);
    cores_.send({lanes_[i]->announced, nullptr, StreamReply::Type::ends}, 0, i);
  }
}

void ReplaySource::settle() {
  for (const auto& lane : lanes_) add_state_time(*lane);
  const auto bring_up = [](Counter& counter, std::uint64_t total) {
    counter += static_cast<std::int64_t>(total) - counter.value();
  };
  if (!trace_) return;
  bring_up(statistics_.blocks, blocks_->decoded());
  bring_up(statistics_.tasks_without_stream, arbiter_->tasks_without_stream());
  bring_up(statistics_.unmatched_releases, arbiter_->unmatched_releases());
}

}  // namespace manyscale::cpu
