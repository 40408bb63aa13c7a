// SPDX-License-Identifier: Apache-2.0
// SASS as the timing model of an SM reads it: the instructions of a program with their registers and kinds.
// Leaves out latencies, and what instructions compute. Lowered PTX and decoded cubins have the same form.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace manyscale::gpu {

// Kinds of SASS instructions that an SM treats alike, with opcodes of Volta.
enum class InstructionKind : std::uint8_t {
  integer,           // IADD3, LEA, IMNMX, ISETP, SEL, MOV, …
  logic,             // LOP3, SHF, PRMT, PLOP3
  multiply_add,      // IMAD, IMAD.MOV
  multiply_wide,     // IMAD.WIDE, IMAD.HI
  fp32,              // FADD, FMUL, FFMA, FSETP, FMNMX, FSEL
  fp16,              // HADD2, HMUL2, HFMA2
  fp64,              // DADD, DMUL, DFMA, DSETP
  special_function,  // MUFU
  convert,           // I2F, F2I, F2F, POPC, FLO, BREV: the slow lanes
  tensor_half,       // HMMA
  tensor_integer,    // IMMA
  tensor_double,     // DMMA
  move_special,      // S2R, CS2R
  load_global,       // LDG, LD
  store_global,      // STG, ST
  load_local,        // LDL
  store_local,       // STL
  load_shared,       // LDS, LDSM
  store_shared,      // STS
  load_constant,     // LDC: constant memory with an address in a register
  atomic_global,     // ATOM, ATOMG
  reduce_global,     // RED
  atomic_shared,     // ATOMS
  texture,           // TEX
  shuffle,           // SHFL
  vote,              // VOTE, MATCH, REDUX
  branch,            // BRA, BSSY, BSYNC, CALL, RET, BRX
  barrier,           // BAR
  fence,             // MEMBAR
  exit,              // EXIT
  other,             // NOP, NANOSLEEP, …
  count,
};

inline constexpr std::array<std::string_view, static_cast<std::size_t>(InstructionKind::count)> kKindNames{
    "integer",        "logic",         "multiply_add",     "multiply_wide", "fp32",
    "fp16",           "fp64",          "special_function", "convert",       "tensor_half",
    "tensor_integer", "tensor_double", "move_special",     "load_global",   "store_global",
    "load_local",     "store_local",   "load_shared",      "store_shared",  "load_constant",
    "atomic_global",  "reduce_global", "atomic_shared",    "texture",       "shuffle",
    "vote",           "branch",        "barrier",          "fence",         "exit",
    "other"};

constexpr std::string_view name_of(InstructionKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}

// What a compiler tells the issue logic with an instruction of SASS.
struct IssueControl {
  static constexpr std::uint8_t kCounters = 6;  // of a warp: dependence counters
  static constexpr std::uint8_t kNone = 7;

  std::uint8_t stall = 0;              // cycles until the warp's next instruction may issue
  std::uint8_t waits = 0;              // for these counters to be zero, a bit each
  std::uint8_t write_counter = kNone;  // counts it until its result is there
  std::uint8_t read_counter = kNone;   // counts it until it has read its operands
  std::uint8_t limited = kNone;        // waits until this counter counts no more than `remaining`
  std::uint8_t remaining = 0;
  bool copies = false;         // to shared memory, in the group of copies that is open
  bool closes_copies = false;  // is done when all copies before it are
  bool yields = false;         // another warp is preferred after it
  // Cycles in which the register file gives its operands: all of them, or without those that the instruction
  // before left in the operand cache.
  std::uint8_t read_cycles = 0;
  std::uint8_t read_cycles_cached = 0;
};

// One instruction. The 32-bit registers that it reads and writes are in its function's list: a 64-bit value
// takes two.
struct SassInstruction {
  InstructionKind kind = InstructionKind::other;
  bool executes = false;  // with it, the operation of the program that it belongs to takes effect
  bool dual_pipe =
      false;  // of integer: an addition, a shift or a move that the FMA pipe can do as well (IMAD.MOV, …)
  bool reads_constant = false;        // an operand from the constant bank, such as a kernel's parameter
  std::uint8_t reads_predicates = 0;  // a bit each, P0 to P6
  std::uint8_t guards = 0;            // those of the predicates it reads that decide whether it takes effect
  std::uint8_t writes_predicates = 0;
  std::uint8_t reads = 0;
  std::uint8_t writes = 0;
  bool warp_aggregated = false;  // of an atomic operation: one for all lanes, if all take part
  bool all_lanes = false;        // not executed unless all lanes of the warp are here
  std::uint8_t vectorised = 1;  // of a load: neighbours of the program that it loads at once, itself included
  IssueControl control;         // of a scheduled function
  std::uint32_t first = 0;      // SassFunction::registers[first … + reads), then those it writes
};

// The SASS instructions of one function, by the operations of its code.
struct SassFunction {
  std::vector<std::uint32_t> first;  // of operation i: instructions[first[i] … first[i + 1]); may be none
  std::vector<SassInstruction> instructions;
  // By operation: a branch that became predicates, so that what it leads past is issued and has no effect.
  // None of a scheduled function is.
  std::vector<char> predicated;
  std::vector<std::uint8_t> registers;  // lists of the instructions
  std::uint64_t address = 0;            // of the first instruction in the program, 16 bytes each
  std::uint32_t used_registers = 0;     // 32-bit registers that a thread needs here
  std::uint32_t spilled = 0;            // values that found none
  bool scheduled = false;  // its instructions say themselves when they may issue; they list no registers
  std::uint8_t limited_counters = 0;  // that some instruction waits for in part, a bit each
};

struct SassProgram {
  std::vector<SassFunction> functions;  // by function id of the module
  std::uint32_t registers = 0;          // that a thread of the kernel is given: a multiple of 8
};

}  // namespace manyscale::gpu
