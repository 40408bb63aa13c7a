// SPDX-License-Identifier: Apache-2.0
// Conservative parallel execution: all partitions run the events of one window, then exchange what they sent
// to each other. A window is no longer than the lookahead, so nothing sent within it can arrive within it.
#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "engine/simulation.hpp"
#include "engine/waiting.hpp"

namespace manyscale {

class WindowRunner {
 public:
  WindowRunner(std::vector<std::unique_ptr<Partition>>& partitions, const std::vector<Endpoint>& endpoints,
               Time lookahead, const RunOptions& options);

  // Runs until the end is reached; the caller's thread runs the first partition, and others if there are more
  // than threads.
  void run();

  bool interrupted() const { return interrupted_.load(std::memory_order_relaxed); }
  std::uint64_t windows() const { return windows_; }
  std::uint32_t threads() const { return threads_; }

 private:
  // What a partition tells the others at the end of a window, all in one cache line: that is how they meet.
  // There are two, used in turn: who is done with a window can be one ahead of who still reads the last.
  struct alignas(128) Report {
    Time next = never;            // its first pending event, or the first it sent away
    std::uint64_t receivers = 0;  // of what it sent
    bool stop = false;            // a model asked for the end, a handler threw, or the caller interrupted
    std::atomic<std::uint32_t> window{0};  // whose end this is; written last
  };

  void run_among_processes(Exchange& exchange);
  void run_alone(Partition& partition);
  void run_share(std::uint32_t thread);
  void run_and_report(Partition& partition, std::uint32_t window, Time end);
  void run_window(Partition& partition, Time end);
  void meet_others(std::uint32_t thread, std::uint32_t window);
  void take_sent(Partition& partition, std::uint32_t turn);
  void handle(Partition& partition, const Event& event);
  static void fail(Partition& partition, const Event& event);
  void poll();

  std::vector<std::unique_ptr<Partition>>& partitions_;
  const std::vector<Endpoint>& endpoints_;
  const Time lookahead_;
  const RunOptions& options_;
  const std::uint32_t threads_;
  const Waiting waiting_;
  std::array<std::vector<Report>, 2> reports_;
  std::atomic<bool> interrupted_{false};
  std::uint64_t windows_ = 0;
  std::uint32_t polling_ = 0;  // the partition that the calling thread runs
  std::chrono::steady_clock::time_point last_poll_ = std::chrono::steady_clock::now();
};

}  // namespace manyscale
