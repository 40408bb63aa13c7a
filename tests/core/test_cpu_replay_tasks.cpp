// SPDX-License-Identifier: Apache-2.0
// Replay of tasks by all schedulers: order by dependences, closed forms of simple graphs, bounds of random
// ones, and the same result on any number of host threads.
#include <map>

#include "engine/random.hpp"
#include "test_cpu_replay.hpp"

using namespace manyscale;
using namespace manyscale::cpu;
using namespace manyscale::cpu::test;

namespace {

using Dependence = TaskDependence::Type;

const std::vector<std::string> dynamic_schedulers{"fifo", "work_stealing", "locality", "critical_path"};

struct WrittenTask {
  std::size_t cycles = 0;
  std::vector<TaskDependence> dependences{};
};

// One thread makes these tasks and waits for them.
WrittenTrace with_tasks(const std::vector<WrittenTask>& tasks, SyncKind wait = SyncKind::taskwait) {
  WrittenTrace trace;
  trace.add_team(1);
  Script script;
  script.sync(SyncKind::fork);
  if (wait == SyncKind::taskgroup_end) script.sync(SyncKind::taskgroup_begin);
  for (std::size_t i = 0; i < tasks.size(); ++i) script.sync(SyncKind::task_create, i);
  if (wait != SyncKind::join) script.sync(wait);
  trace.add_thread(script.sync(SyncKind::join).sync(SyncKind::thread_end));
  for (std::size_t i = 0; i < tasks.size(); ++i)
    trace.add_task(i, Script().work(tasks[i].cycles), tasks[i].dependences);
  return trace;
}

std::function<void(ReplaySourceSpec&)> scheduled_by(const std::string& scheduler) {
  return [=](ReplaySourceSpec& spec) { spec.scheduler = scheduler; };
}

Replayed play(const WrittenTrace& trace, std::int64_t cores, const std::string& scheduler) {
  const Replayed replayed = replay(trace, cores, scheduled_by(scheduler));
  check_finished(replayed, scheduler);
  return replayed;
}

// k equal tasks on p cores take as long as the core that gets most: ceil(k / p) tasks.
TEST(independent_tasks) {
  for (const std::string& scheduler : dynamic_schedulers) {
    for (const SyncKind wait :
         {SyncKind::taskwait, SyncKind::taskgroup_end, SyncKind::barrier, SyncKind::join}) {
      for (const std::int64_t cores : {1, 3, 8}) {
        const auto time = [&](std::size_t cycles) {
          const Replayed replayed =
              play(with_tasks(std::vector<WrittenTask>(8, {cycles}), wait), cores, scheduler);
          check_equal(replayed.value("trace", "tasks"), 8, "all tasks are executed");
          check_equal(static_cast<std::int64_t>(replayed.tasks.size()), 8, "and known");
          return replayed.time();
        };
        // The maker of the tasks is late by the time it takes to make them.
        const std::int64_t rounds = (8 + cores - 1) / cores;
        check_equal(time(4000) - time(3000), rounds * 1000,
                    scheduler + ": rounds on " + std::to_string(cores) + " cores");
      }
    }
  }
}

// Tasks that each need the one before take their sum on any number of cores.
TEST(chain_of_tasks) {
  for (const std::string& scheduler : dynamic_schedulers) {
    const auto time = [&](std::size_t cycles) {
      return play(with_tasks(std::vector<WrittenTask>(6, {cycles, {{0x100, Dependence::out}}})), 4, scheduler)
          .time();
    };
    check_equal(time(1500) - time(1000), 6 * 500, scheduler + ": a chain");
  }
}

// A source, k tasks side by side, a sink: three long on k cores.
TEST(diamond) {
  for (const std::string& scheduler : dynamic_schedulers) {
    const auto time = [&](std::size_t ends, std::size_t middle) {
      std::vector<WrittenTask> tasks{{ends, {{0x100, Dependence::out}}}};
      for (std::uint64_t i = 0; i < 4; ++i)
        tasks.push_back({middle, {{0x100, Dependence::in}, {0x200 + i, Dependence::out}}});
      tasks.push_back({ends, {{0x100, Dependence::out}}});
      return play(with_tasks(tasks), 4, scheduler).time();
    };
    const std::int64_t base = time(1000, 1000);
    check_equal(time(1500, 1000) - base, 2 * 500, scheduler + ": source and sink are on the path");
    check_equal(time(1000, 1500) - base, 500, scheduler + ": the middle is done side by side");
  }
}

// The order that OpenMP asks for, found the slow way: does task b have to wait for a?
bool must_wait(const std::vector<WrittenTask>& tasks, std::size_t a, std::size_t b) {
  for (const TaskDependence& earlier : tasks[a].dependences) {
    for (const TaskDependence& later : tasks[b].dependences) {
      const bool side_by_side = earlier.type == later.type &&
                                (earlier.type == Dependence::in || earlier.type == Dependence::inoutset);
      if (earlier.address == later.address && !side_by_side) return true;
    }
  }
  return false;
}

std::vector<WrittenTask> random_tasks(Random& random, std::size_t count) {
  std::vector<WrittenTask> tasks;
  for (std::size_t i = 0; i < count; ++i) {
    WrittenTask task{200 + random.next() % 2000, {}};
    for (std::uint64_t addresses = random.next() % 3, k = 0; k < addresses; ++k)
      task.dependences.push_back({random.next() % 8 * 64 + k, static_cast<Dependence>(random.next() % 4)});
    tasks.push_back(task);
  }
  return tasks;
}

// T >= max(T1 / p, Tinf), and no worse than both together; whatever has to wait does.
TEST(random_graphs) {
  Random random(1, 2);
  for (int round = 0; round < 3; ++round) {
    const std::vector<WrittenTask> tasks = random_tasks(random, 40);
    const WrittenTrace trace = with_tasks(tasks);
    std::int64_t work = 0, path = 0;
    std::size_t deepest = 0;
    std::vector<std::int64_t> until(tasks.size());
    std::vector<std::size_t> depth(tasks.size(), 1);
    for (std::size_t b = 0; b < tasks.size(); ++b) {
      for (std::size_t a = 0; a < b; ++a) {
        if (!must_wait(tasks, a, b)) continue;
        until[b] = std::max(until[b], until[a]);
        depth[b] = std::max(depth[b], depth[a] + 1);
      }
      until[b] += static_cast<std::int64_t>(tasks[b].cycles);
      work += static_cast<std::int64_t>(tasks[b].cycles);
      path = std::max(path, until[b]);
      deepest = std::max(deepest, depth[b]);
    }
    const std::int64_t alone = play(trace, 1, "fifo").time();
    check_between(alone, work, work + 60 * 80, "one core does all the work");
    for (const std::string& scheduler : dynamic_schedulers) {
      for (const std::int64_t cores : {2, 5}) {
        const Replayed replayed = play(trace, cores, scheduler);
        const std::int64_t least = std::max((work + cores - 1) / cores, path);
        const std::int64_t most = alone / cores + path + static_cast<std::int64_t>(deepest) * 60 + 40 * 60;
        check_between(replayed.time(), least, most, scheduler + ": max(T1/p, Tinf) <= T <= T1/p + Tinf");
        std::map<std::uint64_t, ReplaySource::TaskRun> runs;
        for (const ReplaySource::TaskRun& run : replayed.tasks) runs[run.task] = run;
        check_equal(static_cast<std::int64_t>(runs.size()), 40, "each task is executed once");
        for (std::size_t b = 0; b < tasks.size(); ++b) {
          for (std::size_t a = 0; a < b; ++a) {
            if (must_wait(tasks, a, b)) check(runs[b].begin >= runs[a].end, scheduler + ": order");
          }
        }
      }
    }
  }
}

// The longest way first: two short tasks in front of a long chain would delay it.
TEST(critical_path_first) {
  std::vector<WrittenTask> tasks(4, {3000, {}});
  for (int i = 0; i < 4; ++i) tasks.push_back({3000, {{0x100, Dependence::out}}});
  const std::int64_t fifo = play(with_tasks(tasks), 2, "fifo").time();
  const std::int64_t longest = play(with_tasks(tasks), 2, "critical_path").time();
  check_between(longest, 12000, 12600, "the chain and the others side by side");
  check(fifo > longest + 2500, "first come, first served, begins the chain too late");
}

// Tasks go where their data is: two chains, each on its core.
TEST(locality) {
  std::vector<WrittenTask> tasks;
  for (int i = 0; i < 12; ++i) tasks.push_back({2000, {{0x100 + i % 3 * 64u, Dependence::out}}});
  const Replayed replayed = play(with_tasks(tasks), 3, "locality");
  std::map<std::uint64_t, std::uint32_t> core;
  std::size_t moved = 0;
  for (const ReplaySource::TaskRun& run : replayed.tasks) core[run.task] = run.core;
  for (std::uint64_t i = 3; i < 12; ++i) moved += core[i] != core[i - 3];
  check_equal(static_cast<std::int64_t>(moved), 0, "each chain stays on its core");
}

// A list says where tasks run and which of those that may run goes first.
TEST(assignments) {
  const WrittenTrace trace = with_tasks(std::vector<WrittenTask>(4, {2000}));
  const auto with = [&](const std::vector<TaskAssignment>& list) {
    const Replayed replayed = replay(trace, 3, scheduled_by("task2core"), 1, list);
    check_finished(replayed, "task2core");
    return replayed;
  };
  const Replayed replayed = with({{3, 1}, {2, 1}, {0, 2}, {1, 1}});
  std::vector<std::uint64_t> order;
  for (const ReplaySource::TaskRun& run : replayed.tasks) {
    check_equal(run.core, run.task == 0 ? 2 : 1, "the core of task " + std::to_string(run.task));
    if (run.core == 1) order.push_back(run.task);
  }
  // Task 1 was there first and began; then those that the list names first.
  check(order == std::vector<std::uint64_t>{1, 3, 2}, "in the order of the list");
  const auto refusal = [&](const std::vector<TaskAssignment>& list) {
    try {
      with(list);
    } catch (const SimulationError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  check_says(refusal({{9, 0}}), "the trace has no task 9");
  check_says(refusal({{0, 3}}), "there are 3 cores");
  check_says(refusal({{0, 0}, {0, 1}}), "task 0 has two cores");
  check_says(refusal({{0, 0}, {1, 1}}), "task 2 has no core");
  try {
    play(trace, 2, "lifo");
    check(false, "an unknown scheduler is refused");
  } catch (const std::invalid_argument& error) {
    check_says(error.what(), "known: fifo, work_stealing");
  }
}

// Tasks that make tasks and wait for them; thieves pay.
WrittenTrace nested(std::size_t cycles) {
  WrittenTrace trace;
  trace.add_team(1);
  Script script;
  script.sync(SyncKind::fork).sync(SyncKind::task_create, 0).sync(SyncKind::join);
  trace.add_thread(script.sync(SyncKind::thread_end));
  for (std::uint64_t i = 0; i < 7; ++i) {
    Script body;
    body.work(cycles);
    if (i < 3) {
      body.sync(SyncKind::task_create, 2 * i + 1).sync(SyncKind::task_create, 2 * i + 2);
      body.sync(SyncKind::taskwait).work(cycles);
    }
    trace.add_task(i, body, {}, i == 0 ? 0 : (i - 1) / 2 + 1);
  }
  return trace;
}

TEST(nested_tasks) {
  for (const std::string& scheduler : dynamic_schedulers) {
    const auto time = [&](std::size_t cycles, std::int64_t cores) {
      return play(nested(cycles), cores, scheduler).time();
    };
    check_equal(time(1500, 1) - time(1000, 1), 10 * 500, scheduler + ": all work on one core");
    // A core whose task waits for its own tasks takes no others, so four cores are not enough.
    check_equal(time(1500, 8) - time(1000, 8), 5 * 500, scheduler + ": the depth of the tree on eight");
  }
  const auto stealing = [](Time latency) {
    return replay(nested(1000), 4, [=](ReplaySourceSpec& spec) {
      spec.scheduler = "work_stealing";
      spec.steal_latency = latency;
    });
  };
  const Replayed slow = stealing(400 * nanosecond);
  check(slow.value("trace", "stolen_tasks") >= 2, "tasks are stolen");
  check(slow.time() >= stealing(0).time() + 400, "which takes time");
}

// What making and beginning a task costs is on the way of each.
TEST(task_latencies) {
  const WrittenTrace trace = with_tasks(std::vector<WrittenTask>(6, {1000}));
  const auto time = [&](Time ReplaySourceSpec::* latency, Time value) {
    return replay(trace, 1, [&](ReplaySourceSpec& spec) { spec.*latency = value * nanosecond; }).time();
  };
  const auto cost = [&](Time ReplaySourceSpec::* latency) { return time(latency, 356) - time(latency, 100); };
  check_equal(cost(&ReplaySourceSpec::create_latency), 6 * 256, "six tasks are made");
  check_equal(cost(&ReplaySourceSpec::schedule_latency), 6 * 256, "six tasks are begun");
  check_equal(cost(&ReplaySourceSpec::taskwait_latency), 256, "one wait ends");
  check_equal(cost(&ReplaySourceSpec::queue_latency), 0, "a core is in nobody's way alone");
  check_equal(cost(&ReplaySourceSpec::failed_dequeue_latency), 0, "there is no core without work");
  check_equal(cost(&ReplaySourceSpec::worker_latency), 0, "and needs no other thread");
}

// What it takes to have tasks executed on more cores than the recording had threads.
TEST(more_cores_than_threads) {
  const auto cost = [](std::size_t tasks, std::int64_t cores, Time ReplaySourceSpec::* latency) {
    const WrittenTrace trace = with_tasks(std::vector<WrittenTask>(tasks, {1000}), SyncKind::join);
    const auto time = [&](Time value) {
      return replay(trace, cores, [&](ReplaySourceSpec& spec) { spec.*latency = value * nanosecond; }).time();
    };
    return time(356) - time(100);
  };
  check_equal(cost(4, 4, &ReplaySourceSpec::worker_latency), 3 * 256, "three more threads are made");
  check_equal(cost(1, 2, &ReplaySourceSpec::queue_latency), 256, "another core takes the task");
  check_equal(cost(4, 4, &ReplaySourceSpec::pool_latency), 256, "there are some for the first time");
  // The second task is made when those have asked who found the first one taken.
  check_equal(cost(2, 2, &ReplaySourceSpec::failed_dequeue_latency), 0, "no core is idle");
  check_equal(cost(2, 4, &ReplaySourceSpec::failed_dequeue_latency), 2 * 256, "two idle cores");
  check_equal(cost(2, 4, &ReplaySourceSpec::failed_dequeue_contention_latency), 2 * 256,
              "in each other's way");
  // Four cores take one each, one after the other; making them is held up, too, since others took some, and
  // so are their ends.
  check_between(cost(4, 4, &ReplaySourceSpec::queue_latency), 4 * 256, 12 * 256,
                "they are in each other's way");
}

// Outside of parallel regions a task is executed by its creator at once.
TEST(undeferred_tasks) {
  WrittenTrace trace;
  Script script;
  script.work(100).sync(SyncKind::task_create, 0).sync(SyncKind::task_create, 1).work(100);
  trace.add_thread(script.sync(SyncKind::thread_end));
  for (std::uint64_t i = 0; i < 2; ++i) trace.add_task(i, Script().work(1000), {{0x100, Dependence::out}});
  const Replayed replayed = play(trace, 4, "fifo");
  check_between(replayed.time(), 2200, 2500, "one after the other");
  for (const ReplaySource::TaskRun& run : replayed.tasks) check_equal(run.core, 0, "on the creator's core");
}

// Two copies of a program with tasks: twice the tasks, side by side.
TEST(copies_of_tasks) {
  const std::vector<WrittenTask> tasks(6, {1000, {{0x100, Dependence::out}}});
  for (const char* scheduler : {"fifo", "recorded", "locality"}) {
    const auto time = [&](std::int64_t copies) {
      const Replayed replayed = replay(with_tasks(tasks), copies, [&](ReplaySourceSpec& spec) {
        spec.copies = copies;
        spec.scheduler = scheduler;
      });
      check_finished(replayed, "copies");
      check_equal(replayed.value("trace", "tasks"), 6 * copies, "tasks of all copies");
      return replayed.time();
    };
    check_between(time(3) - time(1), 0, 120, "chains of copies do not wait for each other");
  }
}

TEST(deadlock) {
  WrittenTrace trace = with_tasks({{100}, {100}});
  trace.add_task(7, Script().sync(SyncKind::acquire, 0x40).work(500).sync(SyncKind::acquire, 0x50));
  trace.add_task(8, Script().sync(SyncKind::acquire, 0x50).work(500).sync(SyncKind::acquire, 0x40));
  trace.add_team(1);
  Script master;
  master.sync(SyncKind::fork, 1).sync(SyncKind::task_create, 7).sync(SyncKind::task_create, 8);
  trace.add_thread(master.sync(SyncKind::taskwait).sync(SyncKind::join, 1).sync(SyncKind::thread_end));
  const std::string text = diagnosis(replay(trace, 3));
  check_says(text, "waits for lock 0x50");
  check_says(text, "which task 8 holds");
  check_says(text, "thread 1 waits for tasks");
  check_says(text, "task 7 (waits at acquire), task 8 (waits at acquire)");
}

// Threads, locks, shared data and tasks together: the same to the bit on any number of host threads.
TEST(determinism) {
  Random random(3, 4);
  WrittenTrace trace;
  trace.add_team(4);
  const auto some_work = [&](Script& script) {
    for (std::uint64_t i = 0, count = 40 + random.next() % 60; i < count; ++i) {
      const std::uint64_t address = 1ull << 40 | random.next() % 512 * 64;
      script.add(random.next() % 3 == 0 ? store(address, 1) : load(address, 1)).work(random.next() % 8);
    }
  };
  const std::vector<WrittenTask> tasks = random_tasks(random, 30);
  for (std::uint64_t thread = 0; thread < 4; ++thread) {
    Script script;
    script.sync(thread == 0 ? SyncKind::fork : SyncKind::begin);
    for (int round = 0; round < 3; ++round) {
      some_work(script);
      script.sync(SyncKind::acquire, 0x80);
      some_work(script);
      script.sync(SyncKind::release, 0x80);
      if (thread == 0) {
        for (std::uint64_t i = 0; i < 10; ++i) script.sync(SyncKind::task_create, round * 10u + i);
      }
      script.sync(SyncKind::barrier);
    }
    trace.add_thread(script.sync(SyncKind::join).sync(SyncKind::thread_end));
  }
  for (std::uint64_t i = 0; i < tasks.size(); ++i) {
    Script body;
    some_work(body);
    trace.add_task(i, body, tasks[i].dependences);
  }
  for (const std::string& scheduler : dynamic_schedulers) {
    const auto run = [&](std::uint32_t threads) {
      return replay(
          trace, 8,
          [&](ReplaySourceSpec& spec) {
            spec.copies = 2;
            spec.scheduler = scheduler;
            spec.steal_latency = 20 * nanosecond;
          },
          threads);
    };
    const Replayed one = run(1);
    check_finished(one, scheduler);
    for (const std::uint32_t threads : {2u, 4u}) {
      const Replayed more = run(threads);
      check(more.report.now == one.report.now && more.rows.value == one.rows.value,
            scheduler + ": the same on " + std::to_string(threads) + " host threads");
    }
  }
}

}  // namespace
