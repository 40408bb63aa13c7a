// SPDX-License-Identifier: Apache-2.0
#include "cpu/core/core.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "engine/registry.hpp"

namespace manyscale::cpu {

namespace {

const Registered<Core> registered{
    "cpu.core",
    "An out-of-order or in-order core with its own caches that executes the records of a stream source."};

memory::PrivateCachesSpec caches_spec(const CoreSpec& spec) {
  memory::PrivateCachesSpec caches;
  caches.levels.push_back(spec.l1);
  if (spec.l2.size > 0) caches.levels.push_back(spec.l2);
  if (spec.l1i.size > 0) caches.instruction = spec.l1i;
  // Issue ports and stores_per_cycle limit what begins in a cycle, and the L1 cache's MSHRs what
  // the L2 cache gets. The caches' own ports are taken in the order of calls, which is not that of time here.
  const auto open_ports = [](memory::CacheSpec& level, const std::string& name) {
    if (level.ports != memory::CacheSpec{}.ports) {
      throw std::invalid_argument(name +
                                  ".ports: a core's caches take what its issue ports (`ports`), "
                                  "stores_per_cycle and l1.outstanding_misses give them; leave it out");
    }
    level.ports = 64;
  };
  for (std::size_t i = 0; i < caches.levels.size(); ++i) open_ports(caches.levels[i], i == 0 ? "l1" : "l2");
  if (caches.instruction) open_ports(*caches.instruction, "l1i");
  caches.coherent = spec.coherent;
  caches.homes = spec.homes;
  caches.home_hash = spec.home_hash;
  caches.writeback_buffer = spec.writeback_buffer;
  caches.prefetcher = spec.prefetcher;
  caches.first_prefetcher = spec.first_prefetcher;
  caches.fetch_ahead = spec.fetch_ahead;
  caches.mshrs_per_level = spec.mshrs_per_level;
  return caches;
}

std::int64_t fetch_buffer_of(const CoreSpec& spec) {
  return spec.fetch_buffer > 0 ? spec.fetch_buffer : (spec.front_end_depth + 1) * spec.fetch_width;
}

// The counters of a table, in its order, brought up to these totals.
template <class Counters, class Totals>
void bring_up(Counters& counters, const Totals& totals) {
  std::size_t i = 0;
  for_each_field<Counters>([&](const auto& field) {
    Counter& counter = counters.*(field.member);
    counter += totals[i++] - counter.value();
  });
}

}  // namespace

Core::Core(const Spec& spec)
    : spec_(spec),
      period_(period_of(spec.clock)),
      cycles_per_time_(1.0 / static_cast<double>(period_)),
      total_store_order_(spec.memory_model == "tso"),
      data_hit_(spec.l1.tag_latency + spec.l1.data_latency),
      line_mask_(static_cast<std::uint64_t>(spec.l1.line) - 1),
      caches_(std::make_unique<memory::PrivateCaches>(*this, caches_spec(spec), period_, 1)),
      translation_(spec.translation),
      predictor_(spec.branch),
      fetch_(spec),
      fetch_buffer_(fetch_buffer_of(spec)),
      dispatch_(spec),
      window_(std::max(spec.reorder_buffer, fetch_buffer_) + 1),
      ports_(spec),
      stores_(spec.store_queue, spec.memory_model == "tso"),
      wheel_(window_.size()),
      commit_(spec.commit_width),
      account_(spec.hot_lines),
      regions_(static_cast<std::size_t>(spec.region_log)),
      writer_(spec) {
  if (spec.memory_model != "tso" && spec.memory_model != "relaxed") {
    throw std::invalid_argument("memory_model: expected 'relaxed' or 'tso', not '" + spec.memory_model + "'");
  }
  if (spec.quantum > CycleMap::range / 2 * period_) {
    throw std::invalid_argument("quantum: at most " + std::to_string(CycleMap::range / 2) +
                                " cycles of the core's clock, which are " +
                                std::to_string(CycleMap::range / 2 * period_ / nanosecond) + " ns");
  }
  if (spec.l1.write != "back") throw std::invalid_argument("l1.write: a core's caches are write-back");
  declare(statistics_);
  declare(cpi_counters_, "cpi.");
  declare(instruction_counters_, "instructions.");
  if (caches_->instruction() != nullptr) declare(caches_->instruction()->statistics, "l1i.");
  declare(caches_->levels()[0]->statistics, "l1.");
  if (caches_->levels().size() > 1) declare(caches_->levels()[1]->statistics, "l2.");
  declare(caches_->prefetcher_statistics(), "prefetcher.");
  if (caches_->levels().size() > 1) declare(caches_->first_prefetcher_statistics(), "first_prefetcher.");
  declare(predictor_.statistics(), "branch.");
  if (spec.translation.enabled) declare(translation_.statistics(), "tlb.");
  work_.on_receive<&Core::take_answer>();
  memory_.on_receive<&Core::take_message>();
  timer_.on_expire<&Core::wake>();
}

void Core::start() {
  caches_->reseed(random());
}

// The first cycle that begins at or after a time.
Cycle Core::cycle_of(Time time) const {
  auto cycle = static_cast<Cycle>(static_cast<double>(time) * cycles_per_time_);
  while (cycle * period_ >= time) --cycle;
  while (cycle * period_ < time) ++cycle;
  return cycle;
}

void Core::take_answer(const StreamReply& answer, std::uint32_t) {
  begin_event();
  switch (answer.type) {
    case StreamReply::Type::attach:
      ring_ = answer.ring;
      return;
    case StreamReply::Type::available:
      if (answer.number > available_) {
        available_ = answer.number;
        if (starved_) records_arrived();
      }
      break;
    case StreamReply::Type::sleeps:
      asleep_ = true;
      break;
    case StreamReply::Type::ends:
      ended_ = true;
      break;
  }
  pump();
}

void Core::take_message(const memory::Message& message, std::uint32_t) {
  const bool entered = begin_event();
  caches_->receive(message, now());
  // What only concerns the caches lets nothing go on that could not before.
  if (entered || !arrivals_.empty() || retry_) pump();
}

void Core::wake(const Wake&) {
  if (now() != wake_at_) return;  // an earlier one came in between
  wake_at_ = never;
  begin_event();
  pump();
}

void Core::send_to_memory(const memory::Message& message, Time when) {
  memory_.send(message, std::max<Time>(0, when - now()));
}

void Core::access_done(std::uint32_t token, Time ready, memory::Value, memory::Served served) {
  arrivals_.push_back({token, cycle_of(ready), served});
}

void Core::unblocked() {
  retry_ = true;
}

// Time is divided into quanta, the same for all cores, so that they work at the same moments, side by side on
// several host threads. True where this event is the first in its quantum.
bool Core::begin_event() {
  const bool entered = now() >= quantum_end_;
  if (entered) {
    quantum_end_ = now() - now() % spec_.quantum + spec_.quantum;
    last_cycle_ = cycle_of(quantum_end_) - 1;
  }
  earliest_ = cycle_of(now());
  horizon_ = std::max(earliest_, last_cycle_);
  return entered;
}

// Does all that can be done now, and asks to be woken when more can.
void Core::pump() {
  oldest_wake_ = unknown;
  if (!arrivals_.empty()) take_arrivals();
  if (retry_) retry_blocked();
  wheel_.take_until(horizon_, [&](std::uint32_t index) {
    due(window_[index]);
    if (!resolved_.empty()) wake_waiters();
  });
  for (;;) {
    take_records();
    const bool committed = commit_all();
    const bool wrote = write_stores();
    // It took all that there were entries for; only these free more.
    if (!committed && !wrote) break;
  }
  const Cycle next = std::min({wheel_.next(), front_wake_, store_wake_});
  Time due = next == unknown ? never : time_of(next) - time_of(next) % spec_.quantum;
  if (oldest_wake_ != unknown) due = std::min(due, time_of(oldest_wake_));
  due = std::max(due, now() + 1);
  if (due >= wake_at_) return;
  wake_at_ = due;
  timer_.after(wake_at_ - now(), Wake{});
}

void Core::take_arrivals() {
  for (std::size_t i = 0; i < arrivals_.size(); ++i) {
    const Arrival arrival = arrivals_[i];
    const std::uint32_t index = arrival.token & ~token_kind;
    switch (arrival.token & token_kind) {
      case load_token: {
        Operation& operation = window_[index];
        operation.arrived = std::max(operation.arrived, arrival.cycle);
        operation.cause = std::max(operation.cause, cause_of(arrival.served));
        if (--operation.parts == 0) finish(operation, operation.arrived);
        break;
      }
      case store_token: {
        StoreQueue::Store& store = stores_[index];
        store.written_parts = std::max(store.written_parts, arrival.cycle);
        writer_.end_miss();
        if (--store.parts == 0) store_written(index, store.written_parts);
        break;
      }
      case fetch_token:
        fetch_.line_arrived(arrival.cycle);
        break;
      default:
        walk(index, arrival.cycle);
        break;
    }
    wake_waiters();
  }
  arrivals_.clear();
}

void Core::retry_blocked() {
  retry_ = false;
  writer_.unblock();
  retried_.clear();
  retried_.swap(blocked_);
  for (const Blocked& each : retried_) {
    const std::uint32_t index = each.token & ~token_kind;
    const Cycle when = std::max(each.when, earliest_);
    if ((each.token & token_kind) == walk_token) {
      walk(index, when);
    } else {
      access_part(window_[index], each.part, when);
    }
    wake_waiters();
  }
}

// Brings the statistics up to the present: what is in flight has no cause yet, but waiting for the source
// has.
void Core::settle() {
  const Cycle present = now() / period_;
  if (committed_ == next_ && taken_ == available_) {
    if (ended_ || !begun_) {
      account_.charge(present, Cause::idle);
    } else if (asleep_) {
      account_.charge(present, Cause::sleeping);
    }
  }
  if (thread_ != ~0u) regions_.settle(progress());
  bring_up(cpi_counters_, account_.stack().cycles);
  bring_up(instruction_counters_, committed_by_class_);
  statistics_.cycles += account_.until() - statistics_.cycles.value();
  statistics_.instructions += instructions_ - statistics_.instructions.value();
}

std::vector<Wait> Core::waits() const {
  const auto holder = [](const PortBase& port) {
    return port.width() > 0 ? port.lanes()[0].peer->owner().name() : "";
  };
  if (committed_ < next_) {
    const std::string outstanding = caches_->waits();
    return {{"instruction " + std::to_string(committed_) + " is not complete" +
                 (outstanding.empty() ? "" : " (" + outstanding + ")"),
             holder(memory_)}};
  }
  if (begun_ && !ended_) return {{"records to execute", holder(work_)}};
  return {};
}

}  // namespace manyscale::cpu
