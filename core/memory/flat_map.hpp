// SPDX-License-Identifier: Apache-2.0
// A hash table from addresses to small values, in one piece of memory: no allocation per entry, few cache
// misses per look-up.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace manyscale::memory {

template <class Value>
class FlatMap {
 public:
  // Room for that many entries without growing.
  explicit FlatMap(std::size_t expected = 8) {
    std::size_t slots = 16;
    while (slots < expected * 2) slots *= 2;
    resize(slots);
  }

  std::size_t size() const { return size_; }
  std::size_t bytes() const { return slots_.capacity() * sizeof(Slot); }

  Value* find(std::uint64_t key) {
    for (std::size_t at = home(key);; at = next(at)) {
      if (!slots_[at].used) return nullptr;
      if (slots_[at].key == key) return &slots_[at].value;
    }
  }
  const Value* find(std::uint64_t key) const { return const_cast<FlatMap*>(this)->find(key); }

  // The value of the key, a new one if there was none. Pointers and references hold until the next insertion
  // or removal.
  Value& operator[](std::uint64_t key) {
    if (Value* found = find(key)) return *found;
    return insert_new(key, Value{});
  }

  // The same for a key that is not there, which saves looking for it.
  Value& insert_new(std::uint64_t key, const Value& value) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    std::size_t at = home(key);
    while (slots_[at].used) at = next(at);
    slots_[at] = {key, value, true};
    ++size_;
    return slots_[at].value;
  }

  bool erase(std::uint64_t key) {
    std::size_t at = home(key);
    while (slots_[at].used && slots_[at].key != key) at = next(at);
    if (!slots_[at].used) return false;
    // Entries further on that were pushed past this slot move up, so that no chain is broken.
    std::size_t hole = at;
    for (std::size_t probe = next(at); slots_[probe].used; probe = next(probe)) {
      const std::size_t wanted = home(slots_[probe].key);
      const bool between =
          hole <= probe ? (hole < wanted && wanted <= probe) : (hole < wanted || wanted <= probe);
      if (between) continue;
      slots_[hole] = std::move(slots_[probe]);
      hole = probe;
    }
    slots_[hole] = Slot{};
    --size_;
    return true;
  }

  template <class Visit>
  void for_each(Visit&& visit) {
    for (Slot& slot : slots_) {
      if (slot.used) visit(slot.key, slot.value);
    }
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Slot& slot : slots_) {
      if (slot.used) visit(slot.key, slot.value);
    }
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    Value value{};
    bool used = false;
  };

  // The upper bits of a product with an odd constant depend on all bits of the key.
  std::size_t home(std::uint64_t key) const { return (key * 0x9e3779b97f4a7c15u) >> shift_; }
  std::size_t next(std::size_t at) const { return (at + 1) & (slots_.size() - 1); }

  void resize(std::size_t slots) {
    slots_.assign(slots, Slot{});
    shift_ = 64 - std::countr_zero(slots);
  }

  void grow() {
    std::vector<Slot> old;
    old.swap(slots_);
    resize(old.size() * 2);
    for (Slot& slot : old) {
      if (!slot.used) continue;
      std::size_t at = home(slot.key);
      while (slots_[at].used) at = next(at);
      slots_[at] = std::move(slot);
    }
  }

  std::vector<Slot> slots_;
  int shift_ = 0;
  std::size_t size_ = 0;
};

}  // namespace manyscale::memory
