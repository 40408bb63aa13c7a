// SPDX-License-Identifier: Apache-2.0
#include "gpu/lower/scheduled.hpp"

#include <algorithm>
#include <array>

namespace manyscale::gpu {

namespace {

using sass::Instruction;
using sass::Opcode;
using sass::Operand;

struct KindRow {
  std::string_view opcode;
  Kind kind;
};

// What is not here is of the unit for integers, comparisons of floats and choices between them too (the
// assembler lets additions of floats wait a cycle longer for FMNMX, FSETP and FSEL than for each other);
// those that begin with U are of the uniform datapath.
constexpr KindRow kKinds[] = {
    {"LOP3", Kind::logic},
    {"PLOP3", Kind::logic},
    {"SHF", Kind::logic},
    {"PRMT", Kind::logic},
    {"SGXT", Kind::logic},
    {"BMSK", Kind::logic},
    {"IMAD", Kind::multiply_add},
    {"IDP", Kind::multiply_add},
    {"FADD", Kind::fp32},
    {"FMUL", Kind::fp32},
    {"FFMA", Kind::fp32},
    {"FSWZADD", Kind::fp32},
    {"HADD2", Kind::fp16},
    {"HMUL2", Kind::fp16},
    {"HFMA2", Kind::fp16},
    {"HSETP2", Kind::fp16},
    {"HSET2", Kind::fp16},
    {"HMNMX2", Kind::fp16},
    {"VHMNMX", Kind::fp16},
    {"DADD", Kind::fp64},
    {"DMUL", Kind::fp64},
    {"DFMA", Kind::fp64},
    {"DSETP", Kind::fp64},
    {"MUFU", Kind::special_function},
    {"F2F", Kind::convert},
    {"F2I", Kind::convert},
    {"I2F", Kind::convert},
    {"I2I", Kind::convert},
    {"FRND", Kind::convert},
    {"POPC", Kind::convert},
    {"FLO", Kind::convert},
    {"BREV", Kind::convert},
    {"HMMA", Kind::tensor_half},
    {"HGMMA", Kind::tensor_half},
    {"QMMA", Kind::tensor_half},
    {"QGMMA", Kind::tensor_half},
    {"IMMA", Kind::tensor_integer},
    {"IGMMA", Kind::tensor_integer},
    {"BMMA", Kind::tensor_integer},
    {"DMMA", Kind::tensor_double},
    {"S2R", Kind::move_special},
    {"S2UR", Kind::move_special},
    {"CS2R", Kind::other},
    {"CS2UR", Kind::other},
    {"LDG", Kind::load_global},
    {"LD", Kind::load_global},
    {"LDGSTS", Kind::load_global},
    {"SULD", Kind::load_global},
    {"STG", Kind::store_global},
    {"ST", Kind::store_global},
    {"SUST", Kind::store_global},
    {"LDL", Kind::load_local},
    {"STL", Kind::store_local},
    {"LDS", Kind::load_shared},
    {"LDSM", Kind::load_shared},
    {"STS", Kind::store_shared},
    {"STSM", Kind::store_shared},
    {"LDC", Kind::load_constant},
    {"ATOM", Kind::atomic_global},
    {"ATOMG", Kind::atomic_global},
    {"SUATOM", Kind::atomic_global},
    {"RED", Kind::reduce_global},
    {"REDG", Kind::reduce_global},
    {"SURED", Kind::reduce_global},
    {"ATOMS", Kind::atomic_shared},
    {"REDAS", Kind::atomic_shared},
    {"TEX", Kind::texture},
    {"TLD", Kind::texture},
    {"TLD4", Kind::texture},
    {"TXD", Kind::texture},
    {"TXQ", Kind::texture},
    {"TMML", Kind::texture},
    {"SHFL", Kind::shuffle},
    {"VOTE", Kind::vote},
    {"VOTEU", Kind::vote},
    {"MATCH", Kind::vote},
    {"REDUX", Kind::vote},
    {"BRA", Kind::branch},
    {"BRX", Kind::branch},
    {"BRXU", Kind::branch},
    {"JMP", Kind::branch},
    {"JMX", Kind::branch},
    {"BSSY", Kind::branch},
    {"BSYNC", Kind::branch},
    {"BREAK", Kind::branch},
    {"BMOV", Kind::branch},
    {"WARPSYNC", Kind::branch},
    {"CALL", Kind::branch},
    {"RET", Kind::branch},
    {"YIELD", Kind::branch},
    {"BAR", Kind::barrier},
    {"MEMBAR", Kind::fence},
    {"EXIT", Kind::exit},
    {"KILL", Kind::exit},
    {"NOP", Kind::other},
    {"NANOSLEEP", Kind::other},
    {"CCTL", Kind::other},
    {"CCTLL", Kind::other},
    {"ERRBAR", Kind::other},
    {"BPT", Kind::other},
    {"DEPBAR", Kind::other},
    {"LDGDEPBAR", Kind::other},
    {"PMTRIG", Kind::other},
};

constexpr std::size_t kOpcodes = sass::kOpcodeNames.size();

constexpr std::array<Kind, kOpcodes> make_kinds() {
  std::array<Kind, kOpcodes> kinds{};
  for (std::size_t at = 0; at < kOpcodes; ++at) {
    kinds[at] = Kind::integer;
    for (const KindRow& row : kKinds)
      if (row.opcode == sass::kOpcodeNames[at]) kinds[at] = row.kind;
  }
  return kinds;
}
constexpr std::array<Kind, kOpcodes> kKindOfOpcode = make_kinds();

bool has_word(const Instruction& instruction, std::string_view word) {
  return std::ranges::any_of(instruction.modifiers,
                             [&](sass::Modifier modifier) { return name_of(modifier) == word; });
}

// Registers of a function are in two banks, by whether their number is even; each gives one in a cycle.
constexpr unsigned kBanks = 2;
constexpr unsigned kPositions = 3;  // of operands that the operand cache knows: A, B and C

// The general registers that an instruction reads as its operands A, B and C; RZ for none.
struct Reads {
  struct Read {
    std::uint8_t first = sass::kZeroRegister;
    std::uint8_t count = 0;
    bool kept = false;  // in the operand cache, for the instruction after
  };
  std::array<Read, kPositions> at;
};

Reads reads_of(const Instruction& instruction) {
  Reads reads;
  unsigned next = 0;
  for (unsigned i = 0; i < instruction.operand_count; ++i) {
    const Operand& operand = instruction.operands[i];
    const bool register_like = operand.kind == Operand::Kind::general;
    // Constants and immediates take the place of a register too.
    const bool other = operand.kind == Operand::Kind::immediate || operand.kind == Operand::Kind::constant;
    if (operand.written || (!register_like && !other)) continue;
    if (next == kPositions) break;
    if (register_like && operand.index != sass::kZeroRegister)
      reads.at[next] = {operand.index, operand.count, operand.reuse};
    ++next;
  }
  return reads;
}

// Cycles of the busier bank; a register that is needed twice is read once, and what the instruction before
// has left in the operand cache is not read.
std::uint8_t read_cycles(const Reads& reads, const Reads* before) {
  std::array<unsigned, kBanks> busy{};
  for (unsigned position = 0; position < kPositions; ++position) {
    const Reads::Read& read = reads.at[position];
    if (before != nullptr && before->at[position].kept && before->at[position].first == read.first) continue;
    const auto same = [&](const Reads::Read& other) { return other.first == read.first; };
    if (std::any_of(reads.at.begin(), reads.at.begin() + position, same)) continue;
    for (unsigned i = 0; i < read.count; ++i) ++busy[(read.first + i) % kBanks];
  }
  return static_cast<std::uint8_t>(std::ranges::max(busy));
}

// Whether an operand comes from constant memory. Bank 0, with the parameters of a launch, does not count:
// each kernel begins with the stack pointer from there, so the wait for it is part of the measured time of a
// launch.
bool reads_constant(const Instruction& instruction) {
  for (unsigned i = 0; i < instruction.operand_count; ++i)
    if (instruction.operands[i].kind == Operand::Kind::constant && instruction.operands[i].bank != 0)
      return true;
  return false;
}

// What an instruction of its own kind waits for (DEPBAR): counters to be zero, or one to be at most a number.
void wait_for_named(const Instruction& instruction, IssueControl& control) {
  unsigned counters = 0;
  for (unsigned i = 0; i < instruction.operand_count; ++i) {
    const Operand& operand = instruction.operands[i];
    if (operand.kind == Operand::Kind::dependence && operand.index < IssueControl::kCounters)
      control.limited = operand.index;
    if (operand.kind == Operand::Kind::immediate)
      control.remaining = static_cast<std::uint8_t>(std::clamp<std::int64_t>(operand.value, 0, 255));
    if (operand.kind == Operand::Kind::flag_mask) counters |= static_cast<unsigned>(operand.value);
  }
  if (control.limited != IssueControl::kNone && control.remaining == 0) {
    counters |= 1U << control.limited;
    control.limited = IssueControl::kNone;
  }
  control.waits |= static_cast<std::uint8_t>(counters & ((1U << IssueControl::kCounters) - 1));
}

}  // namespace

Kind kind_of(const Instruction& instruction) {
  const Kind kind = kKindOfOpcode[static_cast<std::size_t>(instruction.opcode)];
  if (kind == Kind::multiply_add && (has_word(instruction, "WIDE") || has_word(instruction, "HI")))
    return Kind::multiply_wide;
  return kind;
}

SassFunction scheduled_function(std::span<const Instruction> instructions) {
  SassFunction result;
  result.scheduled = true;
  result.instructions.reserve(instructions.size());
  Reads before;
  for (const Instruction& instruction : instructions) {
    SassInstruction& made = result.instructions.emplace_back();
    made.kind = kind_of(instruction);
    made.executes = true;
    made.reads_constant = made.kind != Kind::load_constant && reads_constant(instruction);
    IssueControl& control = made.control;
    control.stall = instruction.schedule.stall;
    control.waits = instruction.schedule.wait_mask;
    control.write_counter = instruction.schedule.write_barrier;
    control.read_counter = instruction.schedule.read_barrier;
    control.yields = instruction.schedule.yield;
    if (instruction.opcode == sass::op("DEPBAR")) wait_for_named(instruction, control);
    if (control.limited != IssueControl::kNone)
      result.limited_counters |= static_cast<std::uint8_t>(1U << control.limited);
    control.copies = instruction.opcode == sass::op("LDGSTS");
    control.closes_copies = instruction.opcode == sass::op("LDGDEPBAR");
    const Reads reads = reads_of(instruction);
    control.read_cycles = read_cycles(reads, nullptr);
    control.read_cycles_cached = read_cycles(reads, &before);
    before = reads;
  }
  for (std::uint32_t i = 0; i <= instructions.size(); ++i) result.first.push_back(i);
  return result;
}

SassProgram scheduled_program(const Program& program) {
  SassProgram result;
  result.registers = program.registers;
  std::uint64_t address = 0;
  for (const Code& code : program.codes) {
    SassFunction& function = result.functions.emplace_back(scheduled_function(code.machine));
    function.address = address;
    function.used_registers = program.registers;
    address += code.machine.size() * Instruction::kBytes;
  }
  return result;
}

}  // namespace manyscale::gpu
