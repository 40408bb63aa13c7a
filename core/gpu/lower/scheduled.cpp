// SPDX-License-Identifier: Apache-2.0
#include "gpu/lower/scheduled.hpp"

#include <algorithm>
#include <array>

namespace manyscale::gpu {

namespace {

using sass::Instruction;
using sass::Opcode;
using sass::Operand;
using sass::OperandKind;

struct KindRow {
  std::string_view opcode;
  InstructionKind kind;
};

// What is not here is of the unit for integers, comparisons of floats and choices between them too (the
// assembler lets additions of floats wait a cycle longer for FMNMX, FSETP and FSEL than for each other);
// those that begin with U are of the uniform datapath.
constexpr KindRow kKinds[] = {
    {"LOP3", InstructionKind::logic},
    {"PLOP3", InstructionKind::logic},
    {"SHF", InstructionKind::logic},
    {"PRMT", InstructionKind::logic},
    {"SGXT", InstructionKind::logic},
    {"BMSK", InstructionKind::logic},
    {"IMAD", InstructionKind::multiply_add},
    {"IDP", InstructionKind::multiply_add},
    {"FADD", InstructionKind::fp32},
    {"FMUL", InstructionKind::fp32},
    {"FFMA", InstructionKind::fp32},
    {"FSWZADD", InstructionKind::fp32},
    {"HADD2", InstructionKind::fp16},
    {"HMUL2", InstructionKind::fp16},
    {"HFMA2", InstructionKind::fp16},
    {"HSETP2", InstructionKind::fp16},
    {"HSET2", InstructionKind::fp16},
    {"HMNMX2", InstructionKind::fp16},
    {"VHMNMX", InstructionKind::fp16},
    {"DADD", InstructionKind::fp64},
    {"DMUL", InstructionKind::fp64},
    {"DFMA", InstructionKind::fp64},
    {"DSETP", InstructionKind::fp64},
    {"MUFU", InstructionKind::special_function},
    {"F2F", InstructionKind::convert},
    {"F2I", InstructionKind::convert},
    {"I2F", InstructionKind::convert},
    {"I2I", InstructionKind::convert},
    {"FRND", InstructionKind::convert},
    {"POPC", InstructionKind::convert},
    {"FLO", InstructionKind::convert},
    {"BREV", InstructionKind::convert},
    {"HMMA", InstructionKind::tensor_half},
    {"HGMMA", InstructionKind::tensor_half},
    {"QMMA", InstructionKind::tensor_half},
    {"QGMMA", InstructionKind::tensor_half},
    {"IMMA", InstructionKind::tensor_integer},
    {"IGMMA", InstructionKind::tensor_integer},
    {"BMMA", InstructionKind::tensor_integer},
    {"DMMA", InstructionKind::tensor_double},
    {"S2R", InstructionKind::move_special},
    {"S2UR", InstructionKind::move_special},
    {"CS2R", InstructionKind::other},
    {"CS2UR", InstructionKind::other},
    {"LDG", InstructionKind::load_global},
    {"LD", InstructionKind::load_global},
    {"LDGSTS", InstructionKind::load_global},
    {"SULD", InstructionKind::load_global},
    {"STG", InstructionKind::store_global},
    {"ST", InstructionKind::store_global},
    {"SUST", InstructionKind::store_global},
    {"LDL", InstructionKind::load_local},
    {"STL", InstructionKind::store_local},
    {"LDS", InstructionKind::load_shared},
    {"LDSM", InstructionKind::load_shared},
    {"STS", InstructionKind::store_shared},
    {"STSM", InstructionKind::store_shared},
    {"LDC", InstructionKind::load_constant},
    {"ATOM", InstructionKind::atomic_global},
    {"ATOMG", InstructionKind::atomic_global},
    {"SUATOM", InstructionKind::atomic_global},
    {"RED", InstructionKind::reduce_global},
    {"REDG", InstructionKind::reduce_global},
    {"SURED", InstructionKind::reduce_global},
    {"ATOMS", InstructionKind::atomic_shared},
    {"REDAS", InstructionKind::atomic_shared},
    {"TEX", InstructionKind::texture},
    {"TLD", InstructionKind::texture},
    {"TLD4", InstructionKind::texture},
    {"TXD", InstructionKind::texture},
    {"TXQ", InstructionKind::texture},
    {"TMML", InstructionKind::texture},
    {"SHFL", InstructionKind::shuffle},
    {"VOTE", InstructionKind::vote},
    {"VOTEU", InstructionKind::vote},
    {"MATCH", InstructionKind::vote},
    {"REDUX", InstructionKind::vote},
    {"BRA", InstructionKind::branch},
    {"BRX", InstructionKind::branch},
    {"BRXU", InstructionKind::branch},
    {"JMP", InstructionKind::branch},
    {"JMX", InstructionKind::branch},
    {"JMXU", InstructionKind::branch},
    {"BSSY", InstructionKind::branch},
    {"BSYNC", InstructionKind::branch},
    {"BREAK", InstructionKind::branch},
    {"BMOV", InstructionKind::branch},
    {"WARPSYNC", InstructionKind::branch},
    {"CALL", InstructionKind::branch},
    {"RET", InstructionKind::branch},
    {"YIELD", InstructionKind::branch},
    {"BAR", InstructionKind::barrier},
    {"MEMBAR", InstructionKind::fence},
    {"EXIT", InstructionKind::exit},
    {"KILL", InstructionKind::exit},
    {"NOP", InstructionKind::other},
    {"NANOSLEEP", InstructionKind::other},
    {"CCTL", InstructionKind::other},
    {"CCTLL", InstructionKind::other},
    {"ERRBAR", InstructionKind::other},
    {"BPT", InstructionKind::other},
    {"DEPBAR", InstructionKind::other},
    {"LDGDEPBAR", InstructionKind::other},
    {"PMTRIG", InstructionKind::other},
};

constexpr std::size_t kOpcodes = sass::kOpcodeNames.size();

constexpr std::array<InstructionKind, kOpcodes> make_kinds() {
  std::array<InstructionKind, kOpcodes> kinds{};
  for (std::size_t at = 0; at < kOpcodes; ++at) {
    kinds[at] = InstructionKind::integer;
    for (const KindRow& row : kKinds)
      if (row.opcode == sass::kOpcodeNames[at]) kinds[at] = row.kind;
  }
  return kinds;
}
constexpr std::array<InstructionKind, kOpcodes> kKindOfOpcode = make_kinds();

bool has_word(const Instruction& instruction, std::string_view word) {
  return std::ranges::any_of(instruction.modifiers,
                             [&](sass::Modifier modifier) { return name_of(modifier) == word; });
}

// Facts of every architecture whose SASS is read (sm_70 and later), which the bits of its instructions rely
// on: registers are in two banks, by whether their number is even, each of which gives one in a cycle, and
// the operand cache knows the positions A, B and C (Jia et al., arXiv:1804.06826, for Volta;
// arXiv:1903.07486 for Turing; Huerta et al., MICRO 2025, section 5.3, for later ones).
constexpr unsigned kRegisterBanks = 2;
constexpr unsigned kPositions = 3;

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
    const bool register_like = operand.kind == OperandKind::general;
    // Constants and immediates use the read port of a register too.
    const bool other = operand.kind == OperandKind::immediate || operand.kind == OperandKind::constant;
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
  std::array<unsigned, kRegisterBanks> busy{};
  for (unsigned position = 0; position < kPositions; ++position) {
    const Reads::Read& read = reads.at[position];
    if (before != nullptr && before->at[position].kept && before->at[position].first == read.first) continue;
    const auto same = [&](const Reads::Read& other) { return other.first == read.first; };
    if (std::any_of(reads.at.begin(), reads.at.begin() + position, same)) continue;
    for (unsigned i = 0; i < read.count; ++i) ++busy[(read.first + i) % kRegisterBanks];
  }
  return static_cast<std::uint8_t>(std::ranges::max(busy));
}

// Whether an operand comes from constant memory: from bank 0, with the parameters of a launch, or another.
bool reads_constant(const Instruction& instruction) {
  for (unsigned i = 0; i < instruction.operand_count; ++i)
    if (instruction.operands[i].kind == OperandKind::constant) return true;
  return false;
}

// What an instruction of its own kind waits for (DEPBAR): counters to be zero, or one to be at most a number.
void wait_for_named(const Instruction& instruction, IssueControl& control) {
  unsigned counters = 0;
  for (unsigned i = 0; i < instruction.operand_count; ++i) {
    const Operand& operand = instruction.operands[i];
    if (operand.kind == OperandKind::dependence && operand.index < IssueControl::kCounters)
      control.limited = operand.index;
    if (operand.kind == OperandKind::immediate)
      control.remaining = static_cast<std::uint8_t>(std::clamp<std::int64_t>(operand.value, 0, 255));
    if (operand.kind == OperandKind::flag_mask) counters |= static_cast<unsigned>(operand.value);
  }
  if (control.limited != IssueControl::kNone && control.remaining == 0) {
    counters |= 1U << control.limited;
    control.limited = IssueControl::kNone;
  }
  control.waits |= static_cast<std::uint8_t>(counters & ((1U << IssueControl::kCounters) - 1));
}

}  // namespace

InstructionKind kind_of(const Instruction& instruction) {
  const InstructionKind kind = kKindOfOpcode[static_cast<std::size_t>(instruction.opcode)];
  if (kind == InstructionKind::multiply_add && (has_word(instruction, "WIDE") || has_word(instruction, "HI")))
    return InstructionKind::multiply_wide;
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
    made.reads_constant = made.kind != InstructionKind::load_constant && reads_constant(instruction);
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
