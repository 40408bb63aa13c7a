// SPDX-License-Identifier: Apache-2.0
// Expansion of an operation: the SASS instructions that it becomes, by kind, and which of them depend on each
// other. Written as text that the compiler reads: opcodes in their order, with ">" before one that needs the
// result of the last such one. The last of these has the operation's result.
//   "I2F IADD3 >MUFU >IADD3"_steps
// One opcode stands for all of its kind; modifiers do not matter, except those of IMAD.WIDE.
#pragma once
#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "gpu/lower/sass_code.hpp"

namespace manyscale::gpu {

struct ExpansionStep {
  InstructionKind kind = InstructionKind::other;
  bool chained = false;  // it needs the result of the last chained step before it
};
using Expansion = std::span<const ExpansionStep>;

namespace detail {

struct OpcodeKind {
  std::string_view opcode;
  InstructionKind kind;
};
inline constexpr OpcodeKind kOpcodeKinds[] = {
    {"IADD3", InstructionKind::integer},     {"LOP3", InstructionKind::logic},
    {"IMAD", InstructionKind::multiply_add}, {"IMAD.WIDE", InstructionKind::multiply_wide},
    {"FFMA", InstructionKind::fp32},         {"DFMA", InstructionKind::fp64},
    {"HFMA2", InstructionKind::fp16},        {"MUFU", InstructionKind::special_function},
    {"I2F", InstructionKind::convert},       {"F2I", InstructionKind::convert},
    {"F2F", InstructionKind::convert},       {"POPC", InstructionKind::convert},
    {"FLO", InstructionKind::convert},       {"BREV", InstructionKind::convert},
    {"BRA", InstructionKind::branch},        {"NOP", InstructionKind::other},
    {"VOTE", InstructionKind::vote},         {"SHFL", InstructionKind::shuffle},
    {"S2R", InstructionKind::move_special},
};

template <std::size_t N>
struct ExpansionText {
  char text[N]{};
  consteval ExpansionText(const char (&from)[N]) { std::ranges::copy(from, text); }
  constexpr std::string_view view() const { return {text, N - 1}; }
  consteval std::size_t steps() const {
    return view().empty() ? 0 : 1 + static_cast<std::size_t>(std::ranges::count(view(), ' '));
  }
};

// Where the first opcode ends. With -fsanitize=undefined the standard library's search is no constant.
constexpr std::size_t opcode_length(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && text[length] != ' ') ++length;
  return length;
}

// A wrong opcode does not compile.
template <ExpansionText Text>
consteval auto parsed_expansion() {
  std::array<ExpansionStep, Text.steps()> steps{};
  std::string_view rest = Text.view();
  for (ExpansionStep& step : steps) {
    step.chained = rest.starts_with('>');
    if (step.chained) rest.remove_prefix(1);
    const std::string_view opcode = rest.substr(0, opcode_length(rest));
    const auto* found = std::ranges::find(kOpcodeKinds, opcode, &OpcodeKind::opcode);
    if (found == std::end(kOpcodeKinds)) throw "an expansion has an unknown opcode";
    step.kind = found->kind;
    rest.remove_prefix(std::min(rest.size(), opcode.size() + 1));
  }
  return steps;
}

template <ExpansionText Text>
inline constexpr auto kExpansion = parsed_expansion<Text>();

}  // namespace detail

template <detail::ExpansionText Text>
constexpr Expansion operator""_steps() {
  return detail::kExpansion<Text>;
}

}  // namespace manyscale::gpu
