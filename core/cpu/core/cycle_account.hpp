// SPDX-License-Identifier: Apache-2.0
// Cycle account: gives every cycle of a core its cause, when the operation commits that was the oldest in it;
// in all (the CPI stack), and per instruction address where asked for.
#pragma once
#include <algorithm>
#include <vector>

#include "cpu/core/cpi_stack.hpp"
#include "cpu/core/hot_lines.hpp"
#include "cpu/core/window.hpp"

namespace manyscale::cpu {

class CycleAccount {
 public:
  explicit CycleAccount(bool per_address) : per_address_(per_address) {}

  // The last cycle that has its cause.
  Cycle until() const { return until_; }
  const CpiStack& stack() const { return stack_; }
  std::vector<HotLines::Line> hot_lines() const { return hot_lines_.lines(); }

  void charge(Cycle until, Cause cause) {
    if (until <= until_) return;
    stack_[cause] += until - until_;
    until_ = until;
  }

  // Charges the cycles since the last commit to what this operation waited for.
  void commit(const Operation& operation) {
    HotLines::Line* line = per_address_ ? &hot_lines_.at(operation.record.pc) : nullptr;
    if (line != nullptr) {
      ++line->instructions;
      line->misses += operation.cause > Cause::l1 && operation.cause <= Cause::dram;
    }
    const Cycle last = operation.committed;
    if (last <= until_) return;
    if (last == until_ + 1) {
      until_ = last;
      ++stack_[Cause::base];
      if (line != nullptr) ++line->stack[Cause::base];
      return;
    }
    const auto charge_both = [&](Cycle until, Cause cause) {
      until = std::min(until, last - 1);
      if (until <= until_) return;
      if (line != nullptr) line->stack[cause] += until - until_;
      charge(until, cause);
    };
    const Cycle entered = operation.dispatched + 1;
    charge_both(entered - operation.stall_cycles, operation.front_cause);
    charge_both(entered, operation.stall_cause);
    charge_both(operation.ready, operation.wait_cause);
    charge_both(operation.issued, Cause::unit);
    charge_both(operation.translated,
                operation.cause == Cause::synchronisation ? operation.cause : Cause::tlb);
    charge_both(operation.complete, operation.cause);
    charge_both(last - 1, Cause::base);
    charge(last, Cause::base);
    if (line != nullptr) ++line->stack[Cause::base];
  }

 private:
  const bool per_address_;
  Cycle until_ = 0;
  CpiStack stack_;
  HotLines hot_lines_;
};

}  // namespace manyscale::cpu
