// SPDX-License-Identifier: Apache-2.0
// Decides who may go on where the threads and tasks of a recorded trace meet: parallel regions, barriers,
// locks, events, task dependences, taskwait. It knows the order of things only; what they cost and which core
// does them is the business of the feed.
//
// A strand is one copy of a stream: with one copy there are as many strands as streams. Copies of a team of
// threads are one larger team: its barriers wait for all of them. Threads that the program made itself wait
// for those of their own copy. Locks go to who comes first, not to who had them first in the recording: who
// waits for one is told of its release, and tries again when it is there; others may have it by then.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cpu/feed/recorded_trace.hpp"
#include "cpu/feed/task_graph.hpp"

namespace manyscale::cpu {

class Arbiter {
 public:
  using Strand = std::uint32_t;
  static constexpr std::uint32_t none = ~0u;

  // A strand that waited and goes on; from a lock, to arrive again.
  struct Release {
    Strand strand = 0;
    SyncKind kind = SyncKind::barrier;  // of the node it waited at
  };

  // Keeps a reference to the trace.
  Arbiter(const RecordedTrace& trace, std::uint32_t copies, bool private_locks);

  // Threads come first, copy by copy, then tasks, copy by copy; within a copy in the order of their numbers.
  std::uint32_t threads() const { return threads_; }
  std::uint32_t tasks() const { return static_cast<std::uint32_t>(strands_.size()) - threads_; }
  std::uint32_t stream_of(Strand strand) const { return strands_[strand].stream; }
  std::uint32_t copy_of(Strand strand) const { return strands_[strand].copy; }
  // Of a task: the strand that made it, and the taskgroup that it is in (none: in none).
  Strand creator_of(Strand task) const { return strands_[task].creator; }
  std::uint32_t group_of(Strand task) const { return strands_[task].group; }
  // Of a task made outside of parallel regions: its creator executes it at once if it can.
  bool is_undeferred(Strand task) const { return strands_[task].team == none; }
  // The innermost open taskgroup of a strand.
  std::uint32_t open_group(Strand strand) const { return strands_[strand].groups.back(); }
  // How many threads a team has in all copies; of a node about one.
  std::uint64_t team_size(const Record& node) const;

  // The strand has come to a sync node: true if it goes on, false if it waits, be it that it is released
  // at once. Throws SimulationError where the node makes no sense.
  bool arrive(Strand strand, const Record& node);
  // A task, or a thread, is done.
  void finish(Strand strand);

  // What followed from all this since it was taken the last time.
  std::vector<Release> take_released() { return std::exchange(released_, {}); }
  std::vector<Strand> take_ready() { return std::exchange(ready_, {}); }

  // All threads have ended, and all tasks that were made.
  bool finished() const { return unfinished_threads_ == 0 && unfinished_tasks_ == 0; }
  std::uint64_t tasks_without_stream() const { return tasks_without_stream_; }
  std::uint64_t unmatched_releases() const { return unmatched_releases_; }

  std::string name_of(Strand strand) const;
  // What a strand waits for, and who would have to act; empty if it does not wait.
  std::string wait_of(Strand strand) const;

 private:
  enum class Stage : std::uint8_t { unborn, blocked, ready, done };
  struct StrandState {
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
    Strand creator = none;
    std::uint32_t group = none, team = none;
    std::uint32_t missing = 0;  // tasks that must be done before
    std::vector<Strand> dependents{};
  };
  struct Team {
    std::vector<bool> forked;   // by copy
    std::vector<Strand> begun;  // masters too
    std::vector<Strand> masters;
    std::vector<Strand> at_begin;  // before the fork
    std::vector<Strand> at_barrier;
    std::vector<Strand> at_join;  // workers have gone on
    std::uint32_t tasks = 0;      // that are not done
  };
  struct Lock {
    Strand holder = none;  // none: it is free
    std::uint32_t depth = 0;
    std::deque<Strand> waiters;  // that were not told of a release
  };
  struct Event {
    std::uint64_t posts = 0;
    std::vector<Strand> waiters;
  };
  struct Group {
    std::uint32_t tasks = 0;  // that are not done
    Strand owner = none;
  };

  bool waits(Strand strand, const Record& node);
  void release(Strand strand);
  Team& team_of(Strand strand, const Record& node);
  bool complete(std::uint32_t number, const std::vector<Strand>& arrived) const;
  std::uint64_t expected(std::uint32_t team) const {
    return std::uint64_t{trace_.teams[team].threads} * copies_;
  }
  bool fork(Strand strand, const Record& node);
  bool begin(Strand strand, const Record& node);
  bool join(Strand strand, const Record& node);
  bool barrier(Strand strand, const Record& node);
  void look_again(std::uint32_t team);
  bool acquire(Strand strand, const Record& node);
  void release_lock(Strand strand, const Record& node);
  std::uint64_t lock_of(Strand strand, std::uint64_t object) const;
  void post(Strand strand, const Record& node);
  bool await(Strand strand, const Record& node);
  Event& event_of(Strand strand, std::uint64_t object);
  void create(Strand strand, const Record& node);
  bool end_group(Strand strand, const Record& node);
  [[noreturn]] void refuse(Strand strand, const Record& node, const std::string& what) const;

  std::string missing_from(std::uint32_t team, std::vector<Strand> Team::* arrived) const;
  std::string title_of(std::uint32_t team) const;
  std::string doing(Strand strand) const;
  std::string unfinished_tasks(const std::string& before, Strand creator, std::uint32_t group,
                               std::uint32_t team) const;

  const RecordedTrace& trace_;
  const std::uint32_t copies_;
  const bool private_locks_;
  std::uint32_t threads_ = 0;
  std::uint32_t tasks_of_copy_ = 0;
  std::vector<StrandState> strands_;
  std::unordered_map<std::uint64_t, std::uint32_t> task_numbers_;  // number -> order
  std::unordered_map<std::uint32_t, Team> teams_;                  // those that are open
  std::unordered_map<std::uint64_t, Lock> locks_;
  std::vector<std::unordered_map<std::uint64_t, Event>> events_;  // by copy and number
  std::vector<Group> groups_;
  std::vector<Release> released_;
  std::vector<Strand> ready_;
  std::uint32_t unfinished_threads_ = 0;
  std::uint64_t unfinished_tasks_ = 0;
  std::uint64_t tasks_without_stream_ = 0, unmatched_releases_ = 0;
};

}  // namespace manyscale::cpu
