// SPDX-License-Identifier: Apache-2.0
#include "engine/thread_governor.hpp"

#include <algorithm>
#include <thread>

namespace manyscale {

namespace {

using namespace std::chrono_literals;

// About the time slice of an operating system: the shortest in which contention can be seen.
constexpr std::chrono::nanoseconds period = 3ms;
constexpr std::chrono::nanoseconds shortest_hold = 20ms;
constexpr std::chrono::nanoseconds longest_hold = 640ms;
constexpr std::uint32_t periods_of_success = 8;  // until the next hold is short again
// Two system calls and a switch between threads.
constexpr std::chrono::nanoseconds cost_of_sleep = 5us;
// Waking a thread takes some ten microseconds, so spinning that long costs no more than sleeping. Where
// processors are free, spinning longer costs nobody anything and is quicker.
constexpr std::chrono::nanoseconds patience_on_busy_host = 10us;
constexpr std::chrono::nanoseconds patience_on_idle_host = 400us;

}  // namespace

void ThreadGovernor::begin(std::uint32_t threads) {
  if (threads == wanted_) return;
  *this = {};
  wanted_ = threads_ = threads;
  hold_ = shortest_hold;
  plan_ = make_plan();
}

ThreadGovernor::Plan ThreadGovernor::make_plan() const {
  if (threads_ == 1) return {1, 0};
  if (oversubscribed()) return {threads_, 0};
  const auto patience = busy_host_ ? patience_on_busy_host : patience_on_idle_host;
  return {threads_, static_cast<std::uint32_t>(patience / pause_length())};
}

// Whether there are more threads than processors, so that one that spins keeps another from working.
bool ThreadGovernor::oversubscribed() const {
  return threads_ > std::max(std::thread::hardware_concurrency(), 1u);
}

void ThreadGovernor::observe(const ThreadTimes& times, std::chrono::nanoseconds passed) {
  if (wanted_ == 1) return;
  times_ += times;
  passed_ += passed;
  if (passed_ >= (threads_ < wanted_ ? hold_ : period)) evaluate();
}

// Whether threads were ready to run for a tenth of the time or more while the host ran something else.
bool ThreadGovernor::contended() const {
  return oversubscribed() || 10 * (times_.wall - times_.processor - times_.asleep) > times_.wall;
}

void ThreadGovernor::evaluate() {
  const bool grows = threads_ < wanted_;
  busy_host_ = contended();
  if (threads_ > 1) {
    const auto wasted = std::chrono::duration_cast<std::chrono::nanoseconds>(
        static_cast<double>(times_.pauses) * pause_length() + times_.sleeps * cost_of_sleep);
    const auto work = times_.processor - wasted;
    if (busy_host_ && 100 * wasted > 15 * work) {
      threads_ = std::max(threads_ / 2, 1u);
      hold_ = std::min(grows ? hold_ : 2 * hold_, longest_hold);
      good_periods_ = 0;
    } else if (++good_periods_ == periods_of_success) {
      hold_ = shortest_hold;
    }
  }
  if (grows && !busy_host_) {
    threads_ = std::min(2 * threads_, wanted_);
    good_periods_ = 0;
  }
  times_ = {};
  passed_ = std::chrono::nanoseconds{0};
  plan_ = make_plan();
}

}  // namespace manyscale
