// SPDX-License-Identifier: Apache-2.0
#include "gpu/sass/operand_sizes.hpp"

#include <bit>

namespace manyscale::sass {
namespace {

// Registers of the result and of the sources A, B and C of a matrix instruction.
struct MatrixSizes {
  std::uint8_t result;
  std::uint8_t a;
  std::uint8_t b;
};

bool is_value(const Operand& operand) {
  return operand.kind == OperandKind::general || operand.kind == OperandKind::uniform;
}

void set_count(Operand& operand, std::uint8_t count) {
  if (is_value(operand)) {
    operand.count = count;
  }
}

void set_all(Instruction& instruction, std::uint8_t count) {
  for (Operand& operand : instruction.operands) {
    set_count(operand, count);
  }
}

void set_written(Instruction& instruction, std::uint8_t count) {
  for (Operand& operand : instruction.operands) {
    if (operand.written) {
      set_count(operand, count);
    }
  }
}

void set_read(Instruction& instruction, std::uint8_t count) {
  for (Operand& operand : instruction.operands) {
    if (!operand.written) {
      set_count(operand, count);
    }
  }
}

std::uint8_t data_registers(const Instruction& instruction) {
  if (instruction.has(mod("128")) || instruction.has(mod("U.128"))) {
    return 4;
  }
  const bool two = instruction.has(mod("64")) || instruction.has(mod("S64")) || instruction.has(mod("F64"));
  return two ? 2 : 1;
}

// Data that is loaded, stored or combined in memory, and the register pair of a 64-bit address.
void size_memory(Instruction& instruction) {
  set_all(instruction, data_registers(instruction));
  for (Operand& operand : instruction.operands) {
    if (operand.kind == OperandKind::address) {
      operand.count = instruction.has(mod("E")) && !operand.has(mod("U32")) ? 2 : 1;
    }
  }
}

void size_conversion(Instruction& instruction) {
  const auto wide = [&](std::string_view name) { return name == "F64" || name == "S64" || name == "U64"; };
  // Two types at most: the result's stands first. Without a type it is one of 32 bits.
  std::uint8_t result = 1;
  std::uint8_t source = 1;
  switch (instruction.opcode) {
    case op("F2F"):
      result = wide(name_of(instruction.modifiers[instruction.has(mod("FTZ")) ? 1 : 0])) ? 2 : 1;
      source = wide(name_of(instruction.modifiers[instruction.has(mod("FTZ")) ? 2 : 1])) ? 2 : 1;
      break;
    case op("F2I"):
      result = instruction.has(mod("S64")) || instruction.has(mod("U64")) ? 2 : 1;
      source = instruction.has(mod("F64")) ? 2 : 1;
      break;
    case op("I2F"):
      result = instruction.has(mod("F64")) ? 2 : 1;
      source = instruction.has(mod("S64")) || instruction.has(mod("U64")) ? 2 : 1;
      break;
    default:
      result = source = instruction.has(mod("F64")) ? 2 : 1;
      break;
  }
  set_written(instruction, result);
  set_read(instruction, source);
}

MatrixSizes matrix_sizes(const Instruction& instruction) {
  const auto result = static_cast<std::uint8_t>(instruction.has(mod("F16")) ? 2 : 4);
  const bool nibbles = instruction.has(mod("S4")) || instruction.has(mod("U4"));
  switch (instruction.modifiers[0]) {
    case mod("884"):
      if (instruction.opcode == op("DMMA")) {
        return {4, 2, 2};
      }
      return {2, 2, 2};
    case mod("1684"):
      return {4, 2, 1};
    case mod("1688"):
      return instruction.has(mod("TF32")) ? MatrixSizes{4, 4, 2} : MatrixSizes{result, 2, 1};
    case mod("16816"):
      return instruction.opcode == op("HMMA") ? MatrixSizes{result, 4, 2} : MatrixSizes{result, 2, 1};
    case mod("8816"):
    case mod("8832"):
    case mod("88128"):
      return {2, 1, 1};
    case mod("16832"):
      return nibbles ? MatrixSizes{4, 2, 1} : MatrixSizes{result, 4, 2};
    case mod("16864"):
    case mod("168256"):
      return {4, 4, 2};
    case mod("168128"):
      return {4, 2, 1};
    case mod("8x8x4"):
      return {4, 2, 2};
    case mod("16x8x4"):
      return {8, 4, 2};
    case mod("16x8x8"):
      return {8, 8, 4};
    case mod("16x8x16"):
      return {8, 16, 8};
    default:
      return {1, 1, 1};
  }
}

void size_matrix(Instruction& instruction) {
  const MatrixSizes sizes = matrix_sizes(instruction);
  set_count(instruction.operands[0], sizes.result);
  set_count(instruction.operands[1], sizes.a);
  set_count(instruction.operands[2], sizes.b);
  set_count(instruction.operands[3], sizes.result);
}

// Results of a texture come in two pairs; which of the four are wanted is a mask.
void size_texture(Instruction& instruction) {
  const auto wanted = static_cast<std::uint8_t>(std::popcount(instruction.words.bits(72, 4)));
  for (Operand& operand : instruction.operands) {
    if (operand.written && is_value(operand)) {
      operand.count = 2;
    }
  }
  if (wanted == 1) {
    set_written(instruction, 1);
  }
}

void size_matrix_move(Instruction& instruction) {
  const std::uint8_t count = instruction.has(mod("4")) ? 4 : instruction.has(mod("2")) ? 2 : 1;
  set_all(instruction, count);
}

}  // namespace

void size_operands(Instruction& instruction) {
  switch (instruction.opcode) {
    case op("LD"):
    case op("LDG"):
    case op("LDS"):
    case op("LDL"):
    case op("LDC"):
    case op("ULDC"):
    case op("ST"):
    case op("STG"):
    case op("STS"):
    case op("STL"):
    case op("ATOM"):
    case op("ATOMG"):
    case op("ATOMS"):
    case op("RED"):
    case op("REDG"):
    case op("LDGSTS"):
    case op("QSPC"):
      size_memory(instruction);
      break;
    case op("DADD"):
    case op("DMUL"):
    case op("DFMA"):
    case op("DSETP"):
      set_all(instruction, 2);
      break;
    case op("F2F"):
    case op("F2I"):
    case op("I2F"):
    case op("FRND"):
      size_conversion(instruction);
      break;
    case op("IMAD"):
    case op("UIMAD"):
      // The addend of a wide product is as wide as the product.
      if (instruction.has(mod("WIDE"))) {
        set_written(instruction, 2);
      }
      if (instruction.has(mod("WIDE")) || instruction.has(mod("HI"))) {
        set_count(instruction.operands[4], 2);
      }
      break;
    case op("CS2R"):
      set_written(instruction, instruction.has(mod("32")) ? 1 : 2);
      break;
    case op("LEPC"):
    case op("BRX"):
    case op("CALL"):
    case op("RET"):
      set_all(instruction, 2);
      break;
    case op("MATCH"):
      set_read(instruction, instruction.has(mod("U64")) ? 2 : 1);
      break;
    case op("HMMA"):
    case op("QMMA"):
    case op("IMMA"):
    case op("BMMA"):
    case op("DMMA"):
      size_matrix(instruction);
      break;
    case op("LDSM"):
    case op("STSM"):
      size_matrix_move(instruction);
      break;
    case op("TEX"):
    case op("TLD"):
    case op("TLD4"):
    case op("TXD"):
    case op("TXQ"):
      size_texture(instruction);
      break;
    default:
      break;
  }
}

}  // namespace manyscale::sass
