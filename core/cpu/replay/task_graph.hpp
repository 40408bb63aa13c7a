// SPDX-License-Identifier: Apache-2.0
// The order that dependences put on tasks, as OpenMP defines it.
#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "cpu/stream/task_table.hpp"
#include "cpu/trace/recorder.hpp"

namespace manyscale::cpu {

// The tasks that one creator made, by the addresses that they depend on. Tasks that depend on an address in a
// way that lets them run side by side (all `in`, or all `inoutset`) are a set; each comes after all tasks of
// the set before its own. `mutexinoutset` is taken for `out`, as libgomp does.
class DependenceTable {
 public:
  // The creator's next task: calls after(earlier) for each one that must be done before it, perhaps again.
  template <class After>
  void add(std::uint32_t task, std::span<const TaskDependence> dependences, After&& after) {
    for (const TaskDependence& dependence : dependences) {
      Address& entry = addresses_[dependence.address];
      const bool joins =
          !entry.current.empty() && entry.type == dependence.type &&
          (dependence.type == TaskDependence::Type::in || dependence.type == TaskDependence::Type::inoutset);
      if (!joins) {
        entry.before.swap(entry.current);
        entry.current.clear();
        entry.type = dependence.type;
      }
      entry.current.push_back(task);
      for (const std::uint32_t earlier : entry.before) {
        if (earlier != task) after(earlier);
      }
    }
  }

 private:
  struct Address {
    TaskDependence::Type type = TaskDependence::Type::in;
    std::vector<std::uint32_t> current;  // the latest set
    std::vector<std::uint32_t> before;   // and the one before it
  };

  std::unordered_map<std::uint64_t, Address> addresses_;
};

// For each of these streams of tasks, in the order of creation: the instructions on the longest way from its
// beginning to the end of a task that depends on it or was made by it, and so on.
std::vector<std::uint64_t> remaining_paths(std::span<const StreamInfo* const> tasks);

}  // namespace manyscale::cpu
