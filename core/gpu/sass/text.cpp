// SPDX-License-Identifier: Apache-2.0
// Instructions as text, exactly as NVIDIA's disassembler writes them.
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>

#include "gpu/sass/instruction.hpp"
#include "gpu/sass/special_registers.hpp"

namespace manyscale::sass {
namespace {

std::string hexadecimal(std::int64_t value) {
  char digits[32];
  const bool negative = value < 0;
  const auto magnitude = negative ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  std::snprintf(digits, sizeof digits, "%s0x%llx", negative ? "-" : "",
                static_cast<unsigned long long>(magnitude));
  return digits;
}

// A floating-point number; `quiet` tells the two kinds of NaN apart, which a value cannot carry safely.
std::string decimal(double value, bool negative, bool quiet) {
  if (std::isnan(value)) {
    return std::string{negative ? "-" : "+"} + (quiet ? "QNAN" : "SNAN");
  }
  if (std::isinf(value)) {
    return negative ? "-INF" : "+INF";
  }
  if (value == 0) {
    return negative ? "-0.0" : "0";
  }
  // Integers up to here have all their digits printed; larger numbers get an exponent.
  constexpr double kLongestInteger = 1e9;
  char digits[64];
  std::snprintf(digits, sizeof digits, std::fabs(value) < kLongestInteger ? "%.20g" : "%.20e", value);
  return digits;
}

std::string decimal32(std::uint32_t bits) {
  return decimal(static_cast<double>(std::bit_cast<float>(bits)), bits >> 31 != 0, (bits >> 22 & 1) != 0);
}

std::string decimal64(std::uint64_t bits) {
  return decimal(std::bit_cast<double>(bits), bits >> 63 != 0, (bits >> 51 & 1) != 0);
}

std::string decimal16(std::uint32_t bits) {
  const bool negative = (bits >> 15 & 1) != 0;
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const int fraction = static_cast<int>(bits & 1023);
  double value = 0;
  if (exponent == 31) {
    value =
        fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else {
    value = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  }
  return decimal(negative ? -value : value, negative, (bits >> 9 & 1) != 0);
}

// Numbers that are printed as words are followed by a blank where something follows.
std::string_view separator_after(std::string_view printed) {
  const bool is_word = printed.ends_with("INF") || printed.ends_with("NAN") || printed.ends_with("-0.0");
  return is_word ? " , " : ", ";
}

// The two halves of a packed number; the upper one comes first.
std::string pair(std::string upper, const std::string& lower) {
  upper += separator_after(upper);
  return upper + lower;
}

// What each lane of a quad does with its two numbers: adds, negates the first or the second, takes the
// second.
std::string signs(std::uint32_t bits) {
  static constexpr std::string_view kSigns[] = {"PP", "PN", "NP", "ZP"};
  std::string made;
  for (unsigned lane = 4; lane-- > 0;) {
    made += kSigns[bits >> (2 * lane) & 3];
  }
  return made;
}

std::string immediate(const Operand& operand) {
  const auto bits = static_cast<std::uint32_t>(operand.value);
  switch (operand.format) {
    case Operand::Format::float32:
      return decimal32(bits);
    case Operand::Format::float64_high:
      return decimal64(std::uint64_t{bits} << 32);
    case Operand::Format::float16x2:
      return pair(decimal16(bits >> 16), decimal16(bits & 0xffff));
    case Operand::Format::bfloat16x2:
      return pair(decimal32(bits & 0xffff0000), decimal32(bits << 16));
    case Operand::Format::signs:
      return signs(bits);
    default:
      return hexadecimal(operand.value);
  }
}

std::string numbered(std::string_view letters, unsigned index, unsigned nothing,
                     std::string_view nothing_name) {
  if (index == nothing) {
    return std::string{nothing_name};
  }
  return std::string{letters} + std::to_string(index);
}

std::string general(unsigned index) {
  return numbered("R", index, kZeroRegister, "RZ");
}
std::string uniform(unsigned index) {
  return numbered("UR", index, kZeroUniformRegister, "URZ");
}

std::string suffixes(const Operand& operand) {
  std::string made;
  for (const Modifier modifier : operand.suffix) {
    if (modifier != Modifier{}) {
      made += '.';
      made += name_of(modifier);
    }
  }
  return made;
}

// Adds a part of an address: a register, a uniform register or a number.
void join(std::string& sum, const std::string& part) {
  if (!sum.empty()) {
    sum += '+';
  }
  sum += part;
}

std::string address(const Operand& operand) {
  std::string sum;
  const bool register_shown = operand.indexed || operand.index != kZeroRegister ||
                              (operand.uniform == Operand::kNone && operand.value == 0);
  if (register_shown) {
    sum = general(operand.index) + suffixes(operand);
  }
  if (operand.uniform != Operand::kNone) {
    join(sum, uniform(operand.uniform));
  }
  if (operand.value != 0) {
    join(sum, hexadecimal(operand.value));
  }
  const std::string address = "[" + sum + "]";
  return operand.descriptor == Operand::kNone ? address
                                              : "desc[" + uniform(operand.descriptor) + "]" + address;
}

std::string constant(const Operand& operand, bool matrix_unit) {
  const std::int64_t value = operand.signed_offset ? static_cast<std::int16_t>(operand.value) : operand.value;
  std::string address;
  if (operand.index != kZeroRegister) {
    address = general(operand.index);
  }
  if (operand.uniform != Operand::kNone) {
    join(address, uniform(operand.uniform));
  }
  if (operand.value != 0 || (address.empty() && !operand.indexed)) {
    join(address, hexadecimal(value));
  } else if (address.empty()) {
    address = general(kZeroRegister);
  }
  const std::string table = operand.descriptor != Operand::kNone ? "cx[" + uniform(operand.descriptor) + "]"
                                                                 : "c[" + hexadecimal(operand.bank) + "]";
  const bool half = operand.format == Operand::Format::float16x2 ||
                    operand.format == Operand::Format::bfloat16x2 || operand.has(mod("SIGN"));
  return table + (half && !matrix_unit ? " [" : "[") + address + "]";
}

std::string flag_mask(std::int64_t mask) {
  std::string made = "{";
  for (int bit = 5; bit >= 0; --bit) {
    if ((mask >> bit & 1) != 0) {
      made += made.size() > 1 ? "," : "";
      made += std::to_string(bit);
    }
  }
  return made + "}";
}

std::string bare(const Operand& operand, bool matrix_unit) {
  switch (operand.kind) {
    case OperandKind::general:
      return general(operand.index);
    case OperandKind::uniform:
      return uniform(operand.index);
    case OperandKind::predicate:
      return numbered("P", operand.index, kTruePredicate, "PT");
    case OperandKind::uniform_predicate:
      return numbered("UP", operand.index, kTruePredicate, "UPT");
    case OperandKind::convergence:
      return "B" + std::to_string(operand.index);
    case OperandKind::dependence:
      return "SB" + std::to_string(operand.index);
    case OperandKind::special:
      return std::string{special_register_name(static_cast<unsigned>(operand.value))};
    case OperandKind::immediate:
      return immediate(operand);
    case OperandKind::constant:
      return constant(operand, matrix_unit);
    case OperandKind::address:
      return address(operand);
    case OperandKind::target:
      return hexadecimal(operand.value);
    case OperandKind::word:
      return std::string{name_of(operand.suffix[0])};
    case OperandKind::predicates:
      return "PR";
    case OperandKind::uniform_predicates:
      return "UPR";
    case OperandKind::flag_mask:
      return flag_mask(operand.value);
    case OperandKind::policy:
      return "desc[" + uniform(operand.index) + "]";
    case OperandKind::matrices:
      return "gdesc[" + uniform(operand.index) + "]";
    case OperandKind::none:
      break;
  }
  return "";
}

std::string printed(const Operand& operand, bool matrix_unit) {
  std::string made = bare(operand, matrix_unit);
  const bool has_suffix = operand.kind != OperandKind::word && operand.kind != OperandKind::address;
  const std::string suffix = has_suffix ? suffixes(operand) : "";
  if (operand.absolute) {
    made = "|" + made + "|";
  }
  if (operand.reuse) {
    made += ".reuse";
  }
  made += suffix;
  if (operand.inverted) {
    made = "~" + made;
  }
  if (operand.negated) {
    const bool is_predicate =
        operand.kind == OperandKind::predicate || operand.kind == OperandKind::uniform_predicate;
    made = (is_predicate ? "!" : "-") + made;
  }
  return made;
}

bool is_indirect(Opcode opcode) {
  return opcode == op("BRX") || opcode == op("CALL") || opcode == op("RET") || opcode == op("JMX") ||
         opcode == op("BRXU") || opcode == op("JMXU");
}

}  // namespace

std::string mnemonic(const Instruction& instruction) {
  std::string made{instruction.known() ? name_of(instruction.opcode) : "unknown"};
  if (const auto& [rows, columns, depth] = instruction.shape; rows != 0) {
    made += '.' + std::to_string(rows) + 'x' + std::to_string(columns) + 'x' + std::to_string(depth);
  }
  for (const Modifier modifier : instruction.modifiers) {
    if (modifier != Modifier{}) {
      made += '.';
      made += name_of(modifier);
    }
  }
  return made;
}

std::string text(const Instruction& instruction) {
  std::string made;
  if (instruction.guard != kTruePredicate || instruction.guard_negated) {
    made += instruction.guard_negated ? "@!" : "@";
    made += numbered(instruction.guard_uniform ? "UP" : "P", instruction.guard, kTruePredicate,
                     instruction.guard_uniform ? "UPT" : "PT");
    made += ' ';
  }
  made += mnemonic(instruction);
  std::string_view separator = " ";
  for (unsigned at = 0; at < instruction.operand_count; ++at) {
    const Operand& operand = instruction.operands[at];
    if (operand.shown) {
      // A register that a address is counted from stands before it like a part of it.
      const bool is_target = operand.kind == OperandKind::target || operand.kind == OperandKind::immediate;
      if (at > 0 && is_target && is_indirect(instruction.opcode) &&
          (instruction.operands[at - 1].kind == OperandKind::general ||
           instruction.operands[at - 1].kind == OperandKind::uniform)) {
        separator = " ";
      }
      made += separator;
      made += printed(operand, instruction.has(mod("MMA")));
      separator = separator_after(made);
    }
  }
  return made;
}

}  // namespace manyscale::sass
