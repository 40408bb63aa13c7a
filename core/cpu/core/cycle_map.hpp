// SPDX-License-Identifier: Apache-2.0
// Which of the next cycles are marked: a ring of bits, so that the next marked cycle is found without looking
// at each.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <limits>

#include "engine/time.hpp"

namespace manyscale::cpu {

// A cycle that depends on something still in flight.
inline constexpr Cycle unknown = std::numeric_limits<Cycle>::max();

class CycleMap {
 public:
  // Marks may lie less than this many cycles apart.
  static constexpr Cycle range = 1024;

  static std::size_t slot(Cycle cycle) { return static_cast<std::size_t>(cycle & (range - 1)); }
  bool empty() const { return marked_ == 0; }
  bool marked(Cycle cycle) const { return (word(cycle) >> (cycle & 63) & 1) != 0; }
  void mark(Cycle cycle) {
    std::uint64_t& bits = words_[slot(cycle) / 64];
    const std::uint64_t bit = std::uint64_t{1} << (cycle & 63);
    marked_ += (bits & bit) == 0;
    bits |= bit;
  }
  void clear(Cycle cycle) {
    words_[slot(cycle) / 64] &= ~(std::uint64_t{1} << (cycle & 63));
    --marked_;
  }
  // The first marked cycle from `from` on, where all marks lie within `range` of it.
  Cycle next(Cycle from) const {
    if (marked_ == 0) return unknown;
    std::uint64_t bits = word(from) >> (from & 63);
    if (bits != 0) return from + std::countr_zero(bits);
    for (Cycle at = (from | 63) + 1;; at += 64) {
      bits = word(at);
      if (bits != 0) return at + std::countr_zero(bits);
    }
  }

 private:
  std::uint64_t word(Cycle cycle) const { return words_[slot(cycle) / 64]; }

  std::array<std::uint64_t, range / 64> words_{};
  std::int64_t marked_ = 0;
};

}  // namespace manyscale::cpu
