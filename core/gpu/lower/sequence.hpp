// SPDX-License-Identifier: Apache-2.0
// The machine instructions that an operation becomes, by kind.
#pragma once
#include <string_view>
#include <vector>

#include "gpu/lower/machine_code.hpp"
#include "gpu/lower/selection.hpp"

namespace manyscale::gpu {

struct Sequence {
  std::string_view letters;  // as in macros.hpp
  Kind main =
      Kind::count;      // the instruction behind them that has the operation's effect; count: there is none
  unsigned repeat = 1;  // of the main one
  bool branches() const { return letters.find_first_of("bB") != std::string_view::npos; }
  std::size_t length() const { return letters.size() + (main == Kind::count ? 0 : repeat); }
};

Kind kind_of_letter(char letter);

// What an operation executes, without the constants that it must bring into registers.
Sequence sequence_of(const Values& values, const Selection& selection, std::uint32_t op, bool is_kernel);

struct CombinedAtomic;
// What the assembler makes of an atomic operation if all lanes have the same address; null if that is nothing
// special.
const CombinedAtomic* combined_atomic(const Values& values, std::uint32_t op);

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
