// SPDX-License-Identifier: Apache-2.0
// Where the registers of SASS lie in a warp's frame: first the general ones, of which each takes 32
// lanes of 4 bytes (a value of 64 bits is two of them, one behind the other), then all others.
#pragma once
#include <cstdint>

#include "gpu/exec/op.hpp"

namespace manyscale::gpu {

inline constexpr std::uint32_t kPlaneBytes = 4 * kLanes;  // of one word of all lanes

constexpr Slot general_register(unsigned index) {
  return make_slot(Base::frame, index * kPlaneBytes);
}
// The next word of a value that has several.
constexpr Slot next_word(Slot slot, unsigned words = 1) {
  return slot + words * kPlaneBytes;
}

// The frame of a program that uses so many registers.
struct RegisterLayout {
  unsigned general = 0;
  unsigned uniform = 0;
  unsigned barriers = 0;  // B0 and so on: of each lane a mask

  static constexpr unsigned kBarriers = 16;      // at most
  static constexpr unsigned kDiscardWords = 40;  // where results go that nobody wants

  constexpr Slot uniform_register(unsigned index) const { return general_register(general + index); }
  constexpr Slot barrier(unsigned index) const { return uniform_register(uniform + index); }
  // P0 to P6 and UP0 to UP6 are a mask each; behind them one that nobody reads.
  constexpr Slot predicate(unsigned index) const { return barrier(barriers) + 4 * index; }
  constexpr Slot uniform_predicate(unsigned index) const { return predicate(8 + index); }
  constexpr Slot discarded_predicate() const { return predicate(7); }
  // Behind all others, since it need not be cleared.
  constexpr Slot discard() const { return predicate(16); }
  constexpr std::uint32_t bytes() const { return next_word(discard(), kDiscardWords) & ~Slot{3}; }
  constexpr std::uint32_t discarded_bytes() const { return kDiscardWords * kPlaneBytes; }
};

}  // namespace manyscale::gpu
