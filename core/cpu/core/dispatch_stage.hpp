// SPDX-License-Identifier: Apache-2.0
// Rename and dispatch stage: the first cycle in which a record has a dispatch slot and entries of the reorder
// buffer, an issue queue, the physical registers, and the load or the store queue; and what it waited for.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "cpu/core/core_spec.hpp"
#include "cpu/core/dispatch_slots.hpp"
#include "cpu/core/issue_queues.hpp"
#include "cpu/core/reorder_buffer.hpp"
#include "cpu/core/store_queue.hpp"
#include "cpu/core/window.hpp"

namespace manyscale::cpu {

class DispatchStage {
 public:
  // What a record may wait for.
  enum Stall { reorder_buffer, issue_queue, load_queue, store_queue, registers, stalls };

  explicit DispatchStage(const CoreSpec& spec)
      : queues_(spec),
        slots_(spec.dispatch_width),
        reorder_buffer_(spec.reorder_buffer, spec.dispatch_width),
        loads_(spec.load_queue),
        integer_registers_(spec.integer_registers - 32),
        float_registers_(spec.float_registers - 32) {}

  // The first cycle, not before `decoded`, at which all buffers have an entry for a record, which will be the
  // operation `next` of the window; unknown if that depends on what is in flight.
  Cycle earliest(const Record& record, const ElasticTiming& timing, Cycle decoded, const Window& window,
                 std::uint64_t next, const StoreQueue& stores) {
    Cycle cycle = std::max(decoded, slots_.cycle());
    stalls_ = {};
    const auto wait_for = [&](Cycle free, Stall stall) {
      if (free == unknown) return false;
      if (free > cycle) {
        stalls_[stall] += free - cycle;
        cycle = free;
      }
      return true;
    };
    const Cycle entries_free = reorder_buffer_.earliest(timing, window, next);
    if (entries_free == unknown) return unknown;
    const DispatchSlots::Slot slot = slots_.next(timing.weight);
    cycle = std::max(cycle, slot.compacted);
    wait_for(entries_free, reorder_buffer);
    cycle = std::max(cycle, slot.cycle);
    if (!wait_for(queues_.earliest(record.kind, cycle), issue_queue)) return unknown;
    if (record.has(Trait::writes_integer) && !wait_for(integer_registers_.earliest(), registers))
      return unknown;
    if (record.has(Trait::writes_float) && !wait_for(float_registers_.earliest(), registers)) return unknown;
    if (record.kind == InstructionClass::load && !wait_for(loads_.earliest(), load_queue)) return unknown;
    if (record.kind == InstructionClass::store && !wait_for(stores.earliest(), store_queue)) return unknown;
    used_ = cycle == slot.cycle ? slot.used : 0;
    return cycle;
  }
  // Cycles that the record of the last call waits, by cause.
  Cycle stall(Stall stall) const { return stalls_[stall]; }

  // The record is dispatched in the cycle that was found for it; gives its entry of the reorder buffer.
  std::uint64_t take(const Record& record, const ElasticTiming& timing, Cycle cycle) {
    slots_.take(cycle, used_);
    queues_.enter(record.kind, timing);
    if (record.has(Trait::writes_integer)) integer_registers_.take();
    if (record.has(Trait::writes_float)) float_registers_.take();
    if (record.kind == InstructionClass::load) loads_.take();
    return reorder_buffer_.take(timing);
  }
  void issue(const Record& record, Cycle cycle) { queues_.issue(record.kind, cycle); }
  void complete(const ElasticTiming& timing, Cycle cycle) { queues_.complete(timing, cycle); }
  // The record commits: registers and load queue entry are free from this cycle on.
  void commit(const Record& record, Cycle cycle) {
    if (record.has(Trait::writes_integer)) integer_registers_.free(cycle);
    if (record.has(Trait::writes_float)) float_registers_.free(cycle);
    if (record.kind == InstructionClass::load) loads_.free(cycle);
  }

 private:
  IssueQueues queues_;
  DispatchSlots slots_;
  ReorderBuffer reorder_buffer_;
  FreeList loads_, integer_registers_, float_registers_;
  std::array<Cycle, stalls> stalls_{};
  std::int64_t used_ = 0;  // slots of the next record's cycle before it
};

}  // namespace manyscale::cpu
