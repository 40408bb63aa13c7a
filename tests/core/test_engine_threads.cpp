// SPDX-License-Identifier: Apache-2.0
// How many threads run windows: all on an idle host, fewer on a busy one where they would wait for each
// other, and all again when it has time. And a barrier that passes nobody too early.
#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "engine/thread_governor.hpp"
#include "engine/window_barrier.hpp"
#include "test_checks.hpp"

using namespace manyscale;
using namespace manyscale::test;
using namespace std::chrono_literals;

namespace {

const std::uint32_t processors = std::max(std::thread::hardware_concurrency(), 1u);

// A while in which each thread that runs has a processor for a share of the time and spins for a share of
// that.
void pass(ThreadGovernor& governor, std::chrono::nanoseconds time, double on_processor, double spinning) {
  ThreadTimes times;
  times.wall = governor.plan().threads * time;
  times.processor = std::chrono::duration_cast<std::chrono::nanoseconds>(on_processor * times.wall);
  times.pauses = static_cast<std::uint64_t>(spinning * times.processor / pause_length());
  governor.observe(times, time);
}

TEST(an_idle_host_keeps_all_threads) {
  ThreadGovernor governor;
  governor.begin(processors);
  for (int i = 0; i < 1000; ++i) pass(governor, 1ms, 0.99, 0.45);
  check(governor.plan().threads == processors, "all threads, however long they wait for each other");
}

TEST(a_busy_host_keeps_threads_that_work) {
  ThreadGovernor governor;
  governor.begin(2);
  for (int i = 0; i < 1000; ++i) pass(governor, 1ms, 0.5, 0.05);
  check(governor.plan().threads == 2, "threads that do not wait for each other");
}

TEST(a_busy_host_has_fewer_threads_until_it_is_idle) {
  if (processors < 2) return skip("two threads on one processor are one too many at all times");
  ThreadGovernor governor;
  governor.begin(2);
  const std::uint32_t patience = governor.plan().patience;
  int alone = 0;
  for (int i = 0; i < 2000; ++i) {
    pass(governor, 1ms, 0.5, 0.3);
    alone += governor.plan().threads == 1;
  }
  check(alone > 1990, "one thread after a few milliseconds, as long as others have work for the host");
  for (int i = 0; i < 700; ++i) pass(governor, 1ms, 0.99, 0.3);
  check(governor.plan().threads == 2, "both again within a second");
  check(governor.plan().patience == patience, "which wait for each other as before");
}

// One process besides ours: a thread alone has a processor for itself, two have not.
TEST(trials_become_rare) {
  if (processors < 2) return skip("one processor only");
  ThreadGovernor governor;
  governor.begin(2);
  int together = 0;
  for (int i = 0; i < 10'000; ++i) {
    const bool both = governor.plan().threads == 2;
    together += both;
    pass(governor, 1ms, both ? 0.75 : 0.99, both ? 0.3 : 0.0);
  }
  check(together < 200, "at most a fiftieth of the time is spent on trials");
}

TEST(what_was_learnt_holds_for_the_next_run) {
  ThreadGovernor governor;
  governor.begin(2);
  for (int i = 0; i < 10; ++i) pass(governor, 1ms, 0.5, 0.3);
  governor.begin(2);
  check(governor.plan().threads == 1, "a run on as many threads goes on with what is known");
  governor.begin(3);
  check(governor.plan().threads == 3, "one on another number starts again");
}

// Threads count in turn what all have counted; with no patience they sleep every time.
void count_together(std::uint32_t threads, std::uint32_t patience, std::uint32_t windows) {
  WindowBarrier barrier(threads);
  std::vector<ThreadUsage> usage(threads);
  struct alignas(128) Count {
    std::uint32_t value[2] = {0, 0};
  };
  std::vector<Count> counts(threads);
  std::vector<int> wrong(threads, 0);
  {
    std::vector<std::jthread> running;
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      running.emplace_back([&, thread] {
        for (std::uint32_t window = 1; window <= windows; ++window) {
          counts[thread].value[window & 1] = window;
          barrier.arrive(thread, window);
          barrier.wait(threads, window, patience, usage[thread], [] {});
          for (const Count& count : counts) wrong[thread] += count.value[window & 1] != window;
        }
      });
    }
  }
  int all = 0;
  for (const int one : wrong) all += one;
  check(all == 0, "every thread sees what all wrote in the window");
}

// One thread sleeps while another works; its sleep is no lack of processors.
TEST(a_sleep_is_not_taken_for_a_busy_host) {
  WindowBarrier barrier(2);
  ThreadUsage usage;
  usage.begin();
  {
    const std::jthread other([&] {
      std::this_thread::sleep_for(200ms);
      barrier.arrive(1, 1);
    });
    barrier.arrive(0, 1);
    barrier.wait(2, 1, 0, usage, [] {});
  }
  usage.end();
  check(usage.times.sleeps == 1, "it sleeps");
  check(usage.times.asleep > 150ms && usage.times.asleep <= usage.times.wall, "as long as the other works");
}

TEST(nobody_passes_the_barrier_too_early) {
  for (const std::uint32_t threads : {2u, 3u, 5u}) {
    count_together(threads, 0, 300);
    count_together(threads, 200, 2000);
  }
}

}  // namespace
