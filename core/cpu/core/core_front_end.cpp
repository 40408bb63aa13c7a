// SPDX-License-Identifier: Apache-2.0
// Fetch and dispatch: when each record enters the window.
#include <algorithm>
#include <utility>

#include "cpu/core/core.hpp"

namespace manyscale::cpu {

// The core had nothing left to do, and now has. What follows an atomic operation or a fence was fetched
// behind it; only its records are not announced yet. What follows a system call or a sleep is fetched now.
void Core::records_arrived() {
  starved_ = false;
  const bool system = next_ > 0 && window_[next_ - 1].record.kind == InstructionClass::system;
  if (begun_ && !asleep_ && !system) {
    if (next_ > 0 && !waits_until_oldest(window_[next_ - 1].record.kind)) ++statistics_.stream_waits;
    return;
  }
  front_cause_ = !begun_ ? Cause::idle : asleep_ ? Cause::sleeping : Cause::synchronisation;
  begun_ = true;
  asleep_ = false;
  if (earliest_ >= fetch_.cycle()) fetch_.restart(earliest_);
}

void Core::take_records() {
  front_wake_ = unknown;
  while (taken_ < available_) {
    const Record& record = (*ring_)[taken_];
    const ElasticTiming& timing = std::as_const(*ring_).timing(taken_);
    if (record.kind == InstructionClass::marker) {
      markers_.push_back({next_, record.address, record.thread, record.has(Trait::pauses)});
    } else {
      if (!head_fetched_ && !fetch(record, timing)) break;
      if (!dispatch(record, timing)) break;
      if (!resolved_.empty()) tell_waiters();
    }
    ++taken_;
    if (taken_ - told_ >= ring_->capacity() / 4) {
      told_ = taken_;
      // So that it arrives when the next quantum begins and the cores work: the source then works beside
      // them.
      const Time way = work_.lanes()[0].latency;
      work_.send({told_, StreamRequest::Type::wants_more}, std::max<Time>(0, quantum_end_ - now() - way));
    }
  }
  if (taken_ == available_) starved_ = true;
}

// Finds the cycle in which the record is fetched.
bool Core::fetch(const Record& record, const ElasticTiming& timing) {
  if (redirecting_ && !wait_for_redirect()) return false;
  if (next_ >= static_cast<std::uint64_t>(fetch_buffer_)) {
    const Cycle free = window_[next_ - static_cast<std::uint64_t>(fetch_buffer_)].dispatched;
    if (free > fetch_.cycle()) fetch_.restart(free);
  }
  fetch_.find_slot(record, timing);
  if ((record.pc & ~line_mask_) != fetch_line_ && spec_.l1i.size > 0) {
    if (!fetch_line(record)) return false;
  }
  fetch_.take(record);
  head_fetched_ = true;
  return true;
}

// After a branch that was predicted wrong, or a system call, fetch goes on when that is complete.
bool Core::wait_for_redirect() {
  const Operation& operation = window_[redirect_];
  if (operation.complete == unknown) return false;
  redirecting_ = false;
  const bool branch = operation.record.is_control();
  const Cycle from = operation.complete + (branch ? spec_.mispredict_penalty : 0);
  if (from >= fetch_.cycle()) fetch_.restart(from);
  if (branch) front_cause_ = Cause::branch;
  return true;
}

// Fetches the record's line from the instruction cache; a hit's latency is part of the front end's depth.
bool Core::fetch_line(const Record& record) {
  if (fetch_waiting_) return false;
  if (fetch_arrived_) {
    fetch_arrived_ = false;
    fetch_line_ = record.pc & ~line_mask_;
    return true;
  }
  if (fetch_.cycle() > horizon_) {
    front_wake_ = fetch_.cycle();
    return false;
  }
  if (!translate_fetch(record.pc)) return false;
  fetch_begun_ = std::max(fetch_.cycle(), earliest_);
  memory::Access access;
  access.address = record.pc & ~line_mask_;
  access.size = 4;
  access.token = fetch_token;
  access.kind = memory::AccessKind::fetch;
  const memory::AccessResult result = caches_->access(access, time_of(fetch_begun_));
  if (result.status == memory::AccessResult::Status::blocked) return false;
  ++statistics_.instruction_lines;
  if (result.status == memory::AccessResult::Status::waiting) {
    fetch_waiting_ = true;
    return false;
  }
  line_arrived(cycle_of(result.ready));
  fetch_arrived_ = false;
  fetch_line_ = record.pc & ~line_mask_;
  return true;
}

void Core::line_arrived(Cycle cycle) {
  fetch_waiting_ = false;
  fetch_arrived_ = true;
  const Cycle missed = cycle - fetch_begun_ - instruction_hit_;
  if (missed <= 0) return;
  // The core may have come to this record only when those before it were dispatched; fetch was here before.
  fetch_.restart(fetch_.cycle() + missed);
  stall_cause_ = Cause::fetch;
  stall_cycles_ = missed;
}

// Whether the address of the next instruction is translated; a walk wakes the front end when it is done.
bool Core::translate_fetch(std::uint64_t pc) {
  using Outcome = TranslationUnit::Lookup::Outcome;
  for (;;) {
    const auto found = translation_.lookup(pc, TranslationUnit::Side::instruction);
    if (found.outcome == Outcome::known) {
      if (found.cycles > 0) fetch_translated(fetch_.cycle() + found.cycles);
      fetch_walking_ = false;
      return true;
    }
    fetch_walking_ = true;
    if (found.outcome != Outcome::walk) return false;
    if (!walk(found.walk, std::max(fetch_.cycle(), earliest_) + found.cycles)) return false;
    // The walk was done at once, but its end may lie ahead.
    if (fetch_.cycle() > horizon_) {
      front_wake_ = fetch_.cycle();
      return false;
    }
  }
}

void Core::fetch_translated(Cycle cycle) {
  if (cycle <= fetch_.cycle()) return;
  stall_cause_ = Cause::fetch_tlb;
  stall_cycles_ += cycle - fetch_.cycle();
  fetch_.restart(cycle);
}

void Core::follow_branch(const Record& record, Prediction recorded) {
  const Prediction prediction = predictor_.predict(record, recorded);
  const bool taken = record.kind != InstructionClass::branch || record.has(Trait::taken);
  if (taken) fetch_.end_cycle();
  if (prediction == Prediction::misfetch) {
    ++statistics_.misfetches;
    fetch_.stall(spec_.misfetch_penalty);
    fetch_.end_cycle();
    front_cause_ = Cause::branch;
  } else if (prediction == Prediction::mispredict) {
    ++statistics_.mispredicts;
    redirecting_ = true;
    redirect_ = next_;
    fetch_.end_cycle();
  }
}

// The first cycle at which all buffers have an entry for the record; unknown if that depends
// on what is in flight.
Cycle Core::dispatch_cycle(const Record& record, const ElasticTiming& timing) {
  Cycle cycle = std::max(fetch_.cycle() + spec_.front_end_depth, dispatch_.cycle());
  stalls_ = {};
  const auto wait_for = [&](Cycle free, Stall stall) {
    if (free == unknown) return false;
    if (free > cycle) {
      stalls_[stall] += free - cycle;
      cycle = free;
    }
    return true;
  };
  const Cycle entries_free = reorder_buffer_.earliest(timing, window_, next_);
  if (entries_free == unknown) return unknown;
  const DispatchSlots::Slot slot = dispatch_.next(timing.weight);
  cycle = std::max(cycle, slot.compacted);
  wait_for(entries_free, stall_reorder_buffer);
  cycle = std::max(cycle, slot.cycle);
  if (!wait_for(queues_[queue_of(record.kind)].earliest(cycle), stall_issue_queue)) return unknown;
  if (record.has(Trait::writes_integer) && !wait_for(integer_registers_.earliest(), stall_registers))
    return unknown;
  if (record.has(Trait::writes_float) && !wait_for(float_registers_.earliest(), stall_registers))
    return unknown;
  if (record.kind == InstructionClass::load && !wait_for(loads_.earliest(), stall_load_queue)) return unknown;
  if (record.kind == InstructionClass::store) {
    const Cycle before = cycle;
    if (!wait_for(stores_.earliest(), stall_store_queue)) return unknown;
    if (cycle > before) {
      stall_cause_ = Cause::store_buffer;
      stall_cycles_ = cycle - before;
    }
  }
  if (spec_.in_order && next_ > 0 && window_[next_ - 1].issued == unknown) return unknown;
  dispatch_used_ = cycle == slot.cycle ? slot.used : 0;
  return cycle;
}

bool Core::dispatch(const Record& record, const ElasticTiming& timing) {
  const Cycle cycle = dispatch_cycle(record, timing);
  if (cycle == unknown) return false;
  if (cycle > horizon_) {
    front_wake_ = cycle;
    return false;
  }
  statistics_.stall_reorder_buffer += stalls_[stall_reorder_buffer];
  statistics_.stall_issue_queue += stalls_[stall_issue_queue];
  statistics_.stall_load_queue += stalls_[stall_load_queue];
  statistics_.stall_store_queue += stalls_[stall_store_queue];
  statistics_.stall_registers += stalls_[stall_registers];
  dispatch_.take(cycle, dispatch_used_);
  queues_[queue_of(record.kind)].enter();
  if (const std::uint32_t waiters = waiters_of(timing); waiters > 0) queues_[0].enter(waiters);
  if (record.has(Trait::writes_integer)) integer_registers_.take();
  if (record.has(Trait::writes_float)) float_registers_.take();
  if (record.kind == InstructionClass::load) loads_.take();
  Operation& operation = window_[next_];
  operation.record = record;
  operation.timing = timing;
  operation.fetched = fetch_.cycle();
  operation.dispatched = cycle;
  operation.ready = cycle + 1;
  operation.issued = unknown;
  operation.translated = 0;
  operation.arrived = 0;
  operation.complete = unknown;
  operation.committed = unknown;
  operation.reorder_entry = reorder_buffer_.take(timing);
  operation.waiters = Window::none;
  operation.unknown_operands = 0;
  operation.parts = 0;
  operation.data_unknown = false;
  operation.stage = Stage::operands;
  operation.front_cause = front_cause_;
  operation.stall_cause = stall_cause_;
  operation.stall_cycles = static_cast<std::uint16_t>(std::min<Cycle>(stall_cycles_, 65535));
  operation.wait_cause = Cause::dependency;
  operation.cause = Cause::dependency;
  front_cause_ = Cause::base;
  stall_cycles_ = 0;
  head_fetched_ = false;
  if (record.kind == InstructionClass::store) {
    operation.store =
        stores_.enter(record.address, record.size, next_, static_cast<std::uint32_t>(record.pc));
  } else {
    operation.store = stores_.entered();
  }
  find_operands(operation);
  if (waits_until_oldest(record.kind)) {
    operation.stage = Stage::oldest;
    operation.wait_cause = operation.cause = Cause::synchronisation;
    if (record.kind == InstructionClass::fence ||
        (record.kind == InstructionClass::atomic && total_store_order_)) {
      fenced_ = true;
      fence_ = next_;
    }
    if (record.kind == InstructionClass::system) {
      redirecting_ = true;
      redirect_ = next_;
    }
    if (record.has(Trait::halts_stream)) halted_ = taken_;
  } else if (record.is_control()) {
    follow_branch(record, timing.prediction);
  }
  ++next_;
  if (operation.unknown_operands == 0) schedule(operation);
  return true;
}

// Looks up when the operands will be there, or gets in line for them.
void Core::find_operands(Operation& operation) {
  const Record& record = operation.record;
  const auto need = [&](std::uint32_t operand, std::uint64_t number, Cycle delay, Cycle& ready) {
    Operation& producer = window_[number];
    if (producer.complete != unknown) {
      ready = std::max(ready, producer.complete + delay);
      return false;
    }
    window_.wait(operation, operand, producer);
    return true;
  };
  const bool data_apart = record.kind == InstructionClass::store && !spec_.in_order;
  for (std::uint32_t operand = 0; operand < record.producers.size(); ++operand) {
    const std::uint64_t distance = record.producers[operand];
    const Cycle delay = operation.timing.delays[operand];
    const bool is_data = operand == 0 && data_apart;
    Cycle& ready = is_data ? operation.arrived : operation.ready;
    if (distance == 0) {
      if (delay > 0) ready = std::max(ready, operation.dispatched + 1 + delay);
      continue;
    }
    // What was committed so long ago cannot matter.
    if (distance > next_ || distance >= window_.size()) continue;
    if (operation.timing.counts_from_dispatch(operand)) {
      ready = std::max(ready, window_[next_ - distance].dispatched + 1 + delay);
      continue;
    }
    const bool waits = need(operand, next_ - distance, delay, ready);
    if (is_data) {
      operation.data_unknown = waits;
    } else {
      operation.unknown_operands += waits;
    }
  }
  if (fenced_ && record.touches_memory()) {
    if (next_ - fence_ >= window_.size()) {
      fenced_ = false;
    } else {
      operation.unknown_operands += need(3, fence_, 0, operation.ready);
    }
  }
  if (spec_.in_order && next_ > 0) operation.ready = std::max(operation.ready, window_[next_ - 1].issued);
}

}  // namespace manyscale::cpu
