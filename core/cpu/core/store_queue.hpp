// SPDX-License-Identifier: Apache-2.0
// Stores from dispatch until they are written to the L1 cache: where loads look for the data of
// older stores, and from where committed stores are written.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "cpu/core/cycle_map.hpp"

namespace manyscale::cpu {

class StoreQueue {
 public:
  struct Store {
    std::uint64_t address = 0;
    std::uint64_t number = 0;  // of its record in the window
    Cycle address_known = unknown;
    Cycle addresses_known = unknown;  // of this one and all older ones
    Cycle complete = unknown;         // address and data are there
    Cycle committed = unknown;
    Cycle written_parts = 0;  // the last of its accesses so far
    Cycle written = unknown;
    std::uint32_t id = 0;  // of the instruction, for prefetchers
    std::uint8_t size = 0;
    std::uint8_t parts = 0;  // outstanding accesses
  };

  StoreQueue(std::int64_t entries, bool in_order)
      : stores_(std::bit_ceil(static_cast<std::size_t>(entries) * 4)),
        mask_(stores_.size() - 1),
        free_(std::bit_ceil(static_cast<std::size_t>(entries))),
        in_order_(in_order) {
    for (std::int64_t i = 0; i < entries; ++i) free_entry(0);
  }

  Store& operator[](std::uint64_t store) { return stores_[store & mask_]; }
  std::uint64_t entered() const { return entered_; }

  // When an entry is free; unknown if that depends on what is in flight.
  Cycle earliest() const {
    if (taken_entries_ == freed_entries_ || entered_ - oldest_ == stores_.size()) return unknown;
    return free_[taken_entries_ & (free_.size() - 1)];
  }
  // A store enters, which takes the entry that was free; gives its number.
  std::uint64_t enter(std::uint64_t address, std::uint8_t size, std::uint64_t number, std::uint32_t id) {
    ++taken_entries_;
    Store& store = stores_[entered_ & mask_];
    store = Store{};
    store.address = address;
    store.size = size;
    store.number = number;
    store.id = id;
    count(store, 1);
    return entered_++;
  }
  void address_is_known(std::uint64_t store, Cycle when) {
    (*this)[store].address_known = when;
    for (; addresses_until_ < entered_; ++addresses_until_) {
      Store& next = (*this)[addresses_until_];
      if (next.address_known == unknown) return;
      latest_address_ = std::max(latest_address_, next.address_known);
      next.addresses_known = latest_address_;
    }
  }
  // When the addresses of all stores before this one are known.
  Cycle addresses_known_before(std::uint64_t store) {
    return store == oldest_ ? 0 : (*this)[store - 1].addresses_known;
  }

  // The youngest store before `before` that touches some of these bytes; nullptr if there is none.
  const Store* find(std::uint64_t address, std::uint8_t size, std::uint64_t before) {
    if (counts_[slot_of(address)] == 0 && counts_[slot_of(address + size - 1)] == 0) return nullptr;
    for (std::uint64_t at = before; at-- > oldest_;) {
      const Store& store = (*this)[at];
      if (store.address < address + size && address < store.address + store.size &&
          store.written == unknown) {
        return &store;
      }
    }
    return nullptr;
  }

  // The store is in the cache from this cycle on.
  void write(std::uint64_t number, Cycle when) {
    Store& store = (*this)[number];
    store.written = when;
    latest_written_ = std::max(latest_written_, when);
    count(store, -1);
    if (!in_order_) free_entry(when);
    while (oldest_ < entered_ && (*this)[oldest_].written != unknown) {
      if (in_order_) {
        latest_free_ = std::max(latest_free_, (*this)[oldest_].written);
        free_entry(latest_free_);
      }
      ++oldest_;
    }
  }
  // Whether all stores before this one are written, and since when.
  bool written_before(std::uint64_t store) const { return oldest_ >= store; }
  Cycle latest_written() const { return latest_written_; }

 private:
  static constexpr std::size_t count_slots = 256;
  // Accesses are no longer than the granule, so one touches at most two of them.
  static constexpr int granule_shift = 5;

  static std::size_t slot_of(std::uint64_t address) { return (address >> granule_shift) % count_slots; }
  void count(const Store& store, int change) {
    const std::size_t first = slot_of(store.address);
    const std::size_t last = slot_of(store.address + store.size - 1);
    counts_[first] = static_cast<std::uint16_t>(counts_[first] + change);
    if (last != first) counts_[last] = static_cast<std::uint16_t>(counts_[last] + change);
  }
  void free_entry(Cycle when) { free_[freed_entries_++ & (free_.size() - 1)] = when; }

  std::vector<Store> stores_;
  std::uint64_t mask_;
  std::uint64_t oldest_ = 0, entered_ = 0;
  std::uint64_t addresses_until_ = 0;
  Cycle latest_address_ = 0;
  Cycle latest_written_ = 0;
  Cycle latest_free_ = 0;
  std::vector<Cycle> free_;  // when entries became free, in the order in which that was known
  std::uint64_t freed_entries_ = 0, taken_entries_ = 0;
  std::array<std::uint16_t, count_slots> counts_{};  // of stores per granule of memory, by its address
  bool in_order_;
};

}  // namespace manyscale::cpu
