// SPDX-License-Identifier: Apache-2.0
// Conservative parallel execution: all partitions run the events of one window, then exchange what they sent
// to each other. A window is no longer than the lookahead, so nothing sent within it can arrive within it.
#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "engine/simulation.hpp"
#include "engine/thread_governor.hpp"
#include "engine/window_barrier.hpp"

namespace manyscale {

class WindowRunner {
 public:
  WindowRunner(std::vector<std::unique_ptr<Partition>>& partitions, const std::vector<Endpoint>& endpoints,
               Time lookahead, const RunOptions& options, ThreadGovernor& governor);

  // Runs until the end is reached; the caller's thread runs the first partition, and others if there are more
  // than threads.
  void run();

  bool interrupted() const { return interrupted_.load(std::memory_order_relaxed); }
  std::uint64_t windows() const { return windows_; }
  std::uint32_t threads() const { return threads_; }

 private:
  // What a partition tells the others at the end of a window. There are two, used in turn: who is done with a
  // window can be one ahead of who still reads the last.
  struct alignas(128) Report {
    Time next = never;            // its first pending event, or the first it sent away
    std::uint64_t receivers = 0;  // of what it sent
    bool stop = false;            // a model asked for the end, a handler threw, or the caller interrupted
  };

  void run_among_processes(Exchange& exchange);
  void run_alone(Partition& partition);
  void run_share(std::uint32_t thread, std::uint32_t window);
  void set_threads(std::uint32_t threads, std::uint32_t window);
  void join_threads(std::uint32_t threads);
  void run_and_report(Partition& partition, std::uint32_t turn, Time end);
  void run_window(Partition& partition, Time end);
  void meet_others(std::uint32_t thread, std::uint32_t window, const ThreadGovernor::Plan& plan);
  void observe_threads();
  void take_sent(Partition& partition, std::uint32_t turn);
  void handle(Partition& partition, const Event& event);
  static void fail(Partition& partition, const Event* event);
  static void fail(Partition& partition, Time time);
  void poll();

  std::vector<std::unique_ptr<Partition>>& partitions_;
  const std::vector<Endpoint>& endpoints_;
  const Time lookahead_;
  const RunOptions& options_;
  const std::uint32_t threads_;
  std::uint32_t most_threads_ = threads_;  // that the host gives
  ThreadGovernor& governor_;
  WindowBarrier barrier_;
  std::vector<ThreadUsage> usage_;  // of each thread
  ThreadTimes observed_;            // by the governor
  std::chrono::steady_clock::time_point last_observation_ = std::chrono::steady_clock::now();
  std::array<std::vector<Report>, 2> reports_;
  // Made by the calling thread with its reports: who runs the next window.
  std::array<ThreadGovernor::Plan, 2> plans_;
  std::vector<std::jthread> others_;
  std::atomic<bool> interrupted_{false};
  std::uint64_t windows_ = 0;
  std::uint32_t polling_ = 0;  // the partition that the calling thread runs
  std::chrono::steady_clock::time_point last_poll_ = std::chrono::steady_clock::now();
};

}  // namespace manyscale
