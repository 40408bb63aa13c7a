// SPDX-License-Identifier: Apache-2.0
// From machine instructions to a program: one operation for each, in the form that PTX has too.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "gpu/exec/program.hpp"
#include "gpu/exec/sass/registers.hpp"

namespace manyscale::gpu {

// Where a machine instruction comes from: lines of the PTX and of the source, 0 where unknown.
struct MachineLine {
  std::uint32_t ptx = 0;
  ptx::SourceLine source;
};

// A function of SASS as it is to be decoded.
struct MachineText {
  std::string name;
  std::uint64_t address = 0;  // bytes from the start of the code window
  std::vector<sass::Instruction> instructions;
  std::vector<MachineLine> lines;  // by instruction; may be shorter
};

// Decodes a kernel: the first text is its own, the others are those it can reach. What else is known of it
// stands in the program already. Problems are collected, as with PTX.
void decode_machine(Program& program, std::span<const MachineText> texts);

// What the instructions of a program share while they are decoded.
class MachineDecoder {
 public:
  MachineDecoder(Program& program, Code& code, std::span<const MachineText> texts);
  // For a function of so many instructions that are decoded one by one, by `problem_of`.
  MachineDecoder(Program& program, Code& code, std::uint32_t instructions);

  const RegisterLayout& layout() const { return layout_; }
  Code& code() { return code_; }
  Program& program() { return program_; }
  // The first operation of the function that is being decoded, and its offset in the code window.
  std::uint32_t first_operation() const { return first_; }
  std::uint64_t address() const { return address_; }

  // A half of the return address of code that moves it; the last two of the general registers.
  Slot return_address(bool upper) const;
  // A constant of so many words, known now or at the launch.
  Slot constant(std::span<const std::uint32_t> words);
  Slot bank_words(unsigned bank, std::uint32_t offset, unsigned words);

  void decode(const MachineText& text);
  // Why an instruction cannot be executed; empty if it can. Nothing of it is kept.
  std::string problem_of(const sass::Instruction& instruction);

 private:
  void decode(const sass::Instruction& instruction, const std::string& function);
  std::string build(const sass::Instruction& instruction, Op& op, Class& kind);

  Program& program_;
  Code& code_;
  RegisterLayout layout_;
  std::uint32_t first_ = 0;
  std::uint64_t address_ = 0;
  std::map<std::vector<std::uint32_t>, Slot> constants_;
  std::map<std::vector<std::uint32_t>, Slot> bank_words_;
};

}  // namespace manyscale::gpu
