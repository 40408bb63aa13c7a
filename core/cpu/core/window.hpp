// SPDX-License-Identifier: Apache-2.0
// The instructions in flight of a core, from dispatch to commit, with the cycles at which each did what, and
// lists of those that wait for a result whose cycle is not known yet.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "cpu/core/cpi_stack.hpp"
#include "cpu/core/cycle_map.hpp"
#include "cpu/stream/elastic_timing.hpp"
#include "cpu/stream/record.hpp"

namespace manyscale::cpu {

// Where an instruction has got to.
enum class Stage : std::uint8_t {
  operands,     // waits for operands, or is about to issue
  oldest,       // waits until it is the oldest and may take effect
  store,        // a load that waits for the data of an older store
  translation,  // waits for a page walk
  access,       // its cache access is outstanding, or about to begin
  done,
};

struct Operation {
  Record record{};
  ElasticTiming timing{};
  Cycle fetched = 0;
  Cycle dispatched = 0;
  Cycle ready = 0;  // all operands are there
  Cycle issued = unknown;
  Cycle translated = 0;  // when its memory access can begin
  Cycle arrived = 0;     // of a load: its data so far; of a store: the data to be stored
  Cycle complete = unknown;
  Cycle committed = unknown;
  std::uint64_t reorder_entry = 0;      // of the reorder buffer; entries are counted from the beginning
  std::uint64_t store = 0;              // of a store: its number; else how many stores are older
  std::array<std::uint32_t, 4> next{};  // in the lists of those who wait, by operand; the last is for fences
  std::uint32_t waiters = ~0u;          // first of those who wait for this one
  std::uint16_t stall_cycles = 0;       // before dispatch, for stall_cause
  std::uint8_t unknown_operands = 0;
  std::uint8_t parts = 0;  // outstanding cache accesses
  bool data_unknown = false;
  Stage stage = Stage::operands;
  Cause front_cause = Cause::base;
  Cause stall_cause = Cause::base;
  Cause wait_cause = Cause::dependency;
  Cause cause = Cause::dependency;  // between issue and completion
};

class Window {
 public:
  static constexpr std::uint32_t none = ~0u;
  static constexpr std::uint32_t operands = 4;

  explicit Window(std::int64_t entries)
      : operations_(std::bit_ceil(static_cast<std::size_t>(entries))),
        mask_(static_cast<std::uint32_t>(operations_.size() - 1)) {}

  std::uint64_t size() const { return operations_.size(); }
  Operation& operator[](std::uint64_t number) { return operations_[number & mask_]; }
  const Operation& operator[](std::uint64_t number) const { return operations_[number & mask_]; }
  std::uint32_t index(const Operation& operation) const {
    return static_cast<std::uint32_t>(&operation - operations_.data());
  }

  // `waiter` is woken by the result of `producer`, its operand of this number.
  void wait(Operation& waiter, std::uint32_t operand, Operation& producer) {
    waiter.next[operand] = producer.waiters;
    producer.waiters = index(waiter) * operands + operand;
  }
  // Wakes all that wait for a result, in the order in which they came: woken(operation, operand).
  template <class Woken>
  void wake(Operation& producer, Woken&& woken) {
    // The list has the last first.
    std::uint32_t reversed = none;
    for (std::uint32_t at = producer.waiters; at != none;) {
      std::uint32_t& next = operations_[at / operands].next[at % operands];
      const std::uint32_t following = next;
      next = reversed;
      reversed = at;
      at = following;
    }
    producer.waiters = none;
    for (std::uint32_t at = reversed; at != none;) {
      Operation& waiter = operations_[at / operands];
      const std::uint32_t operand = at % operands;
      at = waiter.next[operand];
      woken(waiter, operand);
    }
  }

 private:
  std::vector<Operation> operations_;
  std::uint32_t mask_;
};

// Operations to look at again at a later cycle, in the order of the cycles.
class CycleWheel {
 public:
  explicit CycleWheel(std::size_t operations) : next_(operations, none) { first_.fill(none); }

  Cycle next() const { return marks_.next(base_); }
  void add(std::uint32_t operation, Cycle cycle) {
    // What is further away is looked at before its time, and put off again.
    const Cycle at = cycle - base_ < CycleMap::range ? cycle : base_ + CycleMap::range - 1;
    const std::size_t slot = CycleMap::slot(at);
    next_[operation] = none;
    if (first_[slot] == none) {
      first_[slot] = operation;
      marks_.mark(at);
    } else {
      next_[last_[slot]] = operation;
    }
    last_[slot] = operation;
  }
  // Takes what is due up to this cycle: due(operation).
  template <class Due>
  void take_until(Cycle cycle, Due&& due) {
    for (Cycle at = marks_.next(base_); at <= cycle; at = marks_.next(base_)) {
      base_ = at;
      const std::size_t slot = CycleMap::slot(at);
      std::uint32_t operation = first_[slot];
      first_[slot] = none;
      marks_.clear(at);
      while (operation != none) {
        const std::uint32_t following = next_[operation];
        due(operation);
        operation = following;
      }
    }
    if (cycle > base_) base_ = cycle;
  }

 private:
  static constexpr std::uint32_t none = ~0u;

  Cycle base_ = 0;
  CycleMap marks_;
  std::array<std::uint32_t, CycleMap::range> first_{}, last_{};
  std::vector<std::uint32_t> next_;
};

// Entries that are taken in order at dispatch and become free in order at commit: load queue entries and
// physical registers.
class FreeList {
 public:
  explicit FreeList(std::int64_t entries) : freed_(static_cast<std::size_t>(entries), 0) {}

  // When an entry is free; unknown if that depends on what is in flight.
  Cycle earliest() const { return used_ == freed_.size() ? unknown : freed_[next_]; }
  void take() {
    ++used_;
    if (++next_ == freed_.size()) next_ = 0;
  }
  void free(Cycle cycle) {
    --used_;
    freed_[next_freed_] = cycle;
    if (++next_freed_ == freed_.size()) next_freed_ = 0;
  }

 private:
  std::vector<Cycle> freed_;
  std::size_t used_ = 0, next_ = 0, next_freed_ = 0;
};

}  // namespace manyscale::cpu
