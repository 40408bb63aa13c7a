// SPDX-License-Identifier: Apache-2.0
#include "cpu/replay/task_scheduler.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>

namespace manyscale::cpu {

TaskScheduler::Policy TaskScheduler::policy_named(const std::string& name) {
  static constexpr std::pair<std::string_view, Policy> known[] = {
      {"fifo", Policy::fifo},         {"work_stealing", Policy::work_stealing},
      {"locality", Policy::locality}, {"critical_path", Policy::critical_path},
      {"task2core", Policy::pinned},  {"recorded", Policy::pinned}};
  for (const auto& [each, policy] : known) {
    if (each == name) return policy;
  }
  throw std::invalid_argument("scheduler: there is no task scheduler '" + name +
                              "'; known: fifo, work_stealing, locality, critical_path, task2core, recorded");
}

TaskScheduler::TaskScheduler(const std::string& policy, std::uint32_t cores, std::uint32_t copies,
                             std::vector<TaskInfo> infos)
    : policy_(policy_named(policy)),
      cores_(cores),
      copies_(copies),
      infos_(std::move(infos)),
      pools_(policy_ == Policy::fifo || policy_ == Policy::critical_path ? 1 : cores) {}

std::uint32_t TaskScheduler::add(Task task, std::uint32_t creator, std::uint32_t group, std::uint32_t core) {
  const std::uint32_t home = home_of(task, core);
  const Ready ready{key_of(task), pools_.size() == 1 ? 0 : home, creator, group};
  const std::pair entry{ready.key, task};
  pools_[ready.home].insert(entry);
  families_[creator].insert(entry);
  groups_[group].insert(entry);
  ready_.emplace(task, ready);
  return home;
}

std::optional<TaskScheduler::Choice> TaskScheduler::take(std::uint32_t core, Scope scope,
                                                         std::uint32_t subject) {
  std::optional<Task> task;
  // A core with assigned tasks takes no others; while it waits for some of them it takes the next one.
  if (scope != Scope::any && policy_ != Policy::pinned) {
    auto& pools = scope == Scope::children ? families_ : groups_;
    if (const auto pool = pools.find(subject); pool != pools.end()) task = first_of(pool->second, true);
  } else if (pools_.size() == 1) {
    task = first_of(pools_[0], true);
  } else {
    task = first_of(pools_[core], true);
    for (std::uint32_t i = 1; i < cores_ && !task && policy_ != Policy::pinned; ++i)
      task = first_of(pools_[(core + i) % cores_], false);
  }
  if (!task) return std::nullopt;
  const bool stolen = pools_.size() > 1 && ready_.at(*task).home != core;
  remove(*task);
  touch(*task, core);
  return Choice{*task, stolen};
}

// The task to take from a pool, the core's own or another's: thieves take the oldest task, the owner the
// newest.
std::optional<TaskScheduler::Task> TaskScheduler::first_of(const Pool& pool, bool own) const {
  if (pool.empty()) return std::nullopt;
  return own && policy_ == Policy::work_stealing ? pool.rbegin()->second : pool.begin()->second;
}

void TaskScheduler::remove(Task task) {
  const auto found = ready_.find(task);
  const Ready& ready = found->second;
  const std::pair entry{ready.key, task};
  pools_[ready.home].erase(entry);
  const auto erase_from = [&](auto& pools, std::uint32_t subject) {
    const auto pool = pools.find(subject);
    pool->second.erase(entry);
    if (pool->second.empty()) pools.erase(pool);
  };
  erase_from(families_, ready.creator);
  erase_from(groups_, ready.group);
  ready_.erase(found);
}

std::uint64_t TaskScheduler::key_of(Task task) {
  if (policy_ == Policy::critical_path) return ~info(task).remaining_path;
  if (policy_ == Policy::pinned) return info(task).position;
  return sequence_++;
}

std::uint32_t TaskScheduler::home_of(Task task, std::uint32_t core) const {
  if (policy_ == Policy::locality) return nearest(task, core);
  if (policy_ != Policy::pinned) return core;
  const std::uint32_t cores_of_copy = cores_ / copies_;
  return copy_of(task) * cores_of_copy + info(task).core % cores_of_copy;
}

// The core that last touched most of the addresses that the task depends on; this one if none did.
std::uint32_t TaskScheduler::nearest(Task task, std::uint32_t core) const {
  std::map<std::uint32_t, std::size_t> touched;
  for (const TaskDependence& dependence : info(task).dependences) {
    const auto last = last_touched_.find(address_of(dependence, task));
    if (last != last_touched_.end()) ++touched[last->second];
  }
  const auto most = std::max_element(touched.begin(), touched.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == touched.end() ? core : most->first;
}

void TaskScheduler::touch(Task task, std::uint32_t core) {
  if (policy_ != Policy::locality) return;
  for (const TaskDependence& dependence : info(task).dependences)
    last_touched_[address_of(dependence, task)] = core;
}

// Copies have addresses of their own.
std::uint64_t TaskScheduler::address_of(const TaskDependence& dependence, Task task) const {
  return dependence.address + (static_cast<std::uint64_t>(copy_of(task)) << 48);
}

}  // namespace manyscale::cpu
