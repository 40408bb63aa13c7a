// SPDX-License-Identifier: Apache-2.0
#include "cpu/replay/arbiter.hpp"

#include <algorithm>
#include <utility>

#include "cpu/stream/hexadecimal.hpp"
#include "engine/component.hpp"

namespace manyscale::cpu {

Arbiter::Arbiter(const RecordedTrace& trace, std::uint32_t copies, bool private_locks)
    : trace_(trace), copies_(copies), private_locks_(private_locks) {
  std::vector<std::uint32_t> threads, tasks;
  for (std::uint32_t i = 0; i < trace.streams.size(); ++i)
    (trace.streams[i].is_task ? tasks : threads).push_back(i);
  const auto by_number = [&](std::uint32_t a, std::uint32_t b) {
    return trace.streams[a].subject < trace.streams[b].subject;
  };
  std::stable_sort(threads.begin(), threads.end(), by_number);
  std::stable_sort(tasks.begin(), tasks.end(), by_number);
  for (std::uint32_t i = 0; i < tasks.size(); ++i) {
    const std::uint64_t number = trace.streams[tasks[i]].subject;
    if (!task_numbers_.emplace(number, i).second)
      throw SimulationError("the trace has two streams of task " + std::to_string(number));
  }
  events_.resize(copies);
  threads_ = unfinished_threads_ = copies * static_cast<std::uint32_t>(threads.size());
  tasks_of_copy_ = static_cast<std::uint32_t>(tasks.size());
  replicas_.resize(copies * trace.streams.size());
  std::size_t next = 0;
  for (const auto* streams : {&threads, &tasks}) {
    for (std::uint32_t copy = 0; copy < copies; ++copy) {
      for (const std::uint32_t stream : *streams) {
        replicas_[next].stream = stream;
        replicas_[next++].copy = copy;
      }
    }
  }
}

std::uint64_t Arbiter::team_size(const TraceNode& node) const {
  return node.address < trace_.teams.size() ? expected(static_cast<std::uint32_t>(node.address)) : 1;
}

bool Arbiter::arrive(Replica replica, const TraceNode& node) {
  if (static_cast<std::size_t>(node.sync) >= sync_kinds)
    refuse(replica, node, "has an unknown kind, " + std::to_string(static_cast<int>(node.sync)));
  ReplicaState& state = replicas_[replica];
  switch (node.sync) {
    case SyncKind::system_call:
      return true;
    case SyncKind::fork:
      return fork(replica, node);
    case SyncKind::begin:
      return begin(replica, node);
    case SyncKind::join:
      return join(replica, node);
    case SyncKind::barrier:
      return barrier(replica, node);
    case SyncKind::acquire:
      return acquire(replica, node);
    case SyncKind::release:
      release_lock(replica, node);
      return true;
    case SyncKind::task_create:
      create(replica, node);
      return true;
    case SyncKind::taskwait:
      return state.children == 0 || !waits(replica, node);
    case SyncKind::taskgroup_begin:
      state.groups.push_back(static_cast<std::uint32_t>(groups_.size()));
      groups_.push_back({0, replica});
      return true;
    case SyncKind::taskgroup_end:
      return end_group(replica, node);
    case SyncKind::thread_end:
      return true;
    case SyncKind::thread_begin:
    case SyncKind::await:
      return await(replica, node);
    case SyncKind::post:
      post(replica, node);
      return true;
  }
  return true;
}

// The replica waits at this node; always true.
bool Arbiter::waits(Replica replica, const TraceNode& node) {
  ReplicaState& state = replicas_[replica];
  state.kind = node.sync;
  state.object = node.address;
  state.pc = node.pc;
  state.waiting = true;
  return true;
}

void Arbiter::release(Replica replica) {
  ReplicaState& state = replicas_[replica];
  state.waiting = false;
  released_.push_back({replica, state.kind});
}

Arbiter::Team& Arbiter::team_of(Replica replica, const TraceNode& node) {
  if (node.address >= trace_.teams.size()) {
    refuse(replica, node,
           "is about team " + std::to_string(node.address) + ", but the trace has only " +
               std::to_string(trace_.teams.size()));
  }
  Team& team = teams_[static_cast<std::uint32_t>(node.address)];
  team.forked.resize(copies_);
  return team;
}

bool Arbiter::fork(Replica replica, const TraceNode& node) {
  Team& team = team_of(replica, node);
  const std::uint32_t copy = replicas_[replica].copy;
  if (team.forked[copy]) refuse(replica, node, "begins a parallel region that has begun already");
  team.forked[copy] = true;
  team.begun.push_back(replica);
  team.masters.push_back(replica);
  replicas_[replica].teams.push_back(static_cast<std::uint32_t>(node.address));
  std::erase_if(team.at_begin, [&](Replica worker) {
    if (replicas_[worker].copy != copy) return false;
    release(worker);
    return true;
  });
  return true;
}

bool Arbiter::begin(Replica replica, const TraceNode& node) {
  Team& team = team_of(replica, node);
  team.begun.push_back(replica);
  replicas_[replica].teams.push_back(static_cast<std::uint32_t>(node.address));
  if (team.forked[replicas_[replica].copy]) return true;
  team.at_begin.push_back(replica);
  return !waits(replica, node);
}

bool Arbiter::join(Replica replica, const TraceNode& node) {
  Team& team = team_of(replica, node);
  const auto number = static_cast<std::uint32_t>(node.address);
  std::erase(replicas_[replica].teams, number);
  team.at_join.push_back(replica);
  const bool is_master = std::find(team.masters.begin(), team.masters.end(), replica) != team.masters.end();
  if (is_master) waits(replica, node);
  release_complete(number);
  return !is_master;
}

bool Arbiter::barrier(Replica replica, const TraceNode& node) {
  team_of(replica, node).at_barrier.push_back(replica);
  waits(replica, node);
  release_complete(static_cast<std::uint32_t>(node.address));
  return false;
}

bool Arbiter::complete(std::uint32_t number, const std::vector<Replica>& arrived) const {
  return arrived.size() >= expected(number);
}

// Releases the replicas of a team whose barrier or join is complete.
void Arbiter::release_complete(std::uint32_t number) {
  const auto found = teams_.find(number);
  if (found == teams_.end() || found->second.tasks > 0) return;
  Team& team = found->second;
  if (complete(number, team.at_barrier)) {
    for (const Replica each : std::exchange(team.at_barrier, {})) release(each);
  }
  if (complete(number, team.at_join)) {
    for (const Replica master : team.masters) {
      const ReplicaState& state = replicas_[master];
      if (state.waiting && state.kind == SyncKind::join && state.object == number) release(master);
    }
    teams_.erase(found);
  }
}

// Threads of different copies meet at the same locks unless each copy has its own.
std::uint64_t Arbiter::lock_of(Replica replica, std::uint64_t object) const {
  return private_locks_ ? object + (static_cast<std::uint64_t>(replicas_[replica].copy) << 48) : object;
}

bool Arbiter::acquire(Replica replica, const TraceNode& node) {
  Lock& lock = locks_[lock_of(replica, node.address)];
  if (lock.holder == none || lock.holder == replica) {
    lock.holder = replica;
    ++lock.depth;
    return true;
  }
  lock.waiters.push_back(replica);
  return !waits(replica, node);
}

void Arbiter::release_lock(Replica replica, const TraceNode& node) {
  const auto found = locks_.find(lock_of(replica, node.address));
  // A lock may have been taken in a way that is not recorded.
  if (found == locks_.end() || found->second.holder != replica) {
    ++unmatched_releases_;
    return;
  }
  Lock& lock = found->second;
  if (--lock.depth > 0) return;
  if (lock.waiters.empty()) {
    locks_.erase(found);
    return;
  }
  lock.holder = none;
  const Replica next = lock.waiters.front();
  lock.waiters.pop_front();
  release(next);
}

Arbiter::Event& Arbiter::event_of(Replica replica, std::uint64_t object) {
  return events_[replicas_[replica].copy][event_number(object)];
}

bool Arbiter::await(Replica replica, const TraceNode& node) {
  Event& event = event_of(replica, node.address);
  if (event.posts >= event_posts(node.address)) return true;
  event.waiters.push_back(replica);
  return !waits(replica, node);
}

void Arbiter::post(Replica replica, const TraceNode& node) {
  Event& event = event_of(replica, node.address);
  ++event.posts;
  std::erase_if(event.waiters, [&](Replica waiter) {
    if (event.posts < event_posts(replicas_[waiter].object)) return false;
    release(waiter);
    return true;
  });
}

void Arbiter::create(Replica creator, const TraceNode& node) {
  const auto found = task_numbers_.find(node.address);
  if (found == task_numbers_.end()) {
    ++tasks_without_stream_;
    return;
  }
  ReplicaState& maker = replicas_[creator];
  const Replica task = threads_ + maker.copy * tasks_of_copy_ + found->second;
  ReplicaState& state = replicas_[task];
  if (state.stage != Stage::unborn) refuse(creator, node, "makes " + name_of(task) + " again");
  state.stage = Stage::blocked;
  state.creator = creator;
  state.group = maker.groups.empty() ? maker.group : maker.groups.back();
  state.team = maker.teams.empty() ? maker.team : maker.teams.back();
  ++unfinished_tasks_;
  ++maker.children;
  if (state.group != none) ++groups_[state.group].tasks;
  if (state.team != none) ++teams_[state.team].tasks;
  const std::vector<TaskDependence>& dependences = trace_.streams[state.stream].dependences;
  if (!dependences.empty()) {
    if (!maker.dependences) maker.dependences = std::make_unique<DependenceTable>();
    maker.dependences->add(task, dependences, [&](Replica earlier) {
      if (replicas_[earlier].stage == Stage::done) return;
      replicas_[earlier].dependents.push_back(task);
      ++state.missing;
    });
  }
  if (state.missing > 0) return;
  state.stage = Stage::ready;
  ready_.push_back(task);
}

bool Arbiter::end_group(Replica replica, const TraceNode& node) {
  ReplicaState& state = replicas_[replica];
  if (state.groups.empty()) refuse(replica, node, "ends a taskgroup that did not begin");
  if (groups_[state.groups.back()].tasks > 0) return !waits(replica, node);
  state.groups.pop_back();
  return true;
}

void Arbiter::finish(Replica replica) {
  ReplicaState& state = replicas_[replica];
  state.stage = Stage::done;
  state.dependences.reset();
  if (replica < threads_) {
    --unfinished_threads_;
    return;
  }
  --unfinished_tasks_;
  for (const Replica dependent : std::exchange(state.dependents, {})) {
    if (--replicas_[dependent].missing > 0) continue;
    replicas_[dependent].stage = Stage::ready;
    ready_.push_back(dependent);
  }
  ReplicaState& creator = replicas_[state.creator];
  --creator.children;
  if (creator.waiting && creator.kind == SyncKind::taskwait && creator.children == 0) release(state.creator);
  if (state.group != none) {
    Group& group = groups_[state.group];
    ReplicaState& owner = replicas_[group.owner];
    const bool ended = --group.tasks == 0 && owner.waiting && owner.kind == SyncKind::taskgroup_end &&
                       owner.groups.back() == state.group;
    if (ended) {
      owner.groups.pop_back();
      release(group.owner);
    }
  }
  if (state.team == none) return;
  --teams_[state.team].tasks;
  release_complete(state.team);
}

}  // namespace manyscale::cpu
