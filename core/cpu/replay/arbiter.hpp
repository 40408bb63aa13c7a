// SPDX-License-Identifier: Apache-2.0
// Arbiter: the synchronisation of the threads and tasks of a recorded trace: parallel regions, barriers,
// locks, events, task dependences, taskwait. It models the order only; latencies and cores are the replay
// source's.
//
// A replica is one copy of a recorded thread or task: with one copy there are as many replicas as streams.
// Copies of a team of threads are one larger team: its barriers wait for all of them. Threads that the
// program created itself wait for those of their own copy. Locks go to the first that comes, not in the order
// of the recording: a waiting replica is released when the lock is, and tries again; another may hold it by
// then.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cpu/replay/recorded_trace.hpp"
#include "cpu/replay/task_graph.hpp"

namespace manyscale::cpu {

class Arbiter {
 public:
  using Replica = std::uint32_t;
  static constexpr std::uint32_t none = ~0u;

  // A replica that waited and goes on; one that waited for a lock arrives again.
  struct Release {
    Replica replica = 0;
    SyncKind kind = SyncKind::barrier;  // of the node it waited at
  };

  // Keeps a reference to the trace.
  Arbiter(const RecordedTrace& trace, std::uint32_t copies, bool private_locks);

  // Threads come first, copy by copy, then tasks, copy by copy; within a copy in the order of their numbers.
  std::uint32_t threads() const { return threads_; }
  std::uint32_t tasks() const { return static_cast<std::uint32_t>(replicas_.size()) - threads_; }
  std::uint32_t stream_of(Replica replica) const { return replicas_[replica].stream; }
  std::uint32_t copy_of(Replica replica) const { return replicas_[replica].copy; }
  // Of a task: the replica that created it, and its taskgroup (none: in none).
  Replica creator_of(Replica task) const { return replicas_[task].creator; }
  std::uint32_t group_of(Replica task) const { return replicas_[task].group; }
  // Of a task created outside of parallel regions: its creator executes it at once if it can.
  bool is_undeferred(Replica task) const { return replicas_[task].team == none; }
  // The innermost open taskgroup of a replica.
  std::uint32_t open_group(Replica replica) const { return replicas_[replica].groups.back(); }
  // How many threads a team has in all copies; of a node about one.
  std::uint64_t team_size(const TraceNode& node) const;

  // The replica has come to a sync node: true if it goes on, false if it waits, even if it is released at
  // once. Throws SimulationError where the node makes no sense.
  bool arrive(Replica replica, const TraceNode& node);
  // A task, or a thread, is done.
  void finish(Replica replica);

  // The replicas released and the tasks that became ready since the last call.
  std::vector<Release> take_released() { return std::exchange(released_, {}); }
  std::vector<Replica> take_ready() { return std::exchange(ready_, {}); }

  // All threads and all created tasks have ended.
  bool finished() const { return unfinished_threads_ == 0 && unfinished_tasks_ == 0; }
  std::uint64_t tasks_without_stream() const { return tasks_without_stream_; }
  std::uint64_t unmatched_releases() const { return unmatched_releases_; }

  std::string name_of(Replica replica) const;
  // What a replica waits for and which others are missing; empty if it does not wait.
  std::string wait_of(Replica replica) const;

 private:
  enum class Stage : std::uint8_t { unborn, blocked, ready, done };
  struct ReplicaState {
    std::uint32_t stream = 0, copy = 0;
    // Of the node that it waits at.
    SyncKind kind = SyncKind::system_call;
    bool waiting = false;
    Stage stage = Stage::unborn;
    std::uint64_t object = 0, pc = 0;
    // As the creator of others.
    std::uint32_t children = 0;  // that are not done
    std::unique_ptr<DependenceTable> dependences{};
    std::vector<std::uint32_t> groups{};  // open ones, innermost last
    std::vector<std::uint32_t> teams{};   // that it is in, innermost last
    // As a task.
    Replica creator = none;
    std::uint32_t group = none, team = none;
    std::uint32_t missing = 0;  // tasks that must be done before
    std::vector<Replica> dependents{};
  };
  struct Team {
    std::vector<bool> forked;    // by copy
    std::vector<Replica> begun;  // masters too
    std::vector<Replica> masters;
    std::vector<Replica> at_begin;  // before the fork
    std::vector<Replica> at_barrier;
    std::vector<Replica> at_join;  // workers have gone on
    std::uint32_t tasks = 0;       // that are not done
  };
  struct Lock {
    Replica holder = none;  // none: it is free
    std::uint32_t depth = 0;
    std::deque<Replica> waiters;  // that were not released yet
  };
  struct Event {
    std::uint64_t posts = 0;
    std::vector<Replica> waiters;
  };
  struct Group {
    std::uint32_t tasks = 0;  // that are not done
    Replica owner = none;
  };

  bool waits(Replica replica, const TraceNode& node);
  void release(Replica replica);
  Team& team_of(Replica replica, const TraceNode& node);
  bool complete(std::uint32_t number, const std::vector<Replica>& arrived) const;
  std::uint64_t expected(std::uint32_t team) const {
    return std::uint64_t{trace_.teams[team].threads} * copies_;
  }
  bool fork(Replica replica, const TraceNode& node);
  bool begin(Replica replica, const TraceNode& node);
  bool join(Replica replica, const TraceNode& node);
  bool barrier(Replica replica, const TraceNode& node);
  void release_complete(std::uint32_t team);
  bool acquire(Replica replica, const TraceNode& node);
  void release_lock(Replica replica, const TraceNode& node);
  std::uint64_t lock_of(Replica replica, std::uint64_t object) const;
  void post(Replica replica, const TraceNode& node);
  bool await(Replica replica, const TraceNode& node);
  Event& event_of(Replica replica, std::uint64_t object);
  void create(Replica replica, const TraceNode& node);
  bool end_group(Replica replica, const TraceNode& node);
  [[noreturn]] void refuse(Replica replica, const TraceNode& node, const std::string& what) const;

  std::string missing_from(std::uint32_t team, std::vector<Replica> Team::* arrived) const;
  std::string title_of(std::uint32_t team) const;
  std::string doing(Replica replica) const;
  std::string unfinished_tasks(const std::string& before, Replica creator, std::uint32_t group,
                               std::uint32_t team) const;

  const RecordedTrace& trace_;
  const std::uint32_t copies_;
  const bool private_locks_;
  std::uint32_t threads_ = 0;
  std::uint32_t tasks_of_copy_ = 0;
  std::vector<ReplicaState> replicas_;
  std::unordered_map<std::uint64_t, std::uint32_t> task_numbers_;  // number -> order
  std::unordered_map<std::uint32_t, Team> teams_;                  // those that are open
  std::unordered_map<std::uint64_t, Lock> locks_;
  std::vector<std::unordered_map<std::uint64_t, Event>> events_;  // by copy and number
  std::vector<Group> groups_;
  std::vector<Release> released_;
  std::vector<Replica> ready_;
  std::uint32_t unfinished_threads_ = 0;
  std::uint64_t unfinished_tasks_ = 0;
  std::uint64_t tasks_without_stream_ = 0, unmatched_releases_ = 0;
};

}  // namespace manyscale::cpu
