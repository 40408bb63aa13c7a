// SPDX-License-Identifier: Apache-2.0
// Where the threads of a run meet at the end of each window. A thread that waits spins for a while, since
// windows are short, and then sleeps until another arrives.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "engine/thread_usage.hpp"

namespace manyscale {

class WindowBarrier {
 public:
  explicit WindowBarrier(std::uint32_t threads) : arrivals_(threads) {}

  // A thread has ended a window. Who waits for it sees all that it wrote before.
  void arrive(std::uint32_t thread, std::uint32_t window) {
    // Sequentially consistent, as is all else about sleepers: either the sleeper sees this, or it is seen.
    arrivals_[thread].window.store(window, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) != 0) wake_all();
  }

  // Waits until the first so many threads have ended a window; spins for `patience` steps, then sleeps and
  // calls `idle` now and then.
  template <class Idle>
  void wait(std::uint32_t threads, std::uint32_t window, std::uint32_t patience, ThreadUsage& usage,
            Idle&& idle) {
    for (std::uint32_t other = 0; other < threads; ++other) {
      if (!spin(arrivals_[other], window, patience, usage)) sleep(arrivals_[other], window, usage, idle);
    }
  }

 private:
  struct alignas(128) Arrival {
    std::atomic<std::uint32_t> window{0};  // the last one that the thread has ended
    // A thread may be one window ahead; counts go round.
    bool has_ended(std::uint32_t wanted, std::memory_order order) const {
      return static_cast<std::int32_t>(window.load(order) - wanted) >= 0;
    }
  };

  static bool spin(const Arrival& arrival, std::uint32_t window, std::uint32_t patience, ThreadUsage& usage) {
    std::uint32_t step = 0;
    while (!arrival.has_ended(window, std::memory_order_acquire)) {
      if (step == patience) {
        usage.times.pauses += step;
        return false;
      }
      pause_spinning();
      ++step;
    }
    usage.times.pauses += step;
    return true;
  }

  template <class Idle>
  void sleep(const Arrival& arrival, std::uint32_t window, ThreadUsage& usage, Idle&& idle) {
    const auto began = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex_);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (!arrival.has_ended(window, std::memory_order_seq_cst)) {
      if (arrived_.wait_for(lock, idle_interval) == std::cv_status::no_timeout) continue;
      lock.unlock();
      idle();
      lock.lock();
    }
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    ++usage.times.sleeps;
    // What passes after the call, beyond what waking takes on an idle host, is time without a processor.
    const auto awake = std::min(std::chrono::steady_clock::now(), woken_ + time_to_wake);
    usage.times.asleep += std::max(awake - began, std::chrono::nanoseconds{0});
  }

  void wake_all();

  static constexpr std::chrono::milliseconds idle_interval{40};
  static constexpr std::chrono::microseconds time_to_wake{100};
  std::vector<Arrival> arrivals_;
  std::atomic<std::uint32_t> sleepers_{0};
  std::mutex mutex_;
  std::chrono::steady_clock::time_point woken_;  // when sleepers were last called
  std::condition_variable arrived_;
};

}  // namespace manyscale
