// SPDX-License-Identifier: Apache-2.0
// Which parts of a component have to be looked at in which of the next cycles: cheaper than an event each.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "engine/time.hpp"

namespace manyscale::memory {

// A wheel of the coming cycles, with the parts that are due in each. What is asked for beyond its span comes
// early, at its end; a part that is looked at too early says again when it wants to be.
class Wheel {
 public:
  static constexpr Cycle span = 256;

  void resize(std::size_t parts) { due_.assign(parts, never); }

  // Has the part looked at no later than `at`, which is not before `now`.
  void wake(std::uint32_t part, Cycle at, Cycle now) {
    at = std::min(at, now + span - 1);
    if (due_[part] <= at) return;
    due_[part] = at;
    const auto slot = static_cast<std::size_t>(at % span);
    slots_[slot].push_back(part);
    occupied_[slot / 64] |= std::uint64_t{1} << (slot % 64);
  }

  // Calls look(part) for each part due in this cycle.
  template <class Look>
  void turn(Cycle now, Look&& look) {
    const auto slot = static_cast<std::size_t>(now % span);
    auto& parts = slots_[slot];
    for (std::size_t i = 0; i < parts.size(); ++i) {  // it may grow meanwhile
      const std::uint32_t part = parts[i];
      if (due_[part] != now) continue;  // it was woken earlier since
      due_[part] = never;
      look(part);
    }
    parts.clear();
    occupied_[slot / 64] &= ~(std::uint64_t{1} << (slot % 64));
  }

  // The first cycle after `now` in which something is due, `never` when nothing is.
  Cycle next(Cycle now) const {
    const auto first = static_cast<std::size_t>((now + 1) % span);
    for (std::size_t k = 0; k <= words; ++k) {
      const std::size_t word = (first / 64 + k) % words;
      std::uint64_t bits = occupied_[word];
      if (k == 0) bits &= ~std::uint64_t{0} << (first % 64);
      if (k == words) bits &= ~(~std::uint64_t{0} << (first % 64));
      if (bits == 0) continue;
      const auto slot = static_cast<Cycle>(word * 64) + std::countr_zero(bits);
      return now + 1 + (slot - static_cast<Cycle>(first) + span) % span;
    }
    return never;
  }

 private:
  static constexpr std::size_t words = span / 64;

  std::array<std::vector<std::uint32_t>, span> slots_;
  std::array<std::uint64_t, words> occupied_{};
  std::vector<Cycle> due_;  // per part; `never` when it is not due
};

}  // namespace manyscale::memory
