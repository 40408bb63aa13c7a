// SPDX-License-Identifier: Apache-2.0
// Fetch and dispatch: when each record enters the window.
#include <algorithm>

#include "cpu/core/core.hpp"

namespace manyscale::cpu {

// The core had nothing left to do, and now has. What follows an atomic operation or a fence was fetched
// behind it; only its records are not announced yet. What follows a system call or a sleep is fetched now.
void Core::records_arrived() {
  starved_ = false;
  const bool system = next_ > 0 && window_[next_ - 1].record.kind == Kind::system;
  if (begun_ && !asleep_ && !system) {
    if (next_ > 0 && !waits_until_oldest(window_[next_ - 1].record.kind)) ++statistics_.feed_waits;
    return;
  }
  front_cause_ = !begun_ ? Cause::idle : asleep_ ? Cause::sleeping : Cause::synchronisation;
  begun_ = true;
  asleep_ = false;
  if (earliest_ >= fetch_cycle_) fetch_anew(earliest_);
}

// Fetch goes on in this cycle, with its whole width.
void Core::fetch_anew(Cycle cycle) {
  fetch_cycle_ = cycle;
  fetch_left_ = spec_.fetch_width;
  fetch_bytes_left_ = spec_.fetch_bytes;
}

void Core::take_records() {
  front_wake_ = unknown;
  while (taken_ < available_) {
    const Record& record = (*ring_)[taken_];
    if (record.kind == Kind::marker) {
      markers_.push_back({next_, record.address, record.thread, record.has(Trait::pauses)});
    } else {
      if (!head_fetched_ && !fetch(record)) break;
      if (!dispatch(record)) break;
      if (!resolved_.empty()) tell_waiters();
    }
    ++taken_;
    if (taken_ - told_ >= ring_->capacity() / 4) {
      told_ = taken_;
      // So that it arrives when the next quantum begins and the cores work: the source then works beside
      // them.
      const Time way = work_.lanes()[0].latency;
      work_.send({told_, StreamRequest::Kind::wants_more}, std::max<Time>(0, quantum_end_ - now() - way));
    }
  }
  if (taken_ == available_) starved_ = true;
}

// Finds the cycle in which the record is fetched.
bool Core::fetch(const Record& record) {
  if (redirecting_ && !wait_for_redirect()) return false;
  const std::int64_t bytes = record.has(Trait::compressed) ? 2 : 4;
  if (next_ >= static_cast<std::uint64_t>(fetch_buffer_)) {
    const Cycle place = window_[next_ - static_cast<std::uint64_t>(fetch_buffer_)].dispatched;
    if (place > fetch_cycle_) fetch_anew(place);
  }
  if (record.weight > 0 && !folded_fetched_) {
    fetch_folded(record);
    folded_fetched_ = true;
  }
  if (fetch_left_ <= 0 || fetch_bytes_left_ < bytes) {
    ++fetch_cycle_;
    fetch_left_ = std::min<std::int64_t>(fetch_left_, 0) + spec_.fetch_width;
    fetch_bytes_left_ = spec_.fetch_bytes;
  }
  if ((record.pc & ~line_mask_) != fetch_line_ && spec_.l1i.size > 0) {
    if (!fetch_line(record)) return false;
  }
  --fetch_left_;
  fetch_bytes_left_ -= bytes;
  head_fetched_ = true;
  folded_fetched_ = false;
  return true;
}

// What is folded into a record takes the width of fetch before it; a jump among it ends its cycle. Most jumps
// are those of one loop, so what is between them is taken to be equally long.
void Core::fetch_folded(const Record& record) {
  // They are few: counting is faster than dividing.
  const auto take = [&](std::int64_t instructions) {
    for (; instructions >= spec_.fetch_width; instructions -= spec_.fetch_width) ++fetch_cycle_;
    fetch_left_ -= instructions;
  };
  const FoldedTurns turns = record.folded_turns();
  const std::int64_t after = std::min<std::int64_t>(turns.after, record.weight);
  std::int64_t before = record.weight - after;
  for (std::int64_t left = turns.count; left > 0; --left) {
    const std::int64_t part = left == 1 ? before : before / left;
    before -= part;
    take(part);
    if (fetch_left_ < 0) ++fetch_cycle_;
    fetch_left_ = 0;
  }
  take(before + after);
}

// After a branch that was predicted wrong, or a system call, fetch goes on when that is complete.
bool Core::wait_for_redirect() {
  const Operation& operation = window_[redirect_];
  if (operation.complete == unknown) return false;
  redirecting_ = false;
  const bool branch = operation.record.is_control();
  const Cycle from = operation.complete + (branch ? spec_.mispredict_penalty : 0);
  if (from >= fetch_cycle_) fetch_anew(from);
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
  if (fetch_cycle_ > horizon_) {
    front_wake_ = fetch_cycle_;
    return false;
  }
  if (!translate_fetch(record.pc)) return false;
  fetch_begun_ = std::max(fetch_cycle_, earliest_);
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
  const Cycle late = cycle - fetch_begun_ - instruction_hit_;
  if (late <= 0) return;
  // The core may have come to this record only when those before it were dispatched; fetch was here before.
  fetch_anew(fetch_cycle_ + late);
  late_cause_ = Cause::fetch;
  late_cycles_ = late;
}

// Whether the address of the next instruction is translated; a walk wakes the front end when it is done.
bool Core::translate_fetch(std::uint64_t pc) {
  using Outcome = TranslationUnit::Lookup::Outcome;
  for (;;) {
    const auto found = translation_.lookup(pc, TranslationUnit::Side::instruction);
    if (found.outcome == Outcome::known) {
      if (found.cycles > 0) fetch_translated(fetch_cycle_ + found.cycles);
      fetch_walking_ = false;
      return true;
    }
    fetch_walking_ = true;
    if (found.outcome != Outcome::walk) return false;
    if (!walk(found.walk, std::max(fetch_cycle_, earliest_) + found.cycles)) return false;
    // The walk was done at once, but its end may lie ahead.
    if (fetch_cycle_ > horizon_) {
      front_wake_ = fetch_cycle_;
      return false;
    }
  }
}

void Core::fetch_translated(Cycle cycle) {
  if (cycle <= fetch_cycle_) return;
  late_cause_ = Cause::fetch_tlb;
  late_cycles_ += cycle - fetch_cycle_;
  fetch_anew(cycle);
}

void Core::follow_branch(const Record& record) {
  const Prediction prediction = predictor_.predict(record);
  const bool taken = record.kind != Kind::branch || record.has(Trait::taken);
  if (taken) fetch_left_ = 0;
  if (prediction == Prediction::late) {
    ++statistics_.late_branches;
    fetch_cycle_ += spec_.late_branch_penalty;
    fetch_left_ = 0;
    front_cause_ = Cause::branch;
  } else if (prediction == Prediction::wrong) {
    ++statistics_.mispredicts;
    redirecting_ = true;
    redirect_ = next_;
    fetch_left_ = 0;
  }
}

// The first cycle at which there is a place for the record everywhere it needs one; unknown if that depends
// on what is under way.
Cycle Core::dispatch_cycle(const Record& record) {
  Cycle cycle = std::max(fetch_cycle_ + spec_.front_end_depth, dispatch_cycle_);
  stalls_ = {};
  const auto wait_for = [&](Cycle place, Stall stall) {
    if (place == unknown) return false;
    if (place > cycle) {
      stalls_[stall] += place - cycle;
      cycle = place;
    }
    return true;
  };
  const std::uint64_t end = places_ + record.weight + 1;
  const auto size = static_cast<std::uint64_t>(spec_.reorder_buffer);
  while (oldest_place_ < next_ && end - window_[oldest_place_].place > size) {
    const Operation& oldest = window_[oldest_place_];
    if (oldest.committed == unknown) return unknown;
    // What is folded into the record enters as places become free; the rest of it follows at full width.
    const std::uint64_t behind = end - 1 - oldest.place - size;
    const Cycle rest = behind == 0 ? 0 : static_cast<Cycle>(behind) / spec_.dispatch_width;
    places_free_ = std::max(places_free_, oldest.committed + rest);
    ++oldest_place_;
  }
  // It was fetched before the record, too, and takes the width behind the record before.
  Cycle next = dispatch_cycle_;
  std::int64_t used = dispatched_in_cycle_ + record.weight;
  for (; used >= spec_.dispatch_width; used -= spec_.dispatch_width) ++next;
  if (record.weight > 0) cycle = std::max(cycle, next);
  if (places_free_ > cycle) wait_for(places_free_, stall_reorder_buffer);
  cycle = std::max(cycle, next);
  if (cycle > next) used = 0;
  const Cycle slot = cycle;
  if (!wait_for(queues_[queue_of(record.kind)].earliest(cycle), stall_issue_queue)) return unknown;
  if (record.has(Trait::writes_integer) && !wait_for(integer_registers_.earliest(), stall_registers))
    return unknown;
  if (record.has(Trait::writes_float) && !wait_for(float_registers_.earliest(), stall_registers))
    return unknown;
  if (record.kind == Kind::load && !wait_for(loads_.earliest(), stall_load_queue)) return unknown;
  if (record.kind == Kind::store) {
    const Cycle before = cycle;
    if (!wait_for(stores_.earliest(), stall_store_queue)) return unknown;
    if (cycle > before) {
      late_cause_ = Cause::store_buffer;
      late_cycles_ = cycle - before;
    }
  }
  if (spec_.in_order && next_ > 0 && window_[next_ - 1].issued == unknown) return unknown;
  dispatch_used_ = cycle == slot ? used : 0;
  return cycle;
}

bool Core::dispatch(const Record& record) {
  const Cycle cycle = dispatch_cycle(record);
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
  dispatched_in_cycle_ = dispatch_used_ + 1;
  dispatch_cycle_ = cycle;
  queues_[queue_of(record.kind)].enter();
  if (const std::uint32_t waiters = waiters_of(record); waiters > 0) queues_[0].enter(waiters);
  if (record.has(Trait::writes_integer)) integer_registers_.take();
  if (record.has(Trait::writes_float)) float_registers_.take();
  if (record.kind == Kind::load) loads_.take();
  Operation& operation = window_[next_];
  operation.record = record;
  operation.fetched = fetch_cycle_;
  operation.dispatched = cycle;
  operation.ready = cycle + 1;
  operation.issued = unknown;
  operation.translated = 0;
  operation.arrived = 0;
  operation.complete = unknown;
  operation.committed = unknown;
  // What is folded into the record commits before it, on average half of it by then.
  operation.place = places_ + record.weight / 2;
  places_ += record.weight + 1u;
  operation.waiters = Window::none;
  operation.unknown_operands = 0;
  operation.parts = 0;
  operation.data_unknown = false;
  operation.stage = Stage::operands;
  operation.front_cause = front_cause_;
  operation.late_cause = late_cause_;
  operation.late_cycles = static_cast<std::uint16_t>(std::min<Cycle>(late_cycles_, 65535));
  operation.wait_cause = Cause::dependency;
  operation.cause = Cause::dependency;
  front_cause_ = Cause::base;
  late_cycles_ = 0;
  head_fetched_ = false;
  if (record.kind == Kind::store) {
    operation.store =
        stores_.enter(record.address, record.size, next_, static_cast<std::uint32_t>(record.pc));
  } else {
    operation.store = stores_.entered();
  }
  find_operands(operation);
  if (waits_until_oldest(record.kind)) {
    operation.stage = Stage::oldest;
    operation.wait_cause = operation.cause = Cause::synchronisation;
    if (record.kind == Kind::fence || (record.kind == Kind::atomic && total_store_order_)) {
      fenced_ = true;
      fence_ = next_;
    }
    if (record.kind == Kind::system) {
      redirecting_ = true;
      redirect_ = next_;
    }
    if (record.has(Trait::halts_stream)) halted_ = taken_;
  } else if (record.is_control()) {
    follow_branch(record);
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
  const bool data_apart = record.kind == Kind::store && !spec_.in_order;
  for (std::uint32_t operand = 0; operand < record.producers.size(); ++operand) {
    const std::uint64_t distance = record.producers[operand] & Record::furthest_producer;
    const Cycle delay = record.delays[operand];
    const bool is_data = operand == 0 && data_apart;
    Cycle& ready = is_data ? operation.arrived : operation.ready;
    if (distance == 0) {
      if (delay > 0) ready = std::max(ready, operation.dispatched + 1 + delay);
      continue;
    }
    // What was committed so long ago cannot matter.
    if (distance > next_ || distance >= window_.size()) continue;
    if ((record.producers[operand] & Record::dispatched) != 0) {
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
