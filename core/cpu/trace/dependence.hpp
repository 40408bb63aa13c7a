// SPDX-License-Identifier: Apache-2.0
// A dependence: what an operand of an instruction waits for in a compacted trace. It is the result of an
// older node, or the dispatch of the instruction itself, and a computational delay after it.
#pragma once
#include <array>
#include <cstdint>

namespace manyscale::cpu {

struct Dependence {
  static constexpr std::uint64_t on_dispatch = ~std::uint64_t{0};

  std::uint64_t node = on_dispatch;  // position in the stream
  std::uint32_t delay = 0;           // cycles; 0 after its own dispatch: the operand waits for nothing
  std::uint32_t l1_hits = 0;         // of loads within the delay
  // Of a delay after dispatch: the first instruction of the chain that it stands for. The delay is what is
  // left of the chain, in whole cycles, where all instructions between are dispatched at full width.
  std::uint64_t chain_start = on_dispatch;
  std::uint64_t ready_slot = 0;  // … and the dispatch slot at which the chain ends: so delays add up exactly

  bool is_on_dispatch() const { return node == on_dispatch; }
  bool is_none() const { return is_on_dispatch() && delay == 0; }
};

// Those of the three operands of an instruction.
using Dependences = std::array<Dependence, 3>;

// A record has 8 bits for a delay.
inline constexpr std::uint32_t longest_delay = 255;

}  // namespace manyscale::cpu
