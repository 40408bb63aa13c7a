// SPDX-License-Identifier: Apache-2.0
// Playing a trace: what is given to whom, and when.
#include "cpu/replay/replay_source.hpp"

#include <algorithm>
#include <utility>

#include "engine/registry.hpp"

namespace manyscale::cpu {

namespace {

const Registered<ReplaySource> registered{
    "cpu.trace", "A recorded trace of a program, played for the cores that it runs on."};

// Forgets producers further back than the nodes that came before this one.
void forget_producers(Record& record, std::uint32_t nodes) {
  for (std::size_t i = 0; i < record.producers.size(); ++i) {
    if ((record.producers[i] & Record::furthest_producer) > nodes) record.producers[i] = record.delays[i] = 0;
  }
}

// What a thread only tells others; it goes on at once.
bool passes_on(const Record& node) {
  return sync_kind(node) == SyncKind::release || sync_kind(node) == SyncKind::post;
}

// The core reaches it when all before it is done, but goes on fetching: there is no system call.
void play_as_fence(Record& record) {
  const CompactedBranches turns = record.compacted_branches();
  record.kind = Kind::fence;
  record.set_compacted_branches(turns);
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
    lanes_.push_back(std::make_unique<Lane>(spec.run_ahead));
    declare(lanes_.back()->states, "core[" + std::to_string(i) + "].");
  }
}

void ReplaySource::start() {
  if (!trace_) throw SimulationError(name() + ": no trace to play");
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
  if (request.kind == StreamRequest::Kind::wants_more) {
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
  const Player& player = lane.current->players.back();
  if (player.played) {
    // Those who depend on a task may run when its end is noted in the queue.
    const bool is_task = player.replica >= arbiter_->threads();
    const Time wait = is_task ? use_queue(lane_number(lane)) : 0;
    if (wait > 0) {
      lane.ends_task = true;
      delay(lane, State::end, wait);
    } else {
      end_replica(lane);
    }
    return;
  }
  const Time before = time_before(player.node, lane_number(lane));
  if (before > 0) {
    lane.arrives = true;
    delay(lane, State::init, before);
  } else {
    arrive(lane);
  }
}

void ReplaySource::arrive(Lane& lane) {
  Worker& worker = *lane.current;
  Player& player = worker.players.back();
  const bool goes_on = arbiter_->arrive(player.replica, player.node);
  const bool retried = std::exchange(player.retries, false);
  if (!retried) count(player.node, goes_on);
  if (!goes_on) {
    player.waiting = true;
    player.waits_since = now();
    lane.current = nullptr;
    follow_up(worker.lane);
    advance(lane);
    return;
  }
  const Time after = retried ? player.takes : time_after(player.node, false);
  player.resumes = now() + after;
  const std::size_t players = worker.players.size();
  follow_up(worker.lane);
  // A task that its creator executes at once comes first.
  const bool goes_on_itself = worker.players.size() == players;
  delay(lane, goes_on_itself ? State::end : State::init, goes_on_itself ? after : spec_.schedule_latency);
}

void ReplaySource::end_replica(Lane& lane) {
  Worker& worker = *lane.current;
  const Player& player = worker.players.back();
  const Replica replica = player.replica;
  if (replica >= arbiter_->threads()) {
    task_runs_.push_back({trace_->streams[arbiter_->stream_of(replica)].subject, arbiter_->copy_of(replica),
                          worker.lane, player.began, now()});
  }
  worker.players.pop_back();
  arbiter_->finish(replica);
  const bool goes_on = !worker.players.empty() && !worker.players.back().waiting;
  if (!goes_on) lane.current = nullptr;
  follow_up(worker.lane);
  if (arbiter_->finished()) {
    end_all();
  } else if (goes_on) {
    delay(lane, State::end, std::max<Time>(0, worker.players.back().resumes - now()));
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
                         maker.players.back().replica == creator;
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
  if (added) rush(core);
}

void ReplaySource::release(const Arbiter::Release& release) {
  Worker& worker = *workers_[worker_of_[release.replica]];
  const auto player = std::find_if(worker.players.begin(), worker.players.end(),
                                   [&](const Player& each) { return each.replica == release.replica; });
  player->waiting = false;
  player->retries = release.kind == SyncKind::acquire;
  player->resumes = now() + (player->retries ? time_to_retry(*player) : time_after(player->node, true));
  // Who executes a task meanwhile goes on when that is done.
  if (&*player == &worker.players.back()) resume(worker);
}

void ReplaySource::resume(Worker& worker) {
  worker.resuming = true;
  Lane& lane = *lanes_[worker.lane];
  if (lane.current == nullptr) enter(lane, State::end);
  ready_timer_.after(std::max<Time>(0, worker.players.back().resumes - now()), {worker.number});
}

void ReplaySource::count(const Record& node, bool goes_on) {
  switch (sync_kind(node)) {
    case SyncKind::system_call:
      ++statistics_.system_calls;
      break;
    case SyncKind::fork:
      ++statistics_.forks;
      break;
    case SyncKind::barrier:
      ++statistics_.barriers;
      break;
    case SyncKind::acquire:
      ++statistics_.locks;
      if (!goes_on) ++statistics_.lock_waits;
      break;
    case SyncKind::taskwait:
    case SyncKind::taskgroup_end:
      ++statistics_.taskwaits;
      break;
    case SyncKind::await:
      ++statistics_.awaits;
      break;
    default:
      break;
  }
}

Time ReplaySource::time_before(const Record& node, std::uint32_t core) {
  switch (sync_kind(node)) {
    case SyncKind::fork: {
      const auto workers = static_cast<Time>(std::exchange(new_workers_[core / cores_of_copy()], 0));
      const auto threads =
          static_cast<Time>(std::max<std::uint64_t>(arbiter_->team_size(node) / spec_.copies, 1));
      return spec_.fork_latency + (workers > 0 ? spec_.pool_latency : 0) + spec_.worker_latency * workers +
             spec_.fork_thread_latency * (threads - 1);
    }
    case SyncKind::task_create:
      // Who makes a task for others to take asks the system to wake one that may sleep.
      return spec_.create_latency + use_queue(core) +
             (spec_.queue_latency > 0 && idle_cores(core) > 0 ? spec_.system_call_latency : 0);
    default:
      return 0;
  }
}

Time ReplaySource::time_after(const Record& node, bool waited) const {
  switch (sync_kind(node)) {
    case SyncKind::system_call:
      return spec_.system_call_latency;
    case SyncKind::begin:
      return spec_.begin_latency;
    case SyncKind::join:
      return waited ? spec_.join_latency : 0;
    case SyncKind::barrier:
      return spec_.barrier_latency +
             spec_.barrier_thread_latency * static_cast<Time>(arbiter_->team_size(node));
    case SyncKind::acquire:
      return spec_.lock_latency;
    case SyncKind::release:
      return spec_.unlock_latency;
    case SyncKind::taskwait:
    case SyncKind::taskgroup_end:
      return spec_.taskwait_latency;
    case SyncKind::thread_begin:
      return spec_.thread_latency;
    case SyncKind::await:
      return waited ? spec_.wake_latency : spec_.await_latency;
    default:
      return 0;
  }
}

// From the release of a lock until one who waits for it tries to take it. Who sleeps is woken by the system;
// who is about to sleep finds that it need not. Others look at the lock all the time: whether somebody else
// has it by then is a race, which now one wins and now the other.
Time ReplaySource::time_to_retry(Player& player) {
  if (player.node.has(Trait::sleeps)) {
    player.takes = 0;
    const Time entering = player.waits_since + spec_.system_call_latency - now();
    return entering > 0 ? entering : spec_.wake_latency;
  }
  const Time least = std::min(spec_.handover_least_latency, spec_.handover_latency);
  const double part = static_cast<double>(++handovers_ * 0x9e3779b97f4a7c15u >> 11) * 0x1p-53;
  const auto spread = static_cast<Time>(part * 2 * static_cast<double>(spec_.handover_latency - least));
  player.takes = std::min(spec_.lock_latency, least + spread);
  return least + spread - player.takes;
}

// Whether cores are in each other's way at the queue of tasks.
bool ReplaySource::queue_takes_time() const {
  return spec_.queue_latency > 0 || spec_.failed_dequeue_latency > 0 ||
         spec_.failed_dequeue_contention_latency > 0;
}

Time ReplaySource::use_queue(std::uint32_t core) {
  if (!queue_takes_time()) return 0;
  Queue& queue = queues_[core / cores_of_copy()];
  const std::uint32_t last = std::exchange(queue.core, core);
  queue.free = std::max(queue.free, now());
  if (last != core && last != Arbiter::none) queue.free += spec_.queue_latency;
  return queue.free - now();
}

// How many cores of this core's copy have nothing to do.
Time ReplaySource::idle_cores(std::uint32_t core) const {
  const std::uint32_t first = core - core % cores_of_copy();
  return std::count_if(lanes_.begin() + first, lanes_.begin() + first + cores_of_copy(),
                       [](const auto& lane) { return lane->current == nullptr; });
}

// A task may run: cores without work all come to look for it. They take the queue's lock one after the other,
// and the more of them want it, the longer each takes, since all look at it all the time. Those who still
// stand there for a task before this one come only once.
void ReplaySource::rush(std::uint32_t core) {
  if (!queue_takes_time()) return;
  const Time idle = idle_cores(core);
  Queue& queue = queues_[core / cores_of_copy()];
  const Time all = idle * (spec_.failed_dequeue_latency +
                           spec_.failed_dequeue_contention_latency * std::max<Time>(0, idle - 1));
  const Time standing = std::max<Time>(0, queue.rush_end - now());
  const Time added = std::max<Time>(0, all - standing);
  queue.free = std::max(queue.free, now()) + added;
  queue.rush_end = now() + standing + added;
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
      cost = spec_.schedule_latency + (choice->stolen ? spec_.steal_latency : 0) + use_queue(each->lane);
      if (choice->stolen) ++statistics_.stolen_tasks;
      begin_task(*each, arbiter_->threads() + choice->task);
      break;
    }
  }
  if (worker == nullptr) return false;
  lane.asleep = false;
  lane.current = worker;
  if (lane.last != nullptr && lane.last != worker) {
    ++statistics_.switches;
    cost += spec_.switch_latency;
  }
  lane.last = worker;
  lane.arrives = !worker->players.empty() && worker->players.back().retries;
  if (cost > 0) delay(lane, State::init, cost);
  return true;
}

std::optional<TaskScheduler::Choice> ReplaySource::choose_task(const Worker& worker) {
  using Scope = TaskScheduler::Scope;
  if (worker.resuming || scheduler_->size() == 0) return std::nullopt;
  if (worker.players.empty()) return scheduler_->take(worker.lane, Scope::any);
  const Player& player = worker.players.back();
  switch (sync_kind(player.node)) {
    case SyncKind::begin:
    case SyncKind::join:
    case SyncKind::barrier:
      return scheduler_->take(worker.lane, Scope::any);
    case SyncKind::taskwait:
      return scheduler_->take(worker.lane, Scope::children, player.replica);
    case SyncKind::taskgroup_end:
      return scheduler_->take(worker.lane, Scope::group, arbiter_->open_group(player.replica));
    default:
      return std::nullopt;
  }
}

void ReplaySource::begin_task(Worker& worker, Replica task) {
  ++statistics_.tasks;
  worker_of_[task] = worker.number;
  worker.players.emplace_back(task, arbiter_->stream_of(task));
  worker.players.back().began = now();
}

// The core has nothing to do now.
void ReplaySource::rest(Lane& lane) {
  if (std::any_of(lane.workers.begin(), lane.workers.end(),
                  [](const Worker* each) { return each->resuming; })) {
    enter(lane, State::end);
    return;
  }
  const bool waits = std::any_of(lane.workers.begin(), lane.workers.end(), [](const Worker* each) {
    return !each->players.empty() && !is_beginning(each->players.back().node);
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
  Player& player = worker.players.back();
  const std::uint32_t copy = arbiter_->copy_of(player.replica);
  const bool moves = copy > 0 && offset_;
  const std::uint64_t limit = lane.limit();
  if (std::exchange(lane.playing, player.replica) != player.replica) lane.nodes = 0;
  while (lane.end < limit) {
    const Record* node = player.cursor.next(*blocks_, *trace_);
    if (node == nullptr) {
      write_end(lane, player);
      return;
    }
    Record& record = lane.ring[lane.end++];
    record = *node;
    record.thread = worker.thread;
    if (record.kind == Kind::marker) continue;
    if (lane.nodes < Record::furthest_producer) forget_producers(record, lane.nodes++);
    record.flags &= static_cast<std::uint8_t>(~Trait::halts_stream);
    if (is_sync_node(record)) {
      record.flags |= Trait::halts_stream;
      player.node = record;
      player.played = record.size == static_cast<std::uint8_t>(SyncKind::thread_end);
      lane.halted = true;
      if (passes_on(record)) play_as_fence(record);
      return;
    }
    if (moves && record.touches_memory()) record.address = offset_->move(record.address, copy);
  }
}

// What tells that the core has executed a stream to its end.
void ReplaySource::write_end(Lane& lane, Player& player) {
  const std::uint64_t pc = lane.end > 0 ? lane.ring[lane.end - 1].pc : 0;
  lane.ring[lane.end++] = sync_node(SyncKind::thread_end, 0, lane.current->thread, pc);
  player.played = true;
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
    cores_.send({lanes_[i]->announced, nullptr, StreamReply::Kind::ends}, 0, i);
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
