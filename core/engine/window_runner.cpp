// SPDX-License-Identifier: Apache-2.0
#include "engine/window_runner.hpp"

#include <algorithm>
#include <thread>

#include "engine/process_runner.hpp"

namespace manyscale {

namespace {
constexpr std::uint64_t events_between_clock_reads = 64;
constexpr std::chrono::milliseconds poll_interval{40};
}  // namespace

WindowRunner::WindowRunner(std::vector<std::unique_ptr<Partition>>& partitions,
                           const std::vector<Endpoint>& endpoints, Time lookahead, const RunOptions& options)
    : partitions_(partitions),
      endpoints_(endpoints),
      lookahead_(lookahead),
      options_(options),
      threads_(std::clamp(options.threads, 1u, static_cast<std::uint32_t>(partitions.size()))),
      waiting_(threads_) {
  for (auto& reports : reports_) reports = std::vector<Report>(partitions.size());
}

void WindowRunner::run() {
  if (options_.exchange != nullptr) {
    run_among_processes(*options_.exchange);
    return;
  }
  if (partitions_.size() == 1) {
    run_alone(*partitions_[0]);
    return;
  }
  // Turn 0 holds what the partitions know before the first window.
  for (const auto& partition : partitions_) {
    reports_[0][partition->index].next = partition->queue->next_time();
    reports_[0][partition->index].stop = partition->stop_requested;
  }
  std::vector<std::jthread> others;
  for (std::uint32_t thread = 1; thread < threads_; ++thread) {
    others.emplace_back([this, thread] { run_share(thread); });
  }
  run_share(0);
}

// This process runs one of the partitions, and other processes run the others.
void WindowRunner::run_among_processes(Exchange& exchange) {
  polling_ = exchange.process();
  ProcessRunner runner(*partitions_[polling_], endpoints_, exchange);
  runner.run(
      lookahead_, options_.until, [this](Partition& own, Time end) { run_window(own, end); },
      [this] {
        poll();
        return interrupted();
      });
  windows_ = runner.windows();
}

// One partition: the same windows, noticed in passing, since there is nobody to meet at their ends.
void WindowRunner::run_alone(Partition& partition) {
  const Time end = add_saturating(options_.until, 1);
  Time window_end = 0;
  std::uint64_t events = partition.events;
  const Event* event = nullptr;
  try {
    while ((event = partition.queue->pop_before(end)) != nullptr) {
      if (event->time >= window_end) {
        if (partition.stop_requested) {
          const Event next = *event;
          partition.queue->push(next);
          break;
        }
        ++windows_;
        window_end = add_saturating(event->time, lookahead_);
      }
      ++events;
      handle(partition, *event);
      if (partition.stop_requested && lookahead_ == never) break;
      if (events % events_between_clock_reads == 0) {
        partition.events = events;
        poll();
        if (interrupted_.load(std::memory_order_relaxed)) break;
      }
    }
  } catch (...) {
    fail(partition, *event);
  }
  partition.events = events;
}

// The partitions of one thread, each window one after the other.
void WindowRunner::run_share(std::uint32_t thread) {
  const auto for_own = [&](auto&& act) {
    for (std::size_t index = thread; index < partitions_.size(); index += threads_) act(*partitions_[index]);
  };
  for (std::uint32_t window = 1;; ++window) {
    const std::uint32_t turn = window & 1;
    // Every thread reads the same reports of the last window and so comes to the same decision.
    Time start = never;
    bool stop = false;
    for (const Report& report : reports_[turn ^ 1]) {
      start = std::min(start, report.next);
      stop |= report.stop;
    }
    if (stop || start == never || start > options_.until) return;
    if (thread == 0) ++windows_;
    const Time end = std::min(add_saturating(start, lookahead_), add_saturating(options_.until, 1));
    for_own([&](Partition& partition) { run_and_report(partition, window, end); });
    meet_others(thread, window);
    for_own([&](Partition& partition) { take_sent(partition, turn); });
  }
}

void WindowRunner::run_and_report(Partition& partition, std::uint32_t window, Time end) {
  const std::uint32_t turn = window & 1;
  partition.turn = turn;
  Partition::Outgoing& outgoing = partition.outgoing[turn];
  outgoing.earliest = never;
  outgoing.receivers = 0;
  run_window(partition, end);
  Report& report = reports_[turn][partition.index];
  report.next = std::min(partition.queue->next_time(), outgoing.earliest);
  report.receivers = outgoing.receivers;
  report.stop = partition.stop_requested || partition.error || interrupted_.load(std::memory_order_relaxed);
  report.window.store(window, std::memory_order_release);
}

// Waits until all have ended a window.
void WindowRunner::meet_others(std::uint32_t thread, std::uint32_t window) {
  for (const Report& report : reports_[window & 1]) {
    waiting_.until([&] { return report.window.load(std::memory_order_acquire) == window; },
                   [this, thread] {
                     if (thread == 0) poll();
                   });
  }
}

void WindowRunner::run_window(Partition& partition, Time end) {
  const Event* event = nullptr;
  std::uint64_t events = partition.events;
  try {
    while ((event = partition.queue->pop_before(end)) != nullptr) {
      ++events;
      handle(partition, *event);
      if (events % events_between_clock_reads == 0) {
        partition.events = events;
        if (partition.index == polling_) poll();
        if (interrupted_.load(std::memory_order_relaxed)) break;
      }
    }
  } catch (...) {
    fail(partition, *event);
  }
  partition.events = events;
}

void WindowRunner::handle(Partition& partition, const Event& event) {
  partition.now = event.time;
  const Endpoint& endpoint = endpoints_[event.target];
  endpoint.handler(*endpoint.component, endpoint.object, event);
}

// Keeps what a handler threw, with the event it was handling. To be called while handling the exception.
void WindowRunner::fail(Partition& partition, const Event& event) {
  partition.error = std::current_exception();
  partition.error_time = event.time;
  partition.error_order = event.order;
}

// Takes what the others sent to a partition in the window of this turn.
void WindowRunner::take_sent(Partition& partition, std::uint32_t turn) {
  for (const auto& other : partitions_) {
    if ((reports_[turn][other->index].receivers & Partition::receiver_bit(partition.index)) == 0) continue;
    auto& arrived = other->outgoing[turn].to[partition.index];
    for (const Event& event : arrived) partition.queue->push(event);
    arrived.clear();
  }
}

void WindowRunner::poll() {
  if (!options_.poll) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_poll_ < poll_interval) return;
  last_poll_ = now;
  // The other partitions run the same window, so the first one's time stands for all; their event counts
  // belong to their threads, so the total is scaled from this partition's.
  const Partition& first = *partitions_[polling_];
  if (!options_.poll({first.now, first.events * partitions_.size()}))
    interrupted_.store(true, std::memory_order_relaxed);
}

}  // namespace manyscale
