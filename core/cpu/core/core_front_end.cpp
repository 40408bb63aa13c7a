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
  fetch_.resume(earliest_, !begun_ ? Cause::idle : asleep_ ? Cause::sleeping : Cause::synchronisation);
  begun_ = true;
  asleep_ = false;
}

void Core::take_records() {
  front_wake_ = unknown;
  while (taken_ < available_) {
    const Record& record = (*ring_)[taken_];
    const ElasticTiming& timing = std::as_const(*ring_).timing(taken_);
    if (record.kind == InstructionClass::marker) {
      markers_.push_back({next_, record.address, record.thread, record.has(Trait::pauses)});
    } else {
      if (!fetch_.has_fetched() && !fetch(record, timing)) break;
      if (!dispatch(record, timing)) break;
      if (!resolved_.empty()) wake_waiters();
    }
    ++taken_;
    if (taken_ - freed_ >= ring_->capacity() / 4) {
      freed_ = taken_;
      // So that it arrives when the next quantum begins and the cores work: the source then works beside
      // them.
      const Time way = work_.lanes()[0].latency;
      work_.send({freed_, StreamRequest::Type::wants_more}, std::max<Time>(0, quantum_end_ - now() - way));
    }
  }
  if (taken_ == available_) starved_ = true;
}

// Finds the cycle in which the record is fetched.
bool Core::fetch(const Record& record, const ElasticTiming& timing) {
  if (fetch_.is_redirecting() && !wait_for_redirect()) return false;
  if (next_ >= static_cast<std::uint64_t>(fetch_buffer_)) {
    fetch_.wait_for_buffer(window_[next_ - static_cast<std::uint64_t>(fetch_buffer_)].dispatched);
  }
  fetch_.find_slot(record, timing);
  if (fetch_.needs_line(record.pc) && !fetch_line(record)) return false;
  fetch_.take(record);
  return true;
}

// After a branch that was predicted wrong, or a system call, fetch goes on when that is complete.
bool Core::wait_for_redirect() {
  const Operation& operation = window_[fetch_.redirect()];
  if (operation.complete == unknown) return false;
  const bool is_branch = operation.record.is_control();
  fetch_.end_redirect(operation.complete + (is_branch ? spec_.mispredict_penalty : 0), is_branch);
  return true;
}

// Fetches the record's line from the instruction cache; a hit's latency is part of the front end's depth.
bool Core::fetch_line(const Record& record) {
  if (fetch_.waits_for_line()) return false;
  if (fetch_.enter_arrived_line(record.pc)) return true;
  if (fetch_.cycle() > horizon_) {
    front_wake_ = fetch_.cycle();
    return false;
  }
  if (!translate_fetch(record.pc)) return false;
  const Cycle begun = std::max(fetch_.cycle(), earliest_);
  fetch_.begin_line(begun);
  memory::Access access;
  access.address = fetch_.line_of(record.pc);
  access.size = 4;
  access.token = fetch_token;
  access.kind = memory::AccessKind::fetch;
  const memory::AccessResult result = caches_->access(access, time_of(begun));
  if (result.status == memory::AccessResult::Status::blocked) return false;
  ++statistics_.instruction_lines;
  if (result.status == memory::AccessResult::Status::waiting) {
    fetch_.wait_for_line();
    return false;
  }
  fetch_.line_arrived(cycle_of(result.ready));
  return fetch_.enter_arrived_line(record.pc);
}

// Whether the address of the next instruction is translated; a walk wakes the front end when it is done.
bool Core::translate_fetch(std::uint64_t pc) {
  using Outcome = TranslationUnit::Lookup::Outcome;
  for (;;) {
    const auto found = translation_.lookup(pc, TranslationUnit::Side::instruction);
    if (found.outcome == Outcome::known) {
      if (found.cycles > 0) fetch_.translated(fetch_.cycle() + found.cycles);
      fetch_.set_walking(false);
      return true;
    }
    fetch_.set_walking(true);
    if (found.outcome != Outcome::walk) return false;
    if (!walk(found.walk, std::max(fetch_.cycle(), earliest_) + found.cycles)) return false;
    // The walk was done at once, but its end may lie ahead.
    if (fetch_.cycle() > horizon_) {
      front_wake_ = fetch_.cycle();
      return false;
    }
  }
}

void Core::follow_branch(const Record& record, Prediction recorded) {
  const Prediction prediction = predictor_.predict(record, recorded);
  const bool taken = record.kind != InstructionClass::branch || record.has(Trait::taken);
  if (taken) fetch_.end_cycle();
  if (prediction == Prediction::misfetch) {
    ++statistics_.misfetches;
    fetch_.misfetch(spec_.misfetch_penalty);
  } else if (prediction == Prediction::mispredict) {
    ++statistics_.mispredicts;
    fetch_.redirect_after(next_);
    fetch_.end_cycle();
  }
}

// The first cycle at which all buffers have an entry for the record; unknown if that depends
// on what is in flight.
Cycle Core::dispatch_cycle(const Record& record, const ElasticTiming& timing) {
  const Cycle cycle =
      dispatch_.earliest(record, timing, fetch_.cycle() + spec_.front_end_depth, window_, next_, stores_);
  if (const Cycle stall = dispatch_.stall(DispatchStage::store_queue); stall > 0)
    fetch_.store_queue_stall(stall);
  if (spec_.in_order && next_ > 0 && window_[next_ - 1].issued == unknown) return unknown;
  return cycle;
}

bool Core::dispatch(const Record& record, const ElasticTiming& timing) {
  const Cycle cycle = dispatch_cycle(record, timing);
  if (cycle == unknown) return false;
  if (cycle > horizon_) {
    front_wake_ = cycle;
    return false;
  }
  statistics_.stall_reorder_buffer += dispatch_.stall(DispatchStage::reorder_buffer);
  statistics_.stall_issue_queue += dispatch_.stall(DispatchStage::issue_queue);
  statistics_.stall_load_queue += dispatch_.stall(DispatchStage::load_queue);
  statistics_.stall_store_queue += dispatch_.stall(DispatchStage::store_queue);
  statistics_.stall_registers += dispatch_.stall(DispatchStage::registers);
  Operation& operation = window_[next_];
  operation.record = record;
  operation.timing = timing;
  operation.dispatched = cycle;
  operation.ready = cycle + 1;
  operation.issued = unknown;
  operation.translated = 0;
  operation.arrived = 0;
  operation.complete = unknown;
  operation.committed = unknown;
  operation.reorder_entry = dispatch_.take(record, timing, cycle);
  operation.waiters = Window::none;
  operation.unknown_operands = 0;
  operation.parts = 0;
  operation.data_unknown = false;
  operation.stage = Stage::operands;
  operation.wait_cause = Cause::dependency;
  operation.cause = Cause::dependency;
  fetch_.hand_over(operation);
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
      fetch_.redirect_after(next_);
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
