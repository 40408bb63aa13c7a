// SPDX-License-Identifier: Apache-2.0
// Commit in program order, with the cause of every cycle; and the stores that are written after it.
#include <algorithm>

#include "cpu/core/core.hpp"

namespace manyscale::cpu {

bool Core::commit_all() {
  const std::uint64_t before = committed_;
  for (;;) {
    if (!markers_.empty() && markers_.front().before == committed_) take_markers();
    if (committed_ == next_) break;
    Operation& operation = window_[committed_];
    if (operation.complete == unknown && operation.stage == Stage::oldest) {
      begin_oldest(operation);
      if (!resolved_.empty()) tell_waiters();
    }
    if (operation.complete == unknown) break;
    commit(operation);
    ++committed_;
  }
  return committed_ != before;
}

void Core::commit(Operation& operation) {
  const Record& record = operation.record;
  operation.committed = commit_.take(operation.timing.weight, operation.complete);
  if (record.has(Trait::writes_integer)) integer_registers_.free(operation.committed);
  if (record.has(Trait::writes_float)) float_registers_.free(operation.committed);
  if (record.kind == InstructionClass::load) {
    loads_.free(operation.committed);
  } else if (record.kind == InstructionClass::store) {
    stores_[operation.store].committed = operation.committed;
    ++committed_stores_;
  }
  // The time without anything to do is nobody's, or that of whoever fell asleep.
  if (operation.front_cause == Cause::idle || operation.front_cause == Cause::sleeping) {
    charge_until(std::min(operation.dispatched + 1 - operation.stall_cycles, operation.committed - 1),
                 operation.front_cause);
  }
  if (record.thread != thread_) {
    thread_ = record.thread;
    regions_.run_thread(record.thread, progress());
  }
  ++committed_by_class_[static_cast<std::size_t>(record.kind)];
  instructions_ += operation.timing.instructions();
  account(operation);
  if (committed_ - static_cast<std::uint64_t>(spec_.konata_from) <
      static_cast<std::uint64_t>(spec_.konata_count)) {
    konata_.add({committed_, record.pc, record.thread, operation.fetched, operation.dispatched,
                 operation.issued, operation.complete, operation.committed});
  }
}

// Gives every cycle since the last commit its cause: what this operation, the oldest then, waited for.
void Core::account(const Operation& operation) {
  HotLines::Line* line = spec_.hot_lines ? &hot_lines_.at(operation.record.pc) : nullptr;
  if (line != nullptr) {
    ++line->instructions;
    line->misses += operation.cause > Cause::l1 && operation.cause <= Cause::dram;
  }
  const Cycle last = operation.committed;
  if (last <= accounted_) return;
  if (last == accounted_ + 1) {
    accounted_ = last;
    ++stack_[Cause::base];
    if (line != nullptr) ++line->stack[Cause::base];
    return;
  }
  const auto charge = [&](Cycle until, Cause cause) {
    until = std::min(until, last - 1);
    if (until <= accounted_) return;
    if (line != nullptr) line->stack[cause] += until - accounted_;
    charge_until(until, cause);
  };
  const Cycle entered = operation.dispatched + 1;
  charge(entered - operation.stall_cycles, operation.front_cause);
  charge(entered, operation.stall_cause);
  charge(operation.ready, operation.wait_cause);
  charge(operation.issued, Cause::unit);
  charge(operation.translated, operation.cause == Cause::synchronisation ? operation.cause : Cause::tlb);
  charge(operation.complete, operation.cause);
  charge(last - 1, Cause::base);
  charge_until(last, Cause::base);
  if (line != nullptr) ++line->stack[Cause::base];
}

void Core::charge_until(Cycle cycle, Cause cause) {
  if (cycle <= accounted_) return;
  stack_[cause] += cycle - accounted_;
  accounted_ = cycle;
}

Progress Core::progress() const {
  return {time_of(accounted_), instructions_, stack_};
}

// Markers take effect when all before them has committed.
void Core::take_markers() {
  while (!markers_.empty() && markers_.front().before == committed_) {
    const Marker& marker = markers_.front();
    thread_ = marker.thread;
    regions_.commit(marker.thread, marker.address, progress());
    if (marker.pauses) {
      visits_open_ += marker_action(marker.address) == MarkerAction::enter ? 1 : -1;
      stop();
    }
    markers_.pop_front();
  }
}

// Committed stores are written to the L1 cache in program order, with a limit on outstanding ones.
bool Core::write_stores() {
  store_wake_ = unknown;
  const std::uint64_t before = next_store_;
  while (next_store_ < committed_stores_ && !store_blocked_ &&
         outstanding_stores_ < spec_.outstanding_stores) {
    Cycle when = std::max({stores_[next_store_].committed + 1, store_cycle_, earliest_});
    if (when == store_cycle_ && stores_in_cycle_ >= spec_.stores_per_cycle) ++when;
    if (when > horizon_) {
      store_wake_ = when;
      break;
    }
    if (!write_store(next_store_, when)) break;
    stores_in_cycle_ = (when == store_cycle_ ? stores_in_cycle_ : 0) + 1;
    store_cycle_ = when;
    ++next_store_;
  }
  return next_store_ != before;
}

bool Core::write_store(std::uint64_t number, Cycle when) {
  StoreQueue::Store& store = stores_[number];
  const std::uint64_t offset = store.address & line_mask_;
  const bool split = offset + store.size > line_mask_ + 1;
  for (const std::uint32_t parts = split ? 2 : 1; store_part_ < parts; ++store_part_) {
    memory::Access access;
    access.address = store_part_ == 0 ? store.address : (store.address | line_mask_) + 1;
    access.size = static_cast<std::uint32_t>(
        store_part_ == 1 ? offset + store.size - line_mask_ - 1
                         : std::min<std::uint64_t>(store.size, line_mask_ + 1 - offset));
    access.token = store_token | static_cast<std::uint32_t>(number & ~std::uint64_t{token_kind} & 0xfffffff);
    access.id = store.id;
    access.kind = memory::AccessKind::store;
    const memory::AccessResult result = caches_->access(access, time_of(when + store_part_));
    if (result.status == memory::AccessResult::Status::blocked) {
      store_blocked_ = true;
      return false;
    }
    if (result.status == memory::AccessResult::Status::waiting) {
      ++store.parts;
      ++outstanding_stores_;
    } else {
      // A hit is written in the cycle in which it begins.
      store.written_parts = std::max(store.written_parts, cycle_of(result.ready) - data_hit_ + 1);
    }
  }
  store_part_ = 0;
  ++statistics_.stores;
  statistics_.split_accesses += split;
  if (store.parts == 0) store_written(number, store.written_parts);
  return true;
}

void Core::store_written(std::uint64_t number, Cycle cycle) {
  stores_.write(number, cycle);
}

}  // namespace manyscale::cpu
