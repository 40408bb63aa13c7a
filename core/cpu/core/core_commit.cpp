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
      if (!resolved_.empty()) wake_waiters();
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
  dispatch_.commit(record, operation.committed);
  if (record.kind == InstructionClass::store) {
    stores_[operation.store].committed = operation.committed;
    writer_.commit();
  }
  // Time without anything to do is idle, or that of the thread that fell asleep.
  if (operation.front_cause == Cause::idle || operation.front_cause == Cause::sleeping) {
    account_.charge(std::min(operation.dispatched + 1 - operation.stall_cycles, operation.committed - 1),
                    operation.front_cause);
  }
  if (record.thread != thread_) {
    thread_ = record.thread;
    regions_.run_thread(record.thread, progress());
  }
  ++committed_by_class_[static_cast<std::size_t>(record.kind)];
  instructions_ += operation.timing.instructions();
  account_.commit(operation);
  if (committed_ - static_cast<std::uint64_t>(spec_.konata_from) <
      static_cast<std::uint64_t>(spec_.konata_count)) {
    konata_.add({committed_, record.pc, record.thread, operation.fetched, operation.dispatched,
                 operation.issued, operation.complete, operation.committed});
  }
}

Progress Core::progress() const {
  return {time_of(account_.until()), instructions_, account_.stack()};
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
  const std::uint64_t before = writer_.next();
  while (writer_.may_write()) {
    const Cycle when = writer_.cycle_for(stores_[writer_.next()].committed, earliest_);
    if (when > horizon_) {
      store_wake_ = when;
      break;
    }
    if (!write_store(writer_.next(), when)) break;
    writer_.take(when);
  }
  return writer_.next() != before;
}

bool Core::write_store(std::uint64_t number, Cycle when) {
  StoreQueue::Store& store = stores_[number];
  const std::uint64_t offset = store.address & line_mask_;
  const bool split = offset + store.size > line_mask_ + 1;
  for (const std::uint32_t parts = split ? 2 : 1; writer_.part() < parts; writer_.accept_part()) {
    const std::uint32_t part = writer_.part();
    memory::Access access;
    access.address = part == 0 ? store.address : (store.address | line_mask_) + 1;
    access.size =
        static_cast<std::uint32_t>(part == 1 ? offset + store.size - line_mask_ - 1
                                             : std::min<std::uint64_t>(store.size, line_mask_ + 1 - offset));
    access.token = store_token | static_cast<std::uint32_t>(number & ~std::uint64_t{token_kind} & 0xfffffff);
    access.id = store.id;
    access.kind = memory::AccessKind::store;
    const memory::AccessResult result = caches_->access(access, time_of(when + part));
    if (result.status == memory::AccessResult::Status::blocked) {
      writer_.block();
      return false;
    }
    if (result.status == memory::AccessResult::Status::waiting) {
      ++store.parts;
      writer_.begin_miss();
    } else {
      // A hit is written in the cycle in which it begins.
      store.written_parts = std::max(store.written_parts, cycle_of(result.ready) - data_hit_ + 1);
    }
  }
  ++statistics_.stores;
  statistics_.split_accesses += split;
  if (store.parts == 0) store_written(number, store.written_parts);
  return true;
}

void Core::store_written(std::uint64_t number, Cycle cycle) {
  stores_.write(number, cycle);
}

}  // namespace manyscale::cpu
