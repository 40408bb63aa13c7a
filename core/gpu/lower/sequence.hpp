// SPDX-License-Identifier: Apache-2.0
// The SASS instructions that an operation becomes, by kind.
#pragma once
#include <algorithm>
#include <vector>

#include "gpu/lower/expansion.hpp"
#include "gpu/lower/selection.hpp"

namespace manyscale::gpu {

struct Sequence {
  Expansion steps;
  InstructionKind main = InstructionKind::count;  // the instruction behind them that has the operation's
                                                  // effect; count: there is none
  unsigned repeat = 1;                            // of the main one
  bool branches() const {
    return std::ranges::find(steps, InstructionKind::branch, &ExpansionStep::kind) != steps.end();
  }
  std::size_t length() const { return steps.size() + (main == InstructionKind::count ? 0 : repeat); }
};

// What an operation executes, without the constants that it must bring into registers.
Sequence sequence_of(const Values& values, const Selection& selection, std::uint32_t op, bool is_kernel);

struct WarpAggregatedAtomic;
// What the assembler makes of an atomic operation if all lanes have the same address; null if that is nothing
// special.
const WarpAggregatedAtomic* warp_aggregated_atomic(const Values& values, std::uint32_t op);

// A constant that may need a register, because an instruction takes only one that is not.
struct Constant {
  Source source;
  unsigned words = 1;
};
// Those of an operation, at most four.
struct Constants {
  std::vector<Constant> list;
  bool keeps_one = false;  // all but one need a register: best the first
};
Constants constants_of(const Values& values, const Selection& selection, std::uint32_t op);

}  // namespace manyscale::gpu
