// SPDX-License-Identifier: Apache-2.0
#include "cpu/stream/task_table.hpp"

namespace manyscale::cpu {

std::uint64_t TaskTable::add(Task task, const std::vector<TaskDependence>& dependences) {
  if (tasks_.size() < limit && dependences_.size() + dependences.size() <= limit) {
    task.first_dependence = static_cast<std::uint32_t>(dependences_.size());
    task.dependence_count = static_cast<std::uint32_t>(dependences.size());
    dependences_.insert(dependences_.end(), dependences.begin(), dependences.end());
    // A table with a hole would give later tasks another's number.
    if (tasks_.size() == created_) tasks_.push_back(task);
  }
  return created_++;
}

}  // namespace manyscale::cpu
