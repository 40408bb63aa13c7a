// SPDX-License-Identifier: Apache-2.0
// Stall reasons of a warp, and until when one holds.
#pragma once
#include <cstdint>

#include "engine/clock.hpp"

namespace manyscale::gpu {

// When something is done of which nobody knows yet: a load that missed, a barrier.
inline constexpr Cycle kPending = never;

// `local` and `atomic` are Long Scoreboard too.
enum class Stall : std::uint8_t {
  wait,
  long_scoreboard,
  local,
  atomic,
  short_scoreboard,
  barrier,
  no_instruction,
  page_fault
};

// Until when a warp cannot issue, and why.
struct Waiting {
  Cycle until;
  Stall why = Stall::wait;
  const std::uint32_t* conflict = nullptr;  // cycles that conflicts add
  void consider(Cycle ready, Stall reason, const std::uint32_t* added = nullptr) {
    if (ready <= until) return;
    until = ready;
    why = reason;
    conflict = added;
  }
};

}  // namespace manyscale::gpu
