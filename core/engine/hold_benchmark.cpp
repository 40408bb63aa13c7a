// SPDX-License-Identifier: Apache-2.0
#include "engine/hold_benchmark.hpp"

#include <chrono>
#include <queue>

#include "engine/queue.hpp"
#include "engine/random.hpp"

namespace manyscale {
namespace {

// std::priority_queue with the two calls the hold model needs.
class StandardQueue {
 public:
  void push(const Event& event) { queue_.push(event); }
  const Event* pop_before(Time) {
    current_ = queue_.top();
    queue_.pop();
    return &current_;
  }
  std::size_t bytes() const { return 0; }

 private:
  struct Later {
    bool operator()(const Event& a, const Event& b) const { return earlier(b, a); }
  };
  std::priority_queue<Event, std::vector<Event>, Later> queue_;
  Event current_{};
};

template <class Queue>
HoldResult hold(Queue& queue, std::size_t population, std::size_t holds, std::uint64_t seed) {
  Random random(seed, 0);
  std::uint32_t sequence = 0;
  const auto push_after = [&](Time now) {
    Event event{};
    event.time = now + static_cast<Time>(random.exponential() * static_cast<double>(microsecond));
    event.order = Order::make(0, 0, sequence++);
    queue.push(event);
  };
  HoldResult result;
  const auto run = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const Time now = queue.pop_before(never)->time;
      result.checksum = mix64(result.checksum ^ static_cast<std::uint64_t>(now));
      push_after(now);
    }
  };
  for (std::size_t i = 0; i < population; ++i) push_after(0);
  run(population);  // reach the steady state first
  const auto began = std::chrono::steady_clock::now();
  run(holds);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  result.holds_per_second = static_cast<double>(holds) / seconds;
  result.bytes_per_event = static_cast<double>(queue.bytes()) / static_cast<double>(population);
  return result;
}

}  // namespace

HoldResult run_hold(std::string_view queue, std::size_t population, std::size_t holds, std::uint64_t seed) {
  if (queue == "std") {
    StandardQueue standard;
    return hold(standard, population, holds, seed);
  }
  const auto made = make_queue(queue);
  return hold(*made, population, holds, seed);
}

}  // namespace manyscale
