// SPDX-License-Identifier: Apache-2.0
// Parameters and statistics of the replay of a recorded trace.
#pragma once
#include <cstdint>
#include <string>

#include "engine/spec.hpp"
#include "engine/statistics.hpp"
#include "engine/time.hpp"

namespace manyscale::cpu {

struct ReplaySourceSpec {
  std::int64_t cores = 1;
  std::int64_t run_ahead = 512;
  std::int64_t copies = 1;
  bool offset = true;
  bool private_locks = false;
  std::string scheduler = "fifo";
  Time fork_latency = 0;
  Time fork_thread_latency = 0;
  Time pool_latency = 0;
  Time worker_latency = 0;
  Time begin_latency = 0;
  Time join_latency = 0;
  Time barrier_latency = 0;
  Time barrier_thread_latency = 0;
  Time lock_latency = 0;
  Time handover_latency = 0;
  Time handover_least_latency = 0;
  Time unlock_latency = 0;
  Time create_latency = 0;
  Time schedule_latency = 0;
  Time steal_latency = 0;
  Time queue_latency = 0;
  Time failed_dequeue_latency = 0;
  Time failed_dequeue_contention_latency = 0;
  Time taskwait_latency = 0;
  Time thread_latency = 0;
  Time await_latency = 0;
  Time wake_latency = 0;
  Time system_call_latency = 200 * nanosecond;
  Time switch_latency = 1 * microsecond;
};

struct ReplaySourceStatistics {
  Counter records, blocks, forks, barriers, locks, lock_waits, tasks, stolen_tasks, taskwaits, awaits;
  Counter system_calls, context_switches, tasks_without_stream, unmatched_releases;
};

// How often a core came into each state, and how long it was in it.
struct CoreStateStatistics {
  Counter init, processing, stall, end, idle;
  Counter init_time, processing_time, stall_time, end_time, idle_time;
};

}  // namespace manyscale::cpu

