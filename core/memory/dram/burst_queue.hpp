// SPDX-License-Identifier: Apache-2.0
// The bursts that a controller's scheduler sees: by age, and by bank and age.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "engine/time.hpp"
#include "memory/dram/address_map.hpp"

namespace manyscale::memory {

inline constexpr std::uint32_t most_banks = 256;

// A column command to be made, on behalf of a request.
struct Burst {
  DramAddress address;
  std::uint32_t request = 0;
  std::uint64_t order = 0;  // of arrival
  Cycle entered = 0;
  bool activated = false;   // a row was opened for it
  bool precharged = false;  // and another closed before
  std::uint16_t older = 0, newer = 0;
  std::uint16_t older_in_bank = 0, newer_in_bank = 0;
};

// A queue of fixed size whose entries are linked by age and, per bank, by age again; each bank knows its
// oldest burst that wants the open row. Nothing is searched or allocated per request.
class BurstQueue {
 public:
  static constexpr std::uint16_t none = 0xffff;

  BurstQueue(std::size_t capacity, std::uint32_t banks) : bursts_(capacity), banks_(banks) {
    for (std::size_t i = capacity; i > 0; --i) free_.push_back(static_cast<std::uint16_t>(i - 1));
  }

  bool full() const { return free_.empty(); }
  bool empty() const { return size() == 0; }
  std::size_t size() const { return bursts_.size() - free_.size(); }
  const Burst& operator[](std::uint16_t index) const { return bursts_[index]; }
  Burst& operator[](std::uint16_t index) { return bursts_[index]; }

  std::uint16_t oldest() const { return oldest_; }
  std::uint16_t oldest_in(std::uint32_t bank) const { return banks_[bank].oldest; }
  std::uint16_t hit_in(std::uint32_t bank) const { return banks_[bank].hit; }

  std::uint16_t push(const Burst& burst, std::int32_t open_row) {
    const std::uint16_t index = free_.back();
    free_.pop_back();
    Burst& added = bursts_[index] = burst;
    added.older = newest_;
    added.newer = none;
    (newest_ == none ? oldest_ : bursts_[newest_].newer) = index;
    newest_ = index;
    Bank& bank = banks_[burst.address.bank];
    added.older_in_bank = bank.newest;
    added.newer_in_bank = none;
    (bank.newest == none ? bank.oldest : bursts_[bank.newest].newer_in_bank) = index;
    bank.newest = index;
    if (bank.hit == none && burst.address.row == open_row) bank.hit = index;
    active_[burst.address.bank / 64] |= std::uint64_t{1} << burst.address.bank % 64;
    return index;
  }

  // Takes out a bank's oldest hit and finds the next.
  void pop_hit(std::uint32_t bank_index) {
    Bank& bank = banks_[bank_index];
    const std::uint16_t index = bank.hit;
    const Burst& burst = bursts_[index];
    bank.hit = match(burst.newer_in_bank, burst.address.row);
    (burst.older_in_bank == none ? bank.oldest : bursts_[burst.older_in_bank].newer_in_bank) =
        burst.newer_in_bank;
    (burst.newer_in_bank == none ? bank.newest : bursts_[burst.newer_in_bank].older_in_bank) =
        burst.older_in_bank;
    (burst.older == none ? oldest_ : bursts_[burst.older].newer) = burst.newer;
    (burst.newer == none ? newest_ : bursts_[burst.newer].older) = burst.older;
    if (bank.oldest == none) active_[bank_index / 64] &= ~(std::uint64_t{1} << bank_index % 64);
    free_.push_back(index);
  }

  void row_opened(std::uint32_t bank, std::int32_t row) {
    banks_[bank].hit = match(banks_[bank].oldest, row);
  }
  void row_closed(std::uint32_t bank) { banks_[bank].hit = none; }

  // Whether a burst for that address is queued.
  bool holds(const DramAddress& address) const {
    for (std::uint16_t i = banks_[address.bank].oldest; i != none; i = bursts_[i].newer_in_bank) {
      if (bursts_[i].address.row == address.row && bursts_[i].address.column == address.column) return true;
    }
    return false;
  }

  // Calls visit(bank) for each bank with bursts.
  template <class Visit>
  void for_each_bank(Visit&& visit) const {
    for (std::uint32_t word = 0; word * 64 < banks_.size(); ++word) {
      for (std::uint64_t left = active_[word]; left != 0; left &= left - 1) {
        visit(word * 64 + static_cast<std::uint32_t>(std::countr_zero(left)));
      }
    }
  }

 private:
  struct Bank {
    std::uint16_t oldest = none, newest = none;
    std::uint16_t hit = none;  // the oldest burst for the open row
  };

  std::uint16_t match(std::uint16_t index, std::int32_t row) const {
    while (index != none && bursts_[index].address.row != row) index = bursts_[index].newer_in_bank;
    return index;
  }

  std::vector<Burst> bursts_;
  std::vector<std::uint16_t> free_;
  std::vector<Bank> banks_;
  std::array<std::uint64_t, most_banks / 64> active_{};
  std::uint16_t oldest_ = none, newest_ = none;
};

}  // namespace manyscale::memory
