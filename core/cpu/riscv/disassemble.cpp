// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>
#include <string>

#include "cpu/riscv/instruction.hpp"
#include "cpu/riscv/interpreter.hpp"

namespace manyscale::cpu::riscv {

namespace {

constexpr std::array<std::string_view, 32> integer_names{
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0",  "a1",  "a2", "a3", "a4", "a5",
    "a6",   "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6"};
constexpr std::array<std::string_view, 32> float_names{
    "ft0", "ft1", "ft2", "ft3", "ft4",  "ft5",  "ft6", "ft7", "fs0",  "fs1", "fa0",
    "fa1", "fa2", "fa3", "fa4", "fa5",  "fa6",  "fa7", "fs2", "fs3",  "fs4", "fs5",
    "fs6", "fs7", "fs8", "fs9", "fs10", "fs11", "ft8", "ft9", "ft10", "ft11"};
constexpr std::array<std::string_view, 8> rounding_suffixes{",rne", ",rtz", ",rdn", ",rup",
                                                            ",rmm", "",     "",     ""};

std::string register_name(File file, std::uint8_t index) {
  return std::string(file == File::floating ? float_names[index] : integer_names[index]);
}

std::string hexadecimal(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string control_name(std::int64_t number) {
  switch (number) {
    case ControlRegister::fflags:
      return "fflags";
    case ControlRegister::frm:
      return "frm";
    case ControlRegister::fcsr:
      return "fcsr";
    case ControlRegister::cycle:
      return "cycle";
    case ControlRegister::time:
      return "time";
    case ControlRegister::instret:
      return "instret";
    default:
      return hexadecimal(static_cast<std::uint64_t>(number));
  }
}

std::string operand(const Instruction& instruction, char letter, std::uint64_t pc) {
  const Shape& shape = *instruction.row->shape;
  switch (letter) {
    case 'd':
      return register_name(shape.rd, instruction.rd);
    case '1':
      return register_name(shape.rs1, instruction.rs1);
    case '2':
      return register_name(shape.rs2, instruction.rs2);
    case '3':
      return register_name(shape.rs3, instruction.rs3);
    case 'i':
      return shape.immediate == Immediate::u ? hexadecimal(instruction.immediate >> 12 & 0xfffff)
                                             : std::to_string(instruction.immediate);
    case 't':
      return hexadecimal(pc + static_cast<std::uint64_t>(instruction.immediate));
    case 'c':
      return control_name(instruction.immediate);
    case 'z':
      return std::to_string(instruction.rs1);
    case 'r':
      return std::string(rounding_suffixes[instruction.rounding]);
    default:
      return std::string(1, letter);
  }
}

}  // namespace

std::string disassemble(std::uint32_t bits, std::uint64_t pc) {
  const Instruction instruction = decode(bits);
  if (instruction.row == nullptr) {
    return (instruction.length == 2 ? ".half " : ".word ") + hexadecimal(instruction.bits);
  }
  std::string text(instruction.row->name);
  if (!instruction.row->shape->text.empty()) text += ' ';
  for (const char letter : instruction.row->shape->text) text += operand(instruction, letter, pc);
  return text;
}

}  // namespace manyscale::cpu::riscv
