// SPDX-License-Identifier: Apache-2.0
#include "engine/window_runner.hpp"

#include <algorithm>
#include <new>
#include <system_error>

#include "engine/process_runner.hpp"

namespace manyscale {

namespace {
constexpr std::uint64_t events_between_clock_reads = 64;
constexpr std::chrono::milliseconds poll_interval{40};
constexpr std::uint32_t windows_between_samples = 8;
}  // namespace

WindowRunner::WindowRunner(std::vector<std::unique_ptr<Partition>>& partitions,
                           const std::vector<Endpoint>& endpoints, Time lookahead, const RunOptions& options,
                           ThreadGovernor& governor)
    : partitions_(partitions),
      endpoints_(endpoints),
      lookahead_(lookahead),
      options_(options),
      threads_(std::clamp(options.threads, 1u, static_cast<std::uint32_t>(partitions.size()))),
      governor_(governor),
      barrier_(threads_),
      usage_(threads_) {
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
  governor_.begin(threads_);
  plans_[0] = governor_.plan();
  run_share(0, 1);
  join_threads(1);
  usage_[0].publish();
  observe_threads();
}

// Sees to it that so many threads run a window, of which the calling thread is one. A host that has no memory
// for another thread gives fewer; the calling thread then does their share, and plans have no more than there
// are.
void WindowRunner::set_threads(std::uint32_t threads, std::uint32_t window) {
  if (others_.size() + 1 > threads) join_threads(threads);
  try {
    for (auto thread = static_cast<std::uint32_t>(others_.size()) + 1; thread < threads; ++thread) {
      others_.emplace_back([this, thread, window] { run_share(thread, window); });
    }
  } catch (const std::system_error&) {
    most_threads_ = static_cast<std::uint32_t>(others_.size()) + 1;
  } catch (const std::bad_alloc&) {
    most_threads_ = static_cast<std::uint32_t>(others_.size()) + 1;
  }
}

// Waits for all but the first so many threads, which end by themselves when a plan leaves them out.
void WindowRunner::join_threads(std::uint32_t threads) {
  others_.resize(threads - 1);
  for (std::uint32_t thread = threads; thread < threads_; ++thread) usage_[thread].publish();
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
    fail(partition, event);
  }
  partition.events = events;
}

// The partitions of one thread, each window one after the other, from a window on.
void WindowRunner::run_share(std::uint32_t thread, std::uint32_t window) {
  usage_[thread].begin();
  for (;; ++window) {
    const std::uint32_t turn = window & 1;
    // Every thread reads the same reports and the same plan of the last window, and so comes to the same
    // decision.
    const ThreadGovernor::Plan plan = plans_[turn ^ 1];
    if (thread >= plan.threads) break;
    if (thread == 0) set_threads(plan.threads, window);
    // The calling thread does the work of those that could not be made, too.
    const auto present = thread == 0 ? static_cast<std::uint32_t>(others_.size()) + 1 : plan.threads;
    const auto for_own = [&](auto&& act) {
      for (std::uint32_t share = thread; share < plan.threads; share = std::max(share + 1, present)) {
        for (std::size_t index = share; index < partitions_.size(); index += plan.threads) {
          act(*partitions_[index]);
        }
      }
    };
    Time start = never;
    bool stop = false;
    for (const Report& report : reports_[turn ^ 1]) {
      start = std::min(start, report.next);
      stop |= report.stop;
    }
    // By who runs the partition from now on, which need not be who ran it before.
    // What cannot be taken for want of memory is an error of the partition, which still ends its window.
    for_own([&](Partition& partition) {
      try {
        take_sent(partition, turn ^ 1);
      } catch (...) {
        fail(partition, partition.now);
      }
    });
    if (stop || start == never || start > options_.until) break;
    if (thread == 0) ++windows_;
    const Time end = std::min(add_saturating(start, lookahead_), add_saturating(options_.until, 1));
    for_own([&](Partition& partition) { run_and_report(partition, turn, end); });
    if (window % windows_between_samples == 0) usage_[thread].publish_sometimes();
    if (thread == 0) {
      plans_[turn] = governor_.plan();
      plans_[turn].threads = std::min(plans_[turn].threads, most_threads_);
    }
    for (std::uint32_t absent = present; absent < plan.threads; ++absent) barrier_.arrive(absent, window);
    if (plan.threads > 1) meet_others(thread, window, plan);
    if (thread == 0 && window % windows_between_samples == 0) observe_threads();
  }
  usage_[thread].end();
}

void WindowRunner::run_and_report(Partition& partition, std::uint32_t turn, Time end) {
  partition.turn = turn;
  Partition::Outgoing& outgoing = partition.outgoing[turn];
  outgoing.earliest = never;
  outgoing.receivers = 0;
  Time next = never;
  try {
    if (!partition.error) run_window(partition, end);
    next = partition.queue->next_time();
  } catch (...) {
    fail(partition, end);
  }
  Report& report = reports_[turn][partition.index];
  report.next = std::min(next, outgoing.earliest);
  report.receivers = outgoing.receivers;
  report.stop = partition.stop_requested || partition.error || interrupted_.load(std::memory_order_relaxed);
}

// Waits until all who run a window have ended it.
void WindowRunner::meet_others(std::uint32_t thread, std::uint32_t window, const ThreadGovernor::Plan& plan) {
  barrier_.arrive(thread, window);
  barrier_.wait(plan.threads, window, plan.patience, usage_[thread], [this, thread] {
    if (thread == 0) poll();
  });
}

// Tells the governor what the threads did since the last time. Called by the calling thread when it has met
// them.
void WindowRunner::observe_threads() {
  ThreadTimes all;
  for (const ThreadUsage& usage : usage_) all += usage.published();
  const auto now = std::chrono::steady_clock::now();
  governor_.observe(all - observed_, now - last_observation_);
  observed_ = all;
  last_observation_ = now;
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
    fail(partition, event);
  }
  partition.events = events;
}

void WindowRunner::handle(Partition& partition, const Event& event) {
  partition.now = event.time;
  const Endpoint& endpoint = endpoints_[event.target];
  endpoint.handler(*endpoint.component, endpoint.object, event);
}

// Keeps what a handler threw, with the event it was handling; the queue itself can run out of memory, too,
// and then there is no event. To be called while handling the exception.
void WindowRunner::fail(Partition& partition, const Event* event) {
  if (event == nullptr) return fail(partition, partition.now);
  partition.error = std::current_exception();
  partition.error_time = event->time;
  partition.error_order = event->order;
}

// The same outside of any event.
void WindowRunner::fail(Partition& partition, Time time) {
  partition.error = std::current_exception();
  partition.error_time = time;
  partition.error_order = 0;
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
