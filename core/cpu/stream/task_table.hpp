// SPDX-License-Identifier: Apache-2.0
// Task table: the explicit OpenMP tasks that a program created, in order, with their dependences. It holds no
// times and does not hold who executed a task.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace manyscale::cpu {

// How a task depends on an address that others depend on, too.
struct TaskDependence {
  enum class Type : std::uint8_t { in, out, mutexinoutset, inoutset };
  std::uint64_t address = 0;
  Type type = Type::in;
};

// One explicit task that a program made.
struct Task {
  std::uint32_t region = 0;            // of kind task: its function
  std::uint16_t creator = 0;           // software thread
  std::uint64_t parent = 0;            // number + 1 of the task that made it; 0: an implicit one
  std::uint32_t first_dependence = 0;  // in TaskTable::dependences
  std::uint32_t dependence_count = 0;
};

// All tasks of a run in the order of their creation, up to a limit; the numbers go on beyond it.
class TaskTable {
 public:
  static constexpr std::size_t limit = 1 << 22;

  std::uint64_t add(Task task, const std::vector<TaskDependence>& dependences);
  const std::vector<Task>& tasks() const { return tasks_; }
  const std::vector<TaskDependence>& dependences() const { return dependences_; }
  std::uint64_t created() const { return created_; }

 private:
  std::vector<Task> tasks_;
  std::vector<TaskDependence> dependences_;
  std::uint64_t created_ = 0;
};

}  // namespace manyscale::cpu
