// SPDX-License-Identifier: Apache-2.0
// Issue and execution: when results are there. What touches memory further ahead than the quantum is put off.
#include <algorithm>
#include <utility>

#include "cpu/core/core.hpp"

namespace manyscale::cpu {

namespace {

// Ports know the next cycles only; what issues later than this is put off too. Units know all that waits for
// them: were some of it put off, the rest would leave gaps too short for it.
constexpr Cycle furthest_issue = CycleMap::range / 2;
// An access that few cycles beyond the quantum is not put off again.
constexpr Cycle slack = 16;

}  // namespace

// All operands have a cycle: finds one to issue in.
void Core::schedule(Operation& operation) {
  const Record& record = operation.record;
  if (operation.stage == Stage::oldest) return;  // commit begins it
  if (operation.ready < earliest_) {
    operation.ready = earliest_;
    operation.wait_cause = Cause::synchronisation;
  }
  const Cycle ready = operation.ready;
  if (record.kind == InstructionClass::load) {
    issue_load(operation, ready);
  } else if (record.kind == InstructionClass::store) {
    issue_store(operation, ready);
  } else if (ready > earliest_ + furthest_issue && !ports_.keeps_unit(record)) {
    defer(operation, ready);
  } else {
    operation.issued = ports_.take(record, ready, earliest_);
    dispatch_.issue(record, operation.issued);
    finish(operation, operation.issued + ports_.latency(record));
  }
}

void Core::defer(Operation& operation, Cycle cycle) {
  ++statistics_.deferred;
  wheel_.add(window_.index(operation), cycle);
}

// An operation that was put off.
void Core::due(Operation& operation) {
  switch (operation.stage) {
    case Stage::operands:
      schedule(operation);
      break;
    default:
      go_on_translated(operation);
      break;
  }
}

void Core::issue_load(Operation& operation, Cycle ready) {
  if (!spec_.speculative_loads) {
    const Cycle known = stores_.addresses_known_before(operation.store);
    if (known == unknown) {
      unknown_stores_.push_back(window_.index(operation));
      return;
    }
    ready = operation.ready = std::max(ready, known);
  }
  if (ready > horizon_) {
    defer(operation, ready);
    return;
  }
  operation.issued = ports_.take(operation.record, ready, earliest_);
  dispatch_.issue(operation.record, operation.issued);
  operation.cause = Cause::l1;
  ++statistics_.loads;
  execute_load(operation, operation.issued + ports_.latency(operation.record));
}

void Core::execute_load(Operation& operation, Cycle when) {
  const Record& record = operation.record;
  const StoreQueue::Store* store = stores_.find(record.address, record.size, operation.store);
  if (store == nullptr) {
    if (translate(operation, when)) go_on_translated(operation);
    return;
  }
  if (store->complete == unknown) {
    operation.stage = Stage::store;
    operation.unknown_operands = 1;
    operation.ready = when;
    window_.wait(operation, 0, window_[store->number]);
    return;
  }
  const bool covered =
      store->address <= record.address && record.address + record.size <= store->address + store->size;
  ++(covered ? statistics_.forwarded_loads : statistics_.failed_forwards);
  finish(operation,
         std::max(when, store->complete) + (covered ? spec_.forward_latency : spec_.failed_forward_latency));
}

// A store issues when its address is known; its data may come later.
void Core::issue_store(Operation& operation, Cycle ready) {
  if (ready > horizon_) {
    defer(operation, ready);
    return;
  }
  operation.issued = ports_.take(operation.record, ready, earliest_);
  dispatch_.issue(operation.record, operation.issued);
  if (translate(operation, operation.issued + ports_.latency(operation.record))) go_on_translated(operation);
}

// Finds the cycle at which the operation's access can begin; false if it depends on a page walk.
bool Core::translate(Operation& operation, Cycle when) {
  using Outcome = TranslationUnit::Lookup::Outcome;
  const auto found = translation_.lookup(operation.record.address, TranslationUnit::Side::data);
  operation.translated = when;
  if (found.outcome == Outcome::known) {
    operation.translated += found.cycles;
    operation.stage = Stage::access;
    return true;
  }
  operation.stage = Stage::translation;
  translations_.push_back(window_.index(operation));
  if (found.outcome == Outcome::walk) walk(found.walk, when + found.cycles);
  return false;
}

void Core::go_on_translated(Operation& operation) {
  if (operation.record.kind == InstructionClass::store) {
    stores_.address_is_known(operation.store, operation.translated);
    if (!operation.data_unknown) complete_store(operation);
    if (unknown_stores_.empty()) return;
    const std::vector<std::uint32_t> waiting = std::exchange(unknown_stores_, {});
    for (const std::uint32_t index : waiting) schedule(window_[index]);
    return;
  }
  if (operation.translated > horizon_ + slack) {
    defer(operation, operation.translated);
    return;
  }
  access_cache(operation);
}

void Core::complete_store(Operation& operation) {
  const Cycle cycle = std::max(operation.translated, operation.arrived);
  stores_[operation.store].complete = cycle;
  finish(operation, cycle);
}

// What crosses a line takes two accesses, the second a cycle later.
void Core::access_cache(Operation& operation) {
  const Record& record = operation.record;
  const bool split = (record.address & line_mask_) + record.size > line_mask_ + 1;
  operation.parts = split ? 2 : 1;
  access_part(operation, 0, operation.translated);
  if (!split) return;
  ++statistics_.split_accesses;
  access_part(operation, 1, operation.translated + 1);
}

void Core::access_part(Operation& operation, std::uint32_t part, Cycle when) {
  const Record& record = operation.record;
  memory::Access access;
  access.address = part == 0 ? record.address : (record.address | line_mask_) + 1;
  access.size = static_cast<std::uint32_t>(
      part == 1 ? record.address + record.size - access.address
                : std::min<std::uint64_t>(record.size, line_mask_ + 1 - (record.address & line_mask_)));
  access.token = load_token | window_.index(operation);
  access.id = static_cast<std::uint32_t>(record.pc);
  access.kind =
      record.kind == InstructionClass::load ? memory::AccessKind::load : memory::AccessKind::atomic_add;
  const memory::AccessResult result = caches_->access(access, time_of(when));
  switch (result.status) {
    case memory::AccessResult::Status::done:
      operation.arrived = std::max(operation.arrived, cycle_of(result.ready));
      operation.cause = std::max(operation.cause, cause_of(result.served));
      if (--operation.parts == 0) finish(operation, operation.arrived);
      break;
    case memory::AccessResult::Status::waiting:
      break;
    case memory::AccessResult::Status::blocked:
      blocked_.push_back({access.token, part, when});
      break;
  }
}

// An atomic operation, fence or system call at the head of the window, with its operands there.
void Core::begin_oldest(Operation& operation) {
  const Record& record = operation.record;
  if (operation.stage != Stage::oldest || operation.unknown_operands > 0) return;
  Cycle cycle = std::max({operation.ready, commit_.cycle(), earliest_});
  if (record.kind == InstructionClass::fence ||
      (record.kind == InstructionClass::atomic && total_store_order_)) {
    if (!stores_.written_before(operation.store)) return;
    cycle = std::max(cycle, stores_.latest_written());
  }
  operation.ready = cycle;
  // Lines that cores synchronise by are wanted by others too: these are not taken ahead of time.
  if (cycle > (spec_.coherent ? earliest_ : horizon_)) {
    oldest_wake_ = cycle;
    return;
  }
  operation.issued = ports_.take(record, cycle, earliest_);
  dispatch_.issue(record, operation.issued);
  if (record.has(Trait::halts_stream)) {
    work_.send({halted_, StreamRequest::Type::reached}, std::max<Time>(0, time_of(cycle) - now()));
  }
  if (record.kind != InstructionClass::atomic) {
    operation.stage = Stage::done;
    finish(operation, operation.issued + ports_.latency(record));
    return;
  }
  if (translate(operation, operation.issued + ports_.latency(record))) go_on_translated(operation);
}

void Core::finish(Operation& operation, Cycle cycle) {
  operation.complete = cycle;
  operation.stage = Stage::done;
  dispatch_.complete(operation.timing, cycle);
  if (operation.waiters != Window::none) resolved_.push_back(window_.index(operation));
}

// Wakes the operations that wait for results, and then those that wait for theirs.
void Core::wake_waiters() {
  for (std::size_t i = 0; i < resolved_.size(); ++i) {
    Operation& producer = window_[resolved_[i]];
    const Cycle cycle = producer.complete;
    window_.wake(producer, [&](Operation& waiter, std::uint32_t operand) {
      // A load that waits for a store, and an access that waits for a fence, has no delay of its own.
      const bool own = operand < waiter.timing.delays.size() && waiter.stage != Stage::store;
      const Cycle ready = cycle + (own ? waiter.timing.delays[operand] : 0);
      if (operand == 0 && waiter.data_unknown) {
        waiter.data_unknown = false;
        waiter.arrived = std::max(waiter.arrived, ready);
        if (waiter.stage == Stage::access) complete_store(waiter);
        return;
      }
      waiter.ready = std::max(waiter.ready, ready);
      if (--waiter.unknown_operands > 0) return;
      if (waiter.stage == Stage::store) {
        execute_load(waiter, waiter.ready);
      } else {
        schedule(waiter);
      }
    });
  }
  resolved_.clear();
}

// Goes on with a page walk; true if it is done already.
bool Core::walk(std::uint32_t walk, Cycle when) {
  const auto progress = translation_.proceed(walk, *caches_, time_of(when), walk_token | walk);
  using Status = TranslationUnit::Progress::Status;
  if (progress.status == Status::done) {
    walk_done(cycle_of(progress.ready));
    return true;
  }
  if (progress.status == Status::blocked) blocked_.push_back({walk_token | walk, 0, when});
  return false;
}

// All who waited for some walk look again: the page may be there, or a walker free.
void Core::walk_done(Cycle cycle) {
  if (fetch_.is_walking()) fetch_.translated(cycle);
  const std::vector<std::uint32_t> waiting = std::exchange(translations_, {});
  for (const std::uint32_t index : waiting) {
    Operation& operation = window_[index];
    if (translate(operation, std::max(operation.translated, cycle))) go_on_translated(operation);
  }
}

}  // namespace manyscale::cpu
