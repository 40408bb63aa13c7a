// SPDX-License-Identifier: Apache-2.0
// Replay of threads against closed forms: parallel regions, barriers, locks, copies; and what is said when a
// trace cannot go on.
#include "test_cpu_replay.hpp"
#include "engine/random.hpp"

using namespace manyscale;
using namespace manyscale::cpu;
using namespace manyscale::cpu::test;

namespace {

// A team whose threads work so many cycles each, meet at a barrier, and go on for some.
WrittenTrace team_with_barrier(const std::vector<std::size_t>& cycles, std::size_t after = 100) {
  WrittenTrace trace;
  trace.add_team(static_cast<std::uint32_t>(cycles.size()));
  for (std::size_t i = 0; i < cycles.size(); ++i) {
    Script script;
    script.sync(i == 0 ? SyncKind::fork : SyncKind::begin);
    script.work(cycles[i]).sync(SyncKind::barrier).work(after).sync(SyncKind::join);
    trace.add_thread(script.sync(SyncKind::thread_end));
  }
  return trace;
}

// What 250 ns more of a latency add to a replay. A core takes some cycles itself to come to rest and go on,
// which are hidden behind the first part of a latency.
std::int64_t cost_of(const WrittenTrace& trace, std::int64_t cores, Time ReplaySourceSpec::* latency) {
  const auto time = [&](Time nanoseconds) {
    return replay(trace, cores, [&](ReplaySourceSpec& spec) { spec.*latency = nanoseconds * nanosecond; })
        .time();
  };
  return time(350) - time(100);
}

// One thread without synchronisation: as long as on a core that is fed directly.
TEST(one_thread) {
  Script script;
  script.work(5000);
  WrittenTrace trace;
  trace.add_thread(Script(script).sync(SyncKind::thread_end));
  const Replayed replayed = replay(trace, 1);
  check_finished(replayed, "one thread");
  const Ran ran = run(plain_core(), script.records());
  check_between(replayed.time() - ran.cycles, 0, 20, "one thread takes as long as without a trace");
  check_equal(replayed.value("core[0]", "instructions"), 5001, "all are executed");
  check_equal(replayed.value("trace", "blocks"), 17, "each block is decoded once");
}

// A region takes as long as its slowest thread; the others wait for the difference; all go on together.
TEST(barriers) {
  const Replayed base = replay(team_with_barrier({1000, 3000, 2000, 500}), 4);
  check_finished(base, "barrier");
  check_equal(replay(team_with_barrier({1000, 3700, 2000, 500}), 4).time() - base.time(), 700,
              "the slowest thread counts");
  check_equal(replay(team_with_barrier({1700, 3000, 2700, 1200}), 4).time(), base.time(), "others do not");
  check_equal(base.spent(2, "stall") - base.spent(1, "stall"), 1000, "the third waits for the second");
  check_equal(base.spent(3, "stall") - base.spent(2, "stall"), 1500, "the fourth waits longer");
  check_equal(base.value("trace", "barriers"), 4, "arrivals");
  const auto cost = [](auto member) {
    return cost_of(team_with_barrier({1000, 3000, 2000, 500}), 4, member);
  };
  check_equal(cost(&ReplaySourceSpec::barrier_latency), 250, "slowest + overhead");
  check_equal(cost(&ReplaySourceSpec::barrier_thread_latency), 4 * 250, "… of four threads");
  check_equal(cost(&ReplaySourceSpec::fork_latency), 250, "fork");
  check_equal(cost(&ReplaySourceSpec::fork_thread_latency), 3 * 250, "fork of three others");
  check_equal(cost(&ReplaySourceSpec::begin_latency), 250, "begin");
  check_equal(cost(&ReplaySourceSpec::join_latency), 250, "join");
}

// Each core is in one state at each time.
TEST(states) {
  const Replayed replayed =
      replay(team_with_barrier({1000, 3000}), 4, [](ReplaySourceSpec& spec) { spec.fork_latency = 90000; });
  for (std::size_t core = 0; core < 4; ++core) {
    std::int64_t sum = 0;
    for (const char* state : {"init", "processing", "stall", "end", "idle"})
      sum += replayed.value("trace", "core[" + std::to_string(core) + "]." + state + "_time");
    check_equal(sum, replayed.report.now, "the states add up to the run");
  }
  check(replayed.spent(1, "processing") >= 3100, "the second core works");
  check(replayed.spent(2, "idle") == replayed.time(), "the third core has nothing to do");
  check_equal(replayed.value("trace", "core[0].init"), 1, "one region begins on the master's core");
  check(replayed.value("trace", "core[0].stall") >= 1, "its master waits");
  check(replayed.value("core[2]", "cpi.idle") > 0, "a core without a thread is idle");
  check_equal(replayed.value("core[1]", "cpi.sleeping"), 0, "… and so is one before its first region");
}

// More threads than cores: they take turns where they wait.
TEST(threads_share_cores) {
  const std::vector<std::size_t> cycles{1000, 3000, 2000, 500};
  const auto time = [&](std::size_t more) {
    std::vector<std::size_t> longer = cycles;
    for (std::size_t& each : longer) each += more;
    const Replayed replayed =
        replay(team_with_barrier(longer), 1, [](ReplaySourceSpec& spec) { spec.switch_latency = 0; });
    check_finished(replayed, "four threads on one core");
    return replayed.time();
  };
  check_equal(time(400) - time(0), 1600, "the work of four threads on one core");
  const auto switching = [&](Time latency) {
    return replay(team_with_barrier(cycles), 2,
                  [&](ReplaySourceSpec& spec) { spec.switch_latency = latency; });
  };
  const Replayed quick = switching(0), slow = switching(5 * microsecond);
  check(quick.value("trace", "context_switches") >= 4, "threads change");
  check(slow.time() > quick.time() + 5000, "which takes time");
}

// k threads, each of which holds the same lock for n cycles.
WrittenTrace convoy(std::size_t threads, std::size_t cycles, std::size_t stagger = 0) {
  WrittenTrace trace;
  trace.add_team(static_cast<std::uint32_t>(threads));
  for (std::size_t i = 0; i < threads; ++i) {
    Script script;
    script.sync(i == 0 ? SyncKind::fork : SyncKind::begin).work(100 + stagger * (threads - i));
    script.sync(SyncKind::acquire, 0x1000).work(cycles).sync(SyncKind::release, 0x1000);
    trace.add_thread(script.sync(SyncKind::join).sync(SyncKind::thread_end));
  }
  return trace;
}

TEST(locks) {
  const Replayed base = replay(convoy(4, 1000), 4);
  check_finished(base, "convoy");
  check_equal(replay(convoy(4, 1500), 4).time() - base.time(), 4 * 500, "one after the other");
  const std::int64_t two = replay(convoy(2, 1000), 2).time(), three = replay(convoy(3, 1000), 3).time();
  check_equal(base.time() - three, three - two, "each further thread adds the same");
  check_between(three - two, 1000, 1030, "… its time in the section and the way of the news");
  const auto handed_over = [](Time latency, Time least) {
    return replay(convoy(4, 1000), 4, [&](ReplaySourceSpec& spec) {
      spec.handover_latency = latency * nanosecond;
      spec.handover_least_latency = least * nanosecond;
    });
  };
  check_equal(handed_over(250, 250).time() - base.time(), 3 * 250, "three handovers");
  check_between(handed_over(250, 150).time() - base.time(), 3 * 150, 3 * 350, "… that differ");
  check_equal(cost_of(convoy(4, 1000), 4, &ReplaySourceSpec::lock_latency), 250, "the first takes it");
  check_equal(cost_of(convoy(4, 1000), 4, &ReplaySourceSpec::unlock_latency), 250, "the last gives it");
  check_equal(base.value("trace", "lock_waits"), 3, "three wait");

  // Who comes first gets it, whatever the recording did: the last thread comes first here.
  const Replayed staggered = replay(convoy(3, 1000, 200), 3);
  check_equal(staggered.value("trace", "lock_waits"), 2, "two wait");
  const std::int64_t wait = staggered.spent(1, "stall");
  check_between(wait, 800, 840, "the second waits for the third but 200 cycles");
}

// A thread holds a lock twice for 1000 cycles, with 300 between; another comes to it after 500 cycles, and
// looks at it or sleeps until it is free.
WrittenTrace barging(bool sleeps) {
  WrittenTrace trace;
  trace.add_team(2);
  Script first, second;
  first.sync(SyncKind::fork).sync(SyncKind::acquire, 0x1000).work(1000).sync(SyncKind::release, 0x1000);
  first.work(300).sync(SyncKind::acquire, 0x1000).work(1000).sync(SyncKind::release, 0x1000);
  trace.add_thread(first.sync(SyncKind::join).sync(SyncKind::thread_end));
  TraceNode acquire = sync_node(SyncKind::acquire, 0x1000, 0);
  acquire.sleeps = sleeps;
  second.sync(SyncKind::begin).work(500).add(acquire).work(1000).sync(SyncKind::release, 0x1000);
  trace.add_thread(second.sync(SyncKind::join).sync(SyncKind::thread_end));
  return trace;
}

// Who has released a lock takes it again if it comes before those who waited have noticed.
TEST(released_locks_go_to_who_comes_first) {
  const auto stall = [](bool sleeps, Time latency) {
    const Replayed replayed = replay(barging(sleeps), 2, [&](ReplaySourceSpec& spec) {
      (sleeps ? spec.wake_latency : spec.handover_latency) = latency * nanosecond;
      spec.handover_least_latency = spec.handover_latency;
    });
    check_finished(replayed, "two threads and a lock");
    return replayed.spent(1, "stall") + replayed.spent(1, "end");
  };
  for (const bool sleeps : {false, true}) {
    check_between(stall(sleeps, 250), 750, 850,
                  "it waits for the first section, and has the lock before the second");
    check_between(stall(sleeps, 350), 2150, 2300, "it comes too late, and waits for the second section, too");
  }
}

// Nested parallel regions, one after the other, and system calls.
TEST(regions) {
  WrittenTrace trace;
  for (int i = 0; i < 3; ++i) trace.add_team(i == 1 ? 1 : 2);
  Script master, worker;
  master.work(10).sync(SyncKind::system_call).sync(SyncKind::fork, 0).work(100);
  master.sync(SyncKind::fork, 1).work(50).sync(SyncKind::barrier, 1).sync(SyncKind::join, 1);
  master.sync(SyncKind::join, 0).work(500).sync(SyncKind::fork, 2).sync(SyncKind::join, 2);
  worker.sync(SyncKind::begin, 0).work(900).sync(SyncKind::join, 0);
  worker.sync(SyncKind::begin, 2).work(300).sync(SyncKind::join, 2);
  trace.add_thread(master.sync(SyncKind::thread_end));
  trace.add_thread(worker.sync(SyncKind::thread_end));
  const Replayed replayed = replay(trace, 2, [](ReplaySourceSpec& spec) { spec.system_call_latency = 0; });
  check_finished(replayed, "regions");
  check_equal(replayed.value("trace", "forks"), 3, "three regions");
  check_equal(replayed.value("trace", "system_calls"), 1, "a system call");
  const std::int64_t path = 10 + 900 + 500 + 300;
  check_between(replayed.time(), path, path + 8 * 45, "critical path of the regions, and eight nodes on it");
  check_equal(cost_of(trace, 2, &ReplaySourceSpec::system_call_latency), 250, "a system call takes its time");
}

// Mispredicted branches are those that the trace says.
// Threads that the program made itself: one makes another, does something, and waits for its end.
TEST(own_threads) {
  const auto made = [](std::size_t before, std::size_t meanwhile, std::size_t other) {
    WrittenTrace trace;
    Script maker, worker;
    maker.work(before).sync(SyncKind::post, sync_event(0, 1)).work(meanwhile);
    maker.sync(SyncKind::await, sync_event(1, 1)).work(100);
    worker.sync(SyncKind::thread_begin, sync_event(0, 1)).work(other).sync(SyncKind::post, sync_event(1, 1));
    trace.add_thread(maker.sync(SyncKind::thread_end));
    trace.add_thread(worker.sync(SyncKind::thread_end));
    return trace;
  };
  const Replayed base = replay(made(1000, 200, 3000), 2);
  check_finished(base, "own threads");
  check_equal(replay(made(1000, 200, 3700), 2).time() - base.time(), 700, "the end of the other counts");
  check_equal(replay(made(1300, 200, 3000), 2).time() - base.time(), 300, "and when it was made");
  check_equal(replay(made(1000, 900, 3000), 2).time(), base.time(), "what is done meanwhile does not");
  check_equal(base.value("trace", "awaits"), 1, "one wait");
  check_equal(cost_of(made(1000, 200, 3000), 2, &ReplaySourceSpec::thread_latency), 250, "to begin");
  check_equal(cost_of(made(1000, 200, 3000), 2, &ReplaySourceSpec::wake_latency), 250, "to be woken");
  check_equal(cost_of(made(1000, 200, 3000), 2, &ReplaySourceSpec::await_latency), 0, "it had to wait");
  check_equal(cost_of(made(1000, 9000, 3000), 2, &ReplaySourceSpec::await_latency), 250, "it had not");
  const Replayed two = replay(made(1000, 200, 3000), 4, [](ReplaySourceSpec& spec) { spec.copies = 2; });
  check_finished(two, "copies have events of their own");
  check_between(two.time() - base.time(), 0, 50, "and do not wait for each other");
}

// A barrier of own threads: an event that must have happened as often as there are threads.
TEST(own_barriers) {
  const auto meet = [](const std::vector<std::size_t>& cycles, std::uint64_t posts) {
    WrittenTrace trace;
    for (const std::size_t each : cycles) {
      Script script;
      script.work(each).sync(SyncKind::post, sync_event(7, 1)).sync(SyncKind::await, sync_event(7, posts));
      trace.add_thread(script.work(100).sync(SyncKind::thread_end));
    }
    return trace;
  };
  const Replayed base = replay(meet({1000, 3000, 2000}, 3), 3);
  check_finished(base, "own barrier");
  check_equal(replay(meet({1000, 3500, 2000}, 3), 3).time() - base.time(), 500, "the slowest counts");
  check_equal(replay(meet({1700, 3000, 2900}, 3), 3).time(), base.time(), "others do not");
  check_says(diagnosis(replay(meet({1000, 3000, 2000}, 4), 3)), "waits for another thread at pc");
  check_says(diagnosis(replay(meet({1000, 3000, 2000}, 4), 3)), "has happened 3 of 4 times");
}

TEST(recorded_branches) {
  const auto time = [](std::size_t wrong) {
    Script script;
    for (std::size_t i = 0; i < 20; ++i) {
      script.work(50);
      TraceNode made = branch(1);
      if (i < wrong) made.timing.prediction = Prediction::mispredict;
      script.add(made).work(50);
    }
    WrittenTrace trace;
    trace.add_thread(script.sync(SyncKind::thread_end));
    const Replayed replayed = replay(trace, 1);
    check_equal(replayed.value("core[0]", "mispredicts"), static_cast<std::int64_t>(wrong), "mispredicts");
    return replayed.time();
  };
  const std::int64_t each = (time(20) - time(10)) / 10;
  check_equal(time(20) - time(10), 10 * each, "each wrong branch costs the same");
  check_between(each, plain_core().mispredict_penalty, plain_core().mispredict_penalty + 70, "… its penalty");
}

// Two copies of a thread that stores to a line again and again: apart they do not disturb each other.
TEST(copies) {
  WrittenTrace trace;
  trace.add_team(1);
  Script script;
  script.sync(SyncKind::fork);
  for (std::size_t i = 0; i < 200; ++i) {
    const std::uint64_t address = 1ull << 40 | (0x5000 + i % 8 * 8);
    script.add(load(address, 1)).add(store(address, 1)).add(record(InstructionClass::integer, 2)).work(3);
  }
  script.sync(SyncKind::barrier).work(10).sync(SyncKind::join).sync(SyncKind::thread_end);
  trace.add_thread(script);
  const auto time = [&](std::int64_t copies, bool offset, bool shared) {
    WrittenTrace sharing = trace;
    if (shared) sharing.trace.shared = {{1ull << 40 | 0x5000, 1ull << 40 | 0x6000}};
    const Replayed replayed = replay(sharing, copies, [&](ReplaySourceSpec& spec) {
      spec.copies = copies;
      spec.offset = offset;
    });
    check_finished(replayed, "copies");
    check_equal(replayed.value("trace", "barriers"), copies, "all meet at the barrier");
    check_equal(replayed.value("trace", "blocks"), 5, "blocks are decoded once for all copies");
    return replayed.time();
  };
  const std::int64_t alone = time(1, true, false);
  check_between(time(4, true, false) - alone, 0, 60, "copies with data of their own");
  check(time(4, false, false) > 2 * alone, "copies that share their data are slow");
  check_equal(time(4, true, true), time(4, false, false), "data said to be shared stays shared");
}

TEST(deadlocks) {
  // A lock that is never released.
  WrittenTrace lock;
  lock.add_team(2);
  Script holder, waiter;
  holder.sync(SyncKind::fork).sync(SyncKind::acquire, 0x1abc).work(10).sync(SyncKind::join);
  waiter.sync(SyncKind::begin).work(100).sync(SyncKind::acquire, 0x1abc).work(10).sync(SyncKind::join);
  lock.add_thread(holder.sync(SyncKind::thread_end));
  lock.add_thread(waiter.sync(SyncKind::thread_end));
  const std::string held = diagnosis(replay(lock, 2));
  check_says(held, "core 1: thread 1 waits for lock 0x1abc");
  check_says(held, "which thread 0 holds; that waits at join");
  check_says(held, "thread 0 waits for the end of team 0");
  check_says(held, "missing: thread 1 (waits at acquire)");

  // A thread that does not come to the barrier, and one that never began.
  WrittenTrace absent = team_with_barrier({100, 200});
  absent.trace.teams[0].threads = 4;
  Script leaves;
  leaves.sync(SyncKind::begin).work(10).sync(SyncKind::thread_end);
  absent.add_thread(leaves);
  absent.trace.regions = {"parallel sum at main.c:12"};
  const std::string missing = diagnosis(replay(absent, 4));
  check_says(missing, "core 0: thread 0 waits at the barrier of team 0 (parallel sum at main.c:12)");
  check_says(missing, "2 of 4 threads have come; missing: thread 2 (has ended); 1 never began");

  WrittenTrace lonely;
  lonely.add_team(2);
  lonely.add_thread(Script().sync(SyncKind::begin).sync(SyncKind::thread_end));
  check_says(diagnosis(replay(lonely, 1)), "thread 0 waits for the fork of team 0");
}

// Traces that make no sense are refused with words.
TEST(refused) {
  const auto message = [](const Script& script) {
    WrittenTrace trace;
    trace.add_team(1);
    trace.add_thread(script);
    try {
      replay(trace, 1);
    } catch (const SimulationError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  check_says(message(Script().sync(SyncKind::fork, 7)), "team 7, but the trace has only 1");
  check_says(message(Script().sync(static_cast<SyncKind>(99))), "there is no kind 99");
  check_says(message(Script().sync(SyncKind::fork).sync(SyncKind::fork)), "has begun already");
  check_says(message(Script().sync(SyncKind::taskgroup_end)), "did not begin");
  check(message(Script().sync(SyncKind::release, 5).sync(SyncKind::task_create, 3)).empty(),
        "locks and tasks that were not recorded do no harm");
  WrittenTrace damaged;
  damaged.add_thread(Script().work(10));
  damaged.trace.streams[0].blocks = 1;
  RecordedTrace bytes = damaged.finished();
  bytes.block = [](std::uint32_t, std::uint32_t) { return std::vector<std::uint8_t>{1, 2, 3}; };
  Simulation simulation(1);
  auto& source =
      static_cast<ReplaySource&>(simulation.add("trace", std::make_unique<ReplaySource>(ReplaySourceSpec{})));
  source.load_trace(std::move(bytes));
  auto& core = simulation.add("core", std::make_unique<Core>(plain_core()));
  auto& channel = add_model(simulation, "channel", "memory.dram", {{"backend", "simple"}});
  simulation.connect(*core.ports()[0], *source.ports()[0], nanosecond);
  simulation.connect(*core.ports()[1], *channel.ports()[0], 0);
  try {
    simulation.run({});
    check(false, "a damaged block is refused");
  } catch (const SimulationError& error) {
    check_says(error.what(), "block 0 of stream 0 of the trace is damaged");
  }
}

// Whatever is written in a trace: it is played, gets stuck with words, or is refused with words.
TEST(senseless_traces) {
  Random random(5, 6);
  int ended = 0, stuck = 0, rejected = 0;
  for (int round = 0; round < 300; ++round) {
    WrittenTrace trace;
    for (std::uint64_t i = 0; i < 2; ++i) trace.add_team(static_cast<std::uint32_t>(random.below(4)));
    const auto some_script = [&] {
      Script script;
      for (std::uint64_t i = 0, count = random.below(8); i < count; ++i) {
        script.work(random.below(20));
        script.sync(static_cast<SyncKind>(random.below(sync_kinds)), random.below(i % 4 == 0 ? 4 : 2));
      }
      return script.work(random.below(3));
    };
    for (std::uint64_t i = 0, count = 1 + random.below(4); i < count; ++i) trace.add_thread(some_script());
    for (std::uint64_t i = 0, count = random.below(4); i < count; ++i) {
      const auto kind = static_cast<TaskDependence::Type>(random.below(4));
      trace.add_task(i, some_script(), {{random.below(2), kind}}, random.below(3));
    }
    const std::int64_t copies = 1 + static_cast<std::int64_t>(random.below(2));
    const char* const schedulers[] = {"fifo", "work_stealing", "locality", "critical_path", "recorded"};
    try {
      const Replayed replayed = replay(
          trace, copies * (1 + static_cast<std::int64_t>(random.below(3))), [&](ReplaySourceSpec& spec) {
            spec.copies = copies;
            spec.scheduler = schedulers[random.below(5)];
            spec.create_latency = static_cast<Time>(random.below(2)) * 10 * nanosecond;
            spec.switch_latency = 0;
          });
      if (replayed.report.outcome == Outcome::finished) {
        ++ended;
      } else {
        ++stuck;
        check_says(diagnosis(replayed), "core ");
      }
    } catch (const SimulationError& error) {
      ++rejected;
      check_says(error.what(), "the trace makes no sense");
    }
  }
  check(ended > 20 && stuck > 20 && rejected > 20, "all of it occurs");
}

}  // namespace