namespace manyscale {

template <>
struct describe<cpu::ReplaySourceSpec> {
  using S = cpu::ReplaySourceSpec;
  static constexpr auto fields = std::tuple{
      Field<S, std::int64_t>{"cores", &S::cores, Unit::count, "cores that the trace is replayed on", 1, 4096},
      Field<S, std::int64_t>{"run_ahead", &S::run_ahead, Unit::count,
                             "records that the source may be ahead of a core", 16, 65536},
      Field<S, std::int64_t>{
          "copies", &S::copies, Unit::count,
          "copies of the recorded threads and tasks, which are replayed side by side, each on "
          "its part of the cores",
          1, 4096},
      Field<S, bool>{"offset", &S::offset, Unit::none,
                     "whether each copy has private data of its own; else all copies touch the same"},
      Field<S, bool>{"private_locks", &S::private_locks, Unit::none,
                     "whether each copy has locks of its own; else threads of all copies meet at them"},
      Field<S, std::string>{
          "scheduler", &S::scheduler, Unit::none,
          "task scheduling policy: fifo, work_stealing, locality (the core that last touched "
          "the data of the task's dependences), critical_path (the longest remaining path "
          "first), task2core (a given list) or recorded (as in the recording)"},
      Field<S, Time>{"fork_latency", &S::fork_latency, Unit::time,
                     "time the master takes to begin a parallel region", 0, 1e18},
      Field<S, Time>{"fork_thread_latency", &S::fork_thread_latency, Unit::time,
                     "further time of that for each other thread of the team", 0, 1e15},
      Field<S, Time>{"pool_latency", &S::pool_latency, Unit::time,
                     "further time of the first of them if there are cores without a thread of the recording",
                     0, 1e15},
      Field<S, Time>{"worker_latency", &S::worker_latency, Unit::time, "… and for each of these", 0, 1e15},
      Field<S, Time>{"begin_latency", &S::begin_latency, Unit::time,
                     "time from there until a worker does its first work", 0, 1e18},
      Field<S, Time>{"join_latency", &S::join_latency, Unit::time,
                     "time from the arrival of a team's last thread until its master goes on", 0, 1e18},
      Field<S, Time>{"barrier_latency", &S::barrier_latency, Unit::time,
                     "time from the last arrival at a barrier until all go on", 0, 1e18},
      Field<S, Time>{"barrier_thread_latency", &S::barrier_thread_latency, Unit::time,
                     "further time of that for each thread of the team", 0, 1e15},
      Field<S, Time>{"lock_latency", &S::lock_latency, Unit::time, "time to take a lock that is free", 0,
                     1e18},
      Field<S, Time>{"handover_latency", &S::handover_latency, Unit::time,
                     "time from the release of a lock until the one who waited for it goes on, on average", 0,
                     1e18},
      Field<S, Time>{"handover_least_latency", &S::handover_least_latency, Unit::time,
                     "the least of these times, which are spread evenly", 0, 1e18},
      Field<S, Time>{"unlock_latency", &S::unlock_latency, Unit::time,
                     "time until the one who released a lock goes on", 0, 1e18},
      Field<S, Time>{"create_latency", &S::create_latency, Unit::time,
                     "time to create a task; then it may run", 0, 1e18},
      Field<S, Time>{"schedule_latency", &S::schedule_latency, Unit::time,
                     "time from the choice of a task until its core executes it", 0, 1e18},
      Field<S, Time>{"steal_latency", &S::steal_latency, Unit::time,
                     "further time of that if the task was scheduled to another core", 0, 1e18},
      Field<S, Time>{
          "queue_latency", &S::queue_latency, Unit::time,
          "further time to enqueue or dequeue a task if another core used the queue last; no other core of "
          "the copy can do it meanwhile",
          0, 1e15},
      Field<S, Time>{"failed_dequeue_latency", &S::failed_dequeue_latency, Unit::time,
                     "further time of that for each idle core, whose attempt to dequeue a task fails", 0,
                     1e15},
      Field<S, Time>{"failed_dequeue_contention_latency", &S::failed_dequeue_contention_latency, Unit::time,
                     "further time of each failed dequeue for each other idle core that polls the lock", 0,
                     1e15},
      Field<S, Time>{"taskwait_latency", &S::taskwait_latency, Unit::time,
                     "time from the end of the last task waited for until the waiter goes on", 0, 1e18},
      Field<S, Time>{"thread_latency", &S::thread_latency, Unit::time,
                     "time from the creation of a thread until it does its first work", 0, 1e18},
      Field<S, Time>{"await_latency", &S::await_latency, Unit::time,
                     "time to find that what a thread waits for has happened", 0, 1e18},
      Field<S, Time>{"wake_latency", &S::wake_latency, Unit::time,
                     "time from what a thread waited for until it goes on", 0, 1e18},
      Field<S, Time>{"system_call_latency", &S::system_call_latency, Unit::time, "time of a system call", 0,
                     1e18},
      Field<S, Time>{"switch_latency", &S::switch_latency, Unit::time,
                     "time it takes a core to change from one thread to another", 0, 1e18}};
};

template <>
struct describe<cpu::ReplaySourceStatistics> {
  using S = cpu::ReplaySourceStatistics;
  static constexpr auto fields = std::tuple{
      Statistic<S, Counter>{"records", &S::records, "record", "records sent to the cores"},
      Statistic<S, Counter>{"blocks", &S::blocks, "block", "blocks of the trace decoded"},
      Statistic<S, Counter>{"forks", &S::forks, "region", "parallel regions begun"},
      Statistic<S, Counter>{"barriers", &S::barriers, "arrival", "arrivals at barriers"},
      Statistic<S, Counter>{"locks", &S::locks, "lock", "locks and critical sections entered"},
      Statistic<S, Counter>{"lock_waits", &S::lock_waits, "lock", "of them, those that had to be waited for"},
      Statistic<S, Counter>{"tasks", &S::tasks, "task", "tasks executed"},
      Statistic<S, Counter>{"stolen_tasks", &S::stolen_tasks, "task",
                            "of them, those executed by another core than the one they were scheduled to"},
      Statistic<S, Counter>{"taskwaits", &S::taskwaits, "wait", "ends of taskgroups, and taskwaits"},
      Statistic<S, Counter>{"awaits", &S::awaits, "wait",
                            "waits for threads that the program created itself"},
      Statistic<S, Counter>{"system_calls", &S::system_calls, "call", "system calls of the program"},
      Statistic<S, Counter>{"context_switches", &S::context_switches, "switch",
                            "changes from one thread of a core to another"},
      Statistic<S, Counter>{"tasks_without_stream", &S::tasks_without_stream, "task",
                            "tasks that were created but are not in the trace"},
      Statistic<S, Counter>{"unmatched_releases", &S::unmatched_releases, "lock",
                            "releases of locks that the releaser did not hold"}};
};

template <>
struct describe<cpu::CoreStateStatistics> {
  using S = cpu::CoreStateStatistics;
  static constexpr auto fields = std::tuple{
      Statistic<S, Counter>{"init", &S::init, "time",
                            "times that the core began a parallel region, created a task or began one"},
      Statistic<S, Counter>{"processing", &S::processing, "time", "times that the core went on executing"},
      Statistic<S, Counter>{"stall", &S::stall, "time", "times that the core had to wait for others"},
      Statistic<S, Counter>{"end", &S::end, "time", "times that the core was released"},
      Statistic<S, Counter>{"idle", &S::idle, "time", "times that the core ran out of work"},
      Statistic<S, Counter>{"init_time", &S::init_time, "fs", "time of beginning regions and tasks"},
      Statistic<S, Counter>{"processing_time", &S::processing_time, "fs", "time of executing"},
      Statistic<S, Counter>{"stall_time", &S::stall_time, "fs",
                            "time of waiting at barriers, locks, joins and for tasks"},
      Statistic<S, Counter>{"end_time", &S::end_time, "fs",
                            "time from the release of the core until it executes again, and of system calls"},
      Statistic<S, Counter>{"idle_time", &S::idle_time, "fs", "time without work"}};
};

}  // namespace manyscale
