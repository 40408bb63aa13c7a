// SPDX-License-Identifier: Apache-2.0
// Latencies of synchronisation in a replay: what each sync node costs, and how often each occurred.
#include <algorithm>
#include <utility>

#include "cpu/replay/replay_source.hpp"

namespace manyscale::cpu {

void ReplaySource::count(const TraceNode& node, bool goes_on) {
  switch (node.sync) {
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

Time ReplaySource::time_before(const TraceNode& node, std::uint32_t core) {
  switch (node.sync) {
    case SyncKind::fork: {
      const auto workers = static_cast<Time>(std::exchange(new_workers_[core / cores_of_copy()], 0));
      const auto threads =
          static_cast<Time>(std::max<std::uint64_t>(arbiter_->team_size(node) / spec_.copies, 1));
      return spec_.fork_latency + (workers > 0 ? spec_.pool_latency : 0) + spec_.worker_latency * workers +
             spec_.fork_thread_latency * (threads - 1);
    }
    case SyncKind::task_create:
      // While other cores are idle, libgomp calls the system to wake a thread that may sleep.
      return spec_.create_latency + task_queue(core).use(core, now()) +
             (spec_.queue_latency > 0 && idle_cores(core) > 0 ? spec_.system_call_latency : 0);
    default:
      return 0;
  }
}

Time ReplaySource::time_after(const TraceNode& node, bool waited) const {
  switch (node.sync) {
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

// From the release of a lock until a waiting thread tries to take it. The system wakes a thread that sleeps;
// a thread that is about to sleep sees the release first. Threads that spin race with others for the lock, so
// their times are spread.
Time ReplaySource::time_to_retry(Execution& execution) {
  if (execution.node.sleeps) {
    execution.acquire_time = 0;
    const Time entering = execution.waits_since + spec_.system_call_latency - now();
    return entering > 0 ? entering : spec_.wake_latency;
  }
  const Time least = std::min(spec_.handover_least_latency, spec_.handover_latency);
  const double part = static_cast<double>(++handovers_ * 0x9e3779b97f4a7c15u >> 11) * 0x1p-53;
  const auto spread = static_cast<Time>(part * 2 * static_cast<double>(spec_.handover_latency - least));
  execution.acquire_time = std::min(spec_.lock_latency, least + spread);
  return least + spread - execution.acquire_time;
}

// The idle cores of this core's copy.
Time ReplaySource::idle_cores(std::uint32_t core) const {
  const std::uint32_t first = core - core % cores_of_copy();
  return std::count_if(lanes_.begin() + first, lanes_.begin() + first + cores_of_copy(),
                       [](const auto& lane) { return lane->current == nullptr; });
}

}  // namespace manyscale::cpu
