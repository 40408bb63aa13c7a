// SPDX-License-Identifier: Apache-2.0
// How many threads run the windows of a simulation. On a host with free processors these are all that were
// asked for. On a busy one, threads that wait for each other burn processor time that others need; then fewer
// of them run all partitions, until the host has time again. Results do not depend on it.
#pragma once
#include <chrono>
#include <cstdint>

#include "engine/thread_usage.hpp"

namespace manyscale {

class ThreadGovernor {
 public:
  // What holds for the next window.
  struct Plan {
    std::uint32_t threads = 1;
    std::uint32_t patience = 0;  // steps of spinning before a thread goes to sleep
  };

  // Before a run on so many threads. What was learnt in runs before holds on.
  void begin(std::uint32_t threads);
  // The times of the threads that ran the last windows, and the wall time that passed.
  void observe(const ThreadTimes& times, std::chrono::nanoseconds passed);
  const Plan& plan() const { return plan_; }

 private:
  void evaluate();
  bool oversubscribed() const;
  bool contended() const;
  Plan make_plan() const;

  std::uint32_t wanted_ = 0;
  std::uint32_t threads_ = 1;
  bool busy_host_ = false;
  // Since the last evaluation.
  ThreadTimes times_;
  std::chrono::nanoseconds passed_{0};
  // Fewer threads than wanted run for so long before more are tried.
  std::chrono::nanoseconds hold_{0};
  std::uint32_t good_periods_ = 0;
  Plan plan_;
};

}  // namespace manyscale
