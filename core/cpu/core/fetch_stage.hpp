// SPDX-License-Identifier: Apache-2.0
// Fetch stage: the cycle in which the next record is fetched. It depends on the width, on the line of the
// instruction cache that fetch is in, on translations, and on redirections after mispredicted branches and
// system calls. The causes of its stalls are kept for the CPI stack. The core makes the accesses.
#pragma once
#include <algorithm>
#include <cstdint>

#include "cpu/core/core_spec.hpp"
#include "cpu/core/cpi_stack.hpp"
#include "cpu/core/fetch_slots.hpp"
#include "cpu/core/window.hpp"

namespace manyscale::cpu {

class FetchStage {
 public:
  explicit FetchStage(const CoreSpec& spec)
      : slots_(spec.fetch_width, spec.fetch_bytes),
        has_cache_(spec.l1i.size > 0),
        hit_latency_(spec.l1i.tag_latency + spec.l1i.data_latency),
        line_mask_(static_cast<std::uint64_t>(spec.l1.line) - 1) {}

  Cycle cycle() const { return slots_.cycle(); }
  // Fetch goes on in this cycle, unless it was later already.
  void resume(Cycle cycle, Cause cause) {
    front_cause_ = cause;
    resume(cycle);
  }
  // The fetch buffer has a free entry from this cycle on.
  void wait_for_buffer(Cycle free) {
    if (free > slots_.cycle()) slots_.restart(free);
  }

  // Slots: the record is fetched when it has taken its own.
  bool has_fetched() const { return fetched_; }
  void find_slot(const Record& record, const ElasticTiming& timing) { slots_.find_slot(record, timing); }
  void take(const Record& record) {
    slots_.take(record);
    fetched_ = true;
  }

  // Redirections: nothing is fetched until the operation of this number is complete.
  bool is_redirecting() const { return redirecting_; }
  std::uint64_t redirect() const { return redirect_; }
  void redirect_after(std::uint64_t operation) {
    redirecting_ = true;
    redirect_ = operation;
  }
  void end_redirect(Cycle from, bool is_branch) {
    redirecting_ = false;
    resume(from);
    if (is_branch) front_cause_ = Cause::branch;
  }
  // A taken branch is the last of its cycle.
  void end_cycle() { slots_.end_cycle(); }
  void misfetch(Cycle penalty) {
    slots_.stall(penalty);
    slots_.end_cycle();
    front_cause_ = Cause::branch;
  }

  // Lines of the instruction cache. A hit's latency is part of the front end's depth.
  bool needs_line(std::uint64_t pc) const { return has_cache_ && line_of(pc) != line_; }
  std::uint64_t line_of(std::uint64_t pc) const { return pc & ~line_mask_; }
  bool waits_for_line() const { return waits_for_line_; }
  // Enters the line if it has arrived.
  bool enter_arrived_line(std::uint64_t pc) {
    if (!line_arrived_) return false;
    line_arrived_ = false;
    line_ = line_of(pc);
    return true;
  }
  void begin_line(Cycle cycle) { line_begun_ = cycle; }
  void wait_for_line() { waits_for_line_ = true; }
  void line_arrived(Cycle cycle) {
    waits_for_line_ = false;
    line_arrived_ = true;
    const Cycle missed = cycle - line_begun_ - hit_latency_;
    if (missed <= 0) return;
    // The core may have come to this record only when those before it were dispatched; fetch was here before.
    slots_.restart(slots_.cycle() + missed);
    stall_cause_ = Cause::fetch;
    stall_cycles_ = missed;
  }

  // Translations of the pc.
  bool is_walking() const { return walking_; }
  void set_walking(bool walking) { walking_ = walking; }
  void translated(Cycle cycle) {
    if (cycle <= slots_.cycle()) return;
    stall_cause_ = Cause::fetch_tlb;
    stall_cycles_ += cycle - slots_.cycle();
    slots_.restart(cycle);
  }

  // Dispatch waits for the store queue: the stall is counted with those of fetch.
  void store_queue_stall(Cycle cycles) {
    stall_cause_ = Cause::store_buffer;
    stall_cycles_ = cycles;
  }
  // The record is dispatched: the operation gets its cycle and the causes of stalls before it.
  void hand_over(Operation& operation) {
    operation.fetched = slots_.cycle();
    operation.front_cause = front_cause_;
    operation.stall_cause = stall_cause_;
    operation.stall_cycles = static_cast<std::uint16_t>(std::min<Cycle>(stall_cycles_, 65535));
    front_cause_ = Cause::base;
    stall_cycles_ = 0;
    fetched_ = false;
  }

 private:
  void resume(Cycle cycle) {
    if (cycle >= slots_.cycle()) slots_.restart(cycle);
  }

  FetchSlots slots_;
  const bool has_cache_;
  const Cycle hit_latency_;
  const std::uint64_t line_mask_;
  bool fetched_ = false;  // the next record
  bool redirecting_ = false;
  std::uint64_t redirect_ = 0;
  std::uint64_t line_ = ~std::uint64_t{0};
  bool waits_for_line_ = false, line_arrived_ = false, walking_ = false;
  Cycle line_begun_ = 0;
  Cause front_cause_ = Cause::idle;
  Cause stall_cause_ = Cause::base;
  Cycle stall_cycles_ = 0;
};

}  // namespace manyscale::cpu
