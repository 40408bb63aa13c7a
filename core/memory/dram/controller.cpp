// SPDX-License-Identifier: Apache-2.0
#include "memory/dram/controller.hpp"

#include <string>

namespace manyscale::memory {

namespace {

// Row hits go before other commands; within each kind the older goes first.
constexpr std::uint64_t after_hits = std::uint64_t{1} << 62;
constexpr std::uint64_t urgent = 0;

}  // namespace

DramController::DramController(const DramSpec& spec, DramStatistics& statistics,
                               Attributed<DramCounts>& traffic)
    : spec_(spec),
      map_(spec),
      period_(period_of(spec.clock)),
      statistics_(statistics),
      traffic_(traffic),
      gates_(spec),
      queues_{BurstQueue(static_cast<std::size_t>(spec.read_queue), gates_.bank_count()),
              BurstQueue(static_cast<std::size_t>(spec.write_queue), gates_.bank_count())},
      input_(64) {
  if (spec.trefi == 0) return;
  banks_per_refresh_ = spec.refresh_by_bank ? 1 : gates_.banks_per_rank();
  // Ranks or banks take turns, so that they are not all away at the same time.
  const std::uint32_t count = gates_.bank_count() / banks_per_refresh_;
  for (std::uint32_t i = 0; i < count; ++i) {
    refreshes_.push_back({{i * banks_per_refresh_, (i + 1) * banks_per_refresh_},
                          spec.trefi + spec.refresh_offset + spec.trefi * i / count});
  }
  find_next_due();
}

Cycle DramController::arrive(std::uint64_t address, const Message& answer, bool write, bool wants_ack,
                             std::uint32_t lane, Time now, Cycle cycle) {
  if (idle()) {
    catch_up(cycle);
    planned_ = false;
  }
  if (cycle >= next_due_) mark_due(cycle);
  statistics_.read_queue_length.record(static_cast<std::int64_t>(queues_[reading].size()));
  statistics_.write_queue_length.record(static_cast<std::int64_t>(queues_[writing].size()));
  statistics_.input_queue_length.record(static_cast<std::int64_t>(input_count_));

  if (free_requests_.empty()) {
    free_requests_.push_back(static_cast<std::uint32_t>(requests_.size()));
    requests_.emplace_back();
  }
  const std::uint32_t index = free_requests_.back();
  free_requests_.pop_back();
  const std::uint64_t local = map_.local(address);
  const std::uint32_t bursts = burst_mask(local, answer.sectors, map_.burst_shift());
  Request& request = requests_[index];
  request = {answer,
             local >> map_.burst_shift(),
             now,
             0,
             lane,
             bursts,
             static_cast<std::uint8_t>(std::popcount(bursts)),
             write,
             wants_ack,
             false};
  traffic_.begin(answer.origin);

  if (input_count_ == 0) enter(index, request, cycle);
  if (requests_[index].entering != 0) {
    if (input_count_ == input_.size()) {
      std::vector<std::uint32_t> larger(input_.size() * 2);
      for (std::size_t i = 0; i < input_count_; ++i) {
        larger[i] = input_[(input_first_ + i) & (input_.size() - 1)];
      }
      input_.swap(larger);
      input_first_ = 0;
    }
    input_[(input_first_ + input_count_++) & (input_.size() - 1)] = index;
  }
  if (!planned_) make_plan(cycle);
  return std::min(plan_.cycle, next_due_);
}

void DramController::admit(Cycle now) {
  while (input_count_ > 0) {
    const std::uint32_t index = input_[input_first_];
    enter(index, requests_[index], now);
    if (requests_[index].entering != 0) return;
    input_first_ = (input_first_ + 1) & (input_.size() - 1);
    --input_count_;
  }
}

// Puts as many bursts of a request into its queue as there is room for. The last one in may finish the
// request, whose slot is then free; `entering` is 0 in any case.
void DramController::enter(std::uint32_t index, Request& request, Cycle now) {
  const BusDirection direction = request.write ? writing : reading;
  while (request.entering != 0) {
    const std::uint64_t burst =
        request.burst + static_cast<std::uint64_t>(std::countr_zero(request.entering));
    const DramAddress address = map_.decode(burst);
    if (direction == reading && !queues_[writing].empty() && queues_[writing].holds(address)) {
      request.entering &= request.entering - 1;
      ++counts_of(index).forwarded;
      start(request, now);
      finish(index, now + 1);
      continue;
    }
    if (queues_[direction].full()) return;
    request.entering &= request.entering - 1;
    insert(index, address, direction, now);
  }
  if (request.write && request.wants_ack) {
    request.wants_ack = false;
    answers_.push_back({request.answer, request.lane, DramAnswer::at_once});
  }
}

// Looks at the next command of a bank with bursts in the present direction, and takes it for the plan where
// it comes before the present one.
inline void DramController::consider(std::uint32_t index, Cycle now) {
  const DramGates::Bank& bank = gates_.bank(index);
  const bool refreshing = pending_refreshes_ > 0 && refresh_of(index).pending;
  const BurstQueue& queue = queues_[direction_];
  DramCommand command = DramCommand::activate;
  std::uint16_t burst = queue.oldest_in(index);
  Cycle cycle = 0;
  std::uint64_t key = after_hits;
  if (bank.open_row < 0) {
    cycle = std::max(row_bus_, gates_.earliest_activate(bank));
  } else {
    std::uint16_t hit = queue.hit_in(index);
    // A starving burst does not wait for others: not for hits in its bank, and where it needs the data bus
    // itself not for any.
    if (starving_ != BurstQueue::none && hit != BurstQueue::none && hit != starving_) {
      if (columns_held_) return;
      if (queue[starving_].address.bank == index) hit = BurstQueue::none;
    }
    if (hit != BurstQueue::none) {
      command = direction_ == reading ? DramCommand::read : DramCommand::write;
      burst = hit;
      cycle = std::max(column_bus_, gates_.earliest_column(bank, direction_));
      key = 0;
    } else {
      command = DramCommand::precharge;
      cycle = std::max(row_bus_, bank.precharge);
    }
  }
  cycle = std::max(cycle, now);
  if (cycle > plan_.cycle) return;
  // Before a refresh, rows that were just opened may still be used, but no others are opened or closed.
  if (refreshing && (key != 0 || cycle >= refresh_of(index).due + spec_.tras)) return;
  key = burst == starving_ ? urgent : key | queue[burst].order;
  if (cycle == plan_.cycle && key >= plan_.key) return;
  plan_ = {cycle, key, command, burst, index};
}

void DramController::insert(std::uint32_t index, const DramAddress& address, BusDirection direction,
                            Cycle now) {
  Burst burst;
  burst.address = address;
  burst.request = index;
  burst.order = ++order_;
  burst.entered = now;
  queues_[direction].push(burst, gates_.bank(address.bank).open_row);
  if (!planned_) return;
  // Only this bank's next command can have changed, unless the direction turns.
  if (wanted_direction(now) != direction_) {
    planned_ = false;
  } else if (direction == direction_) {
    if (plan_.command == DramCommand::precharge && plan_.bank_or_refresh == address.bank) {
      planned_ = false;  // the row may be wanted after all
    } else {
      consider(address.bank, now);
    }
  }
}

void DramController::start(Request& request, Cycle now) {
  if (request.started) return;
  request.started = true;
  statistics_.queueing_delay.record(now * period_ - request.arrived);
}

// One more burst of a request is done, at a cycle.
void DramController::finish(std::uint32_t index, Cycle cycle) {
  Request& request = requests_[index];
  request.finish = std::max(request.finish, cycle);
  if (--request.left != 0) return;
  if (!request.write) {
    statistics_.read_latency.record(request.finish * period_ - request.arrived);
    answers_.push_back({request.answer, request.lane, request.finish});
  }
  traffic_.end(request.answer.origin);
  free_requests_.push_back(index);
}

BusDirection DramController::wanted_direction(Cycle now) const {
  const BurstQueue& reads = queues_[reading];
  const BurstQueue& writes = queues_[writing];
  if (writes.empty()) return reading;
  if (reads.empty()) return writing;
  if (starving(reads, now)) return reading;
  const auto waiting = static_cast<std::int64_t>(writes.size());
  if (waiting >= spec_.write_high) return writing;
  return direction_ == writing && forced_ && waiting > spec_.write_low ? writing : reading;
}

Cycle DramController::tick(Cycle now) {
  if (idle()) return never;
  if (now >= next_due_) mark_due(now);
  if (!planned_) make_plan(now);
  while (plan_.cycle <= now) {
    issue(plan_);
    admit(now);
    if (idle()) {
      planned_ = false;
      return never;
    }
    make_plan(now);
  }
  return std::min(plan_.cycle, next_due_);
}

void DramController::make_plan(Cycle now) {
  const BusDirection wanted = wanted_direction(now);
  if (wanted != direction_) {
    direction_ = wanted;
    forced_ = false;
    if (wanted == writing) ++statistics_.drains;
  }
  if (direction_ == writing && static_cast<std::int64_t>(queues_[writing].size()) >= spec_.write_high) {
    forced_ = true;
  }
  const BurstQueue& queue = queues_[direction_];
  starving_ = starving(queue, now) ? queue.oldest() : BurstQueue::none;
  columns_held_ = starving_ != BurstQueue::none &&
                  gates_.bank(queue[starving_].address.bank).open_row == queue[starving_].address.row;
  plan_ = {};
  queue.for_each_bank([&](std::uint32_t bank) { consider(bank, now); });
  if (pending_refreshes_ > 0) {
    for (std::uint32_t index = 0; index < refreshes_.size(); ++index) {
      if (!refreshes_[index].pending) continue;
      const Plan next = refresh_candidate(index, now);
      if (next.before(plan_)) plan_ = next;
    }
  }
  planned_ = true;
}

DramController::Plan DramController::refresh_candidate(std::uint32_t index, Cycle now) const {
  const DramGates::BankRange banks = refreshes_[index].banks;
  Plan plan;
  plan.bank_or_refresh = index;
  plan.key = urgent;
  if (gates_.any_open(banks)) {
    plan.command = DramCommand::precharge_all;
    plan.cycle = std::max({now, row_bus_, gates_.earliest_precharge_of(banks)});
  } else {
    plan.command = DramCommand::refresh;
    plan.cycle = std::max({now, row_bus_, gates_.earliest_refresh(banks)});
  }
  return plan;
}

void DramController::issue(const Plan& plan) {
  const std::uint32_t bank = plan.bank_or_refresh;
  BurstQueue& queue = queues_[direction_];
  switch (plan.command) {
    case DramCommand::activate: {
      Burst& burst = queue[plan.burst];
      burst.activated = true;
      start(requests_[burst.request], plan.cycle);
      gates_.activate(bank, burst.address.row, plan.cycle);
      for (BurstQueue& each : queues_) each.row_opened(bank, burst.address.row);
      ++counts_of(burst.request).activates;
      occupy_bus(false, plan.cycle);
      record(plan.cycle, plan.command, bank, burst.address.row, -1);
      break;
    }
    case DramCommand::precharge: {
      Burst& burst = queue[plan.burst];
      burst.precharged = true;
      start(requests_[burst.request], plan.cycle);
      gates_.precharge(bank, plan.cycle);
      for (BurstQueue& each : queues_) each.row_closed(bank);
      ++statistics_.precharges;
      occupy_bus(false, plan.cycle);
      record(plan.cycle, plan.command, bank, -1, -1);
      break;
    }
    case DramCommand::precharge_all:
      close_for(refreshes_[plan.bank_or_refresh], plan.cycle);
      break;
    case DramCommand::refresh:
      refresh(refreshes_[plan.bank_or_refresh], plan.cycle);
      break;
    default:
      issue_column(plan);
  }
}

void DramController::issue_column(const Plan& plan) {
  BurstQueue& queue = queues_[direction_];
  const Burst burst = queue[plan.burst];
  const std::uint32_t bank = burst.address.bank;
  DramCounts& counts = counts_of(burst.request);
  ++(burst.precharged ? counts.row_conflicts : burst.activated ? counts.row_misses : counts.row_hits);
  const Time moving = spec_.burst_cycles * period_;
  counts.bus_busy += moving;
  const Cycle data = plan.cycle + (direction_ == reading ? spec_.tcl : spec_.tcwl);
  statistics_.note_bus(direction_ == writing, data * period_, moving);
  start(requests_[burst.request], plan.cycle);
  queue.pop_hit(bank);
  const bool close = spec_.closed_page && queues_[reading].hit_in(bank) == BurstQueue::none &&
                     queues_[writing].hit_in(bank) == BurstQueue::none;
  gates_.column(bank, direction_, close, plan.cycle);
  occupy_bus(true, plan.cycle);
  if (direction_ == reading) {
    record(plan.cycle, close ? DramCommand::read_precharge : DramCommand::read, bank, burst.address.row,
           burst.address.column);
    finish(burst.request, plan.cycle + spec_.tcl + spec_.burst_cycles);
  } else {
    record(plan.cycle, close ? DramCommand::write_precharge : DramCommand::write, bank, burst.address.row,
           burst.address.column);
    finish(burst.request, plan.cycle + spec_.tcwl + spec_.burst_cycles);
  }
}

// Closes the banks that a refresh is for.
void DramController::close_for(const Refresh& refresh, Cycle now) {
  for (std::uint32_t bank = refresh.banks.first; bank < refresh.banks.end; ++bank) {
    gates_.precharge(bank, now);
    for (BurstQueue& each : queues_) each.row_closed(bank);
  }
  ++statistics_.precharges;
  occupy_bus(false, now);
  record(now, spec_.refresh_by_bank ? DramCommand::precharge : DramCommand::precharge_all,
         refresh.banks.first, -1, -1);
}

void DramController::refresh(Refresh& entry, Cycle now) {
  gates_.refresh(entry.banks, now);
  entry.due += spec_.trefi;
  if (entry.pending) --pending_refreshes_;
  entry.pending = false;
  find_next_due();
  ++statistics_.refreshes;
  occupy_bus(false, now);
  record(now, spec_.refresh_by_bank ? DramCommand::refresh_bank : DramCommand::refresh, entry.banks.first, -1,
         -1);
}

void DramController::mark_due(Cycle now) {
  for (Refresh& entry : refreshes_) {
    if (entry.pending || entry.due > now) continue;
    entry.pending = true;
    ++pending_refreshes_;
  }
  find_next_due();
  planned_ = false;
}

// The next cycle at which a rank or bank has to be refreshed that does not wait for it already.
void DramController::find_next_due() {
  next_due_ = never;
  for (const Refresh& entry : refreshes_) {
    if (!entry.pending) next_due_ = std::min(next_due_, entry.due);
  }
}

void DramController::catch_up(Cycle now) {
  if ((now <= next_due_ && pending_refreshes_ == 0) || !idle()) return;
  for (;;) {
    Refresh& entry = *std::min_element(refreshes_.begin(), refreshes_.end(),
                                       [](const Refresh& a, const Refresh& b) { return a.due < b.due; });
    const Cycle missed = (now - entry.due) / spec_.trefi;
    if (!spec_.log_commands && missed > 1) {
      // All but the last left nothing behind but closed rows, and that one closes them too.
      statistics_.refreshes += missed - 1;
      entry.due += (missed - 1) * spec_.trefi;
      find_next_due();
      continue;
    }
    const bool open = gates_.any_open(entry.banks);
    const Cycle precharge = std::max({entry.due, row_bus_, gates_.earliest_precharge_of(entry.banks)});
    const Cycle refreshed = std::max(
        {entry.due, row_bus_, gates_.earliest_refresh(entry.banks), open ? precharge + spec_.trp : 0});
    if (refreshed >= now) return;
    if (open) close_for(entry, precharge);
    refresh(entry, refreshed);
  }
}

void DramController::occupy_bus(bool column, Cycle now) {
  if (column || !spec_.separate_row_bus) column_bus_ = now + 1;
  if (!column || !spec_.separate_row_bus) row_bus_ = now + 1;
}

void DramController::record(Cycle now, DramCommand command, std::uint32_t bank, std::int32_t row,
                            std::int32_t column) {
  if (!spec_.log_commands) return;
  const bool whole_rank = command == DramCommand::precharge_all || command == DramCommand::refresh;
  const auto group = static_cast<std::int16_t>(gates_.bank(bank).group % spec_.bank_groups);
  log_.push_back({now, command, static_cast<std::int16_t>(gates_.bank(bank).rank),
                  static_cast<std::int16_t>(whole_rank ? -1 : group),
                  static_cast<std::int16_t>(whole_rank ? -1 : bank % static_cast<std::uint32_t>(spec_.banks)),
                  row, column});
}

}  // namespace manyscale::memory
