// SPDX-License-Identifier: Apache-2.0
// The instructions of RV64GC with Zba, Zbb, Zbs and Zicond: one row for each, from which decoding,
// disassembly and the kinds of work in records all come. Compressed instructions are expanded to these first
// (compressed.hpp).
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "cpu/stream/record.hpp"

namespace manyscale::cpu::riscv {

// Which register file an operand is in.
enum class File : std::uint8_t { none, integer, floating };

// How the immediate lies in the instruction.
enum class Immediate : std::uint8_t { none, i, s, b, u, j, shift5, shift6, csr };

// What operands an instruction has and how an assembler writes them: in `text`, d is rd, 1 to 3 are the
// sources, i the immediate, t the target of a jump, c a control register, z the five bits of rs1 as a number,
// r the rounding mode; everything else stands for itself.
struct Shape {
  File rd = File::none, rs1 = File::none, rs2 = File::none, rs3 = File::none;
  Immediate immediate = Immediate::none;
  bool rounds = false;  // bits 14:12 are a rounding mode
  std::string_view text;
};

struct Encoding {
  std::uint32_t mask, match;
};

struct Row {
  std::string_view name;
  Encoding encoding;
  const Shape* shape;
  InstructionClass kind;
  std::uint8_t size = 0;    // bytes touched in memory
  std::uint8_t format = 0;  // of floating point: bytes of the operands
};

std::span<const Row> instruction_rows();

// Ratified instructions that are recognised and not executed, so that an error can name their extension.
struct UnsupportedRow {
  std::string_view extension;
  Encoding encoding;
};
std::span<const UnsupportedRow> unsupported_rows();

// One decoded instruction.
struct Instruction {
  const Row* row = nullptr;      // nullptr: illegal or unsupported
  std::string_view unsupported;  // the extension it belongs to, if it is known and not executed
  std::int64_t immediate = 0;
  std::uint32_t bits = 0;  // as fetched
  std::uint8_t rd = 0, rs1 = 0, rs2 = 0, rs3 = 0;
  std::uint8_t rounding = 0;
  std::uint8_t length = 4;  // bytes

  bool is(std::string_view name) const { return row != nullptr && row->name == name; }
};

// Decodes the bits at a pc; of a compressed instruction only the low 16 count.
Instruction decode(std::uint32_t bits);

inline constexpr bool is_compressed(std::uint32_t bits) {
  return (bits & 3) != 3;
}

// Rounding modes, as in frm and in instructions.
struct Rounding {
  static constexpr std::uint8_t nearest_even = 0, to_zero = 1, down = 2, up = 3, nearest_away = 4,
                                dynamic = 7;
};

// Flags of fcsr.
struct FloatFlag {
  static constexpr std::uint8_t inexact = 1, underflow = 2, overflow = 4, divide_by_zero = 8, invalid = 16;
};

// Control and status registers that a program can use.
struct ControlRegister {
  static constexpr std::uint32_t fflags = 0x001, frm = 0x002, fcsr = 0x003;
  static constexpr std::uint32_t cycle = 0xc00, time = 0xc01, instret = 0xc02;
};

}  // namespace manyscale::cpu::riscv
