// SPDX-License-Identifier: Apache-2.0
// Task scheduler: the ready tasks of a replay in one pool or one per core, and the policy by which a core
// takes its next one. A core that waits for certain tasks takes only those. Latencies are the replay
// source's.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cpu/stream/task_table.hpp"

namespace manyscale::cpu {

// What the policies use of a task.
struct TaskInfo {
  std::vector<TaskDependence> dependences{};
  std::uint64_t remaining_path = 0;  // of critical_path: the longest goes first
  std::uint32_t core = 0;            // of task2core and recorded: where it goes
  std::uint64_t position = 0;        // … and its turn there, among those that are ready
};

class TaskScheduler {
 public:
  // Numbers of tasks: those of copy 0 in the order of their infos, then those of copy 1, and so on.
  using Task = std::uint32_t;
  // Which tasks a core may take.
  enum class Scope : std::uint8_t { any, children, group };
  struct Choice {
    Task task = 0;
    bool stolen = false;  // it was scheduled to another core
  };

  // Throws std::invalid_argument for an unknown kind.
  TaskScheduler(const std::string& policy, std::uint32_t cores, std::uint32_t copies,
                std::vector<TaskInfo> infos);

  // This task may run from now on, because of an event on this core. Returns the core it is scheduled to.
  std::uint32_t add(Task task, std::uint32_t creator, std::uint32_t group, std::uint32_t core);
  // The task that a core executes next; `subject` is the creator or the group where the scope is that.
  std::optional<Choice> take(std::uint32_t core, Scope scope, std::uint32_t subject = 0);
  std::size_t size() const { return ready_.size(); }

 private:
  enum class Policy : std::uint8_t { fifo, work_stealing, locality, critical_path, pinned };
  // Ordered by a key; what is equal by number.
  using Pool = std::set<std::pair<std::uint64_t, Task>>;
  struct Ready {
    std::uint64_t key = 0;
    std::uint32_t home = 0;  // pool
    std::uint32_t creator = 0, group = 0;
  };

  static Policy policy_named(const std::string& name);
  const TaskInfo& info(Task task) const { return infos_[task % infos_.size()]; }
  std::uint32_t copy_of(Task task) const { return task / static_cast<std::uint32_t>(infos_.size()); }
  std::uint32_t home_of(Task task, std::uint32_t core) const;
  std::uint32_t nearest(Task task, std::uint32_t core) const;
  std::uint64_t address_of(const TaskDependence& dependence, Task task) const;
  std::uint64_t key_of(Task task);
  std::optional<Task> first_of(const Pool& pool, bool own) const;
  void remove(Task task);
  void touch(Task task, std::uint32_t core);

  const Policy policy_;
  const std::uint32_t cores_, copies_;
  const std::vector<TaskInfo> infos_;
  std::uint64_t sequence_ = 0;
  std::vector<Pool> pools_;                           // one, or one for each core
  std::unordered_map<std::uint32_t, Pool> families_;  // by creator
  std::unordered_map<std::uint32_t, Pool> groups_;
  std::unordered_map<Task, Ready> ready_;
  std::unordered_map<std::uint64_t, std::uint32_t> last_touched_;  // of locality: core by address
};

}  // namespace manyscale::cpu
