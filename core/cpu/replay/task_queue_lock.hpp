// SPDX-License-Identifier: Apache-2.0
// Task queue lock: the lock of libgomp's one task queue, as a time from which on the queue is free. It models
// the transfer of the queue between cores and the failed dequeues of idle cores, not the order of waiters.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>

#include "cpu/replay/replay_spec.hpp"

namespace manyscale::cpu {

class TaskQueueLock {
 public:
  explicit TaskQueueLock(const ReplaySourceSpec& spec)
      : transfer_(spec.queue_latency),
        failed_dequeue_(spec.failed_dequeue_latency),
        contention_(spec.failed_dequeue_contention_latency) {}

  // A core adds or takes a task; returns the time until it has done so.
  Time use(std::uint32_t core, Time now) {
    if (!has_latency()) return 0;
    const std::uint32_t last = std::exchange(last_core_, core);
    free_ = std::max(free_, now);
    if (last != core && last != none) free_ += transfer_;
    return free_ - now;
  }

  // A task became ready: each idle core takes the lock once to look for it. The more of them poll the lock,
  // the longer each takes. Cores that still wait for the lock from the task before do not come twice.
  void add_failed_dequeues(Time idle_cores, Time now) {
    if (!has_latency()) return;
    const Time all = idle_cores * (failed_dequeue_ + contention_ * std::max<Time>(0, idle_cores - 1));
    const Time waiting = std::max<Time>(0, failed_dequeues_end_ - now);
    const Time added = std::max<Time>(0, all - waiting);
    free_ = std::max(free_, now) + added;
    failed_dequeues_end_ = now + waiting + added;
  }

 private:
  static constexpr std::uint32_t none = ~0u;

  bool has_latency() const { return transfer_ > 0 || failed_dequeue_ > 0 || contention_ > 0; }

  Time transfer_, failed_dequeue_, contention_;
  Time free_ = 0;                   // no core holds the lock from then on
  std::uint32_t last_core_ = none;  // that used the queue
  Time failed_dequeues_end_ = 0;
};

}  // namespace manyscale::cpu
