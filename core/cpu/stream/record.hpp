// SPDX-License-Identifier: Apache-2.0
// Record: one executed instruction as a timing model sees it: its class, the earlier instructions it depends
// on, and the memory it touches. It is the same for every instruction set and every front end. What a
// recorded trace adds to it is apart (elastic_timing.hpp).
#pragma once
#include <array>
#include <cstdint>

namespace manyscale::cpu {

// Classes of instructions that a core may treat differently: by unit, by latency, or by ordering rule.
enum class InstructionClass : std::uint8_t {
  integer,    // addition, logic, shift, comparison, move
  multiply,   // integer multiplication
  divide,     // integer division and remainder
  float_add,  // addition, subtraction, comparison, minimum, maximum, sign
  float_multiply,
  float_fused,  // fused multiply-add
  float_divide,
  float_root,
  float_convert,  // between formats, and between register files
  load,
  store,
  atomic,    // read-modify-write of memory, and load-reserved and store-conditional
  fence,     // orders memory accesses
  branch,    // conditional
  jump,      // unconditional, direct
  indirect,  // unconditional, target from a register
  system,    // call of the operating system
  marker,    // no instruction: a region that is measured begins or ends here
};
inline constexpr std::size_t instruction_classes = 18;

// What else is true of a record; bits of Record::flags.
struct Trait {
  static constexpr std::uint8_t taken = 1;         // of branch: it was taken; jumps are always
  static constexpr std::uint8_t call = 2;          // of jump and indirect: pushes a return address
  static constexpr std::uint8_t pauses = 2;        // of marker: the run pauses when the core commits it
  static constexpr std::uint8_t returns = 4;       // of indirect: pops a return address
  static constexpr std::uint8_t halts_stream = 8;  // the source goes on only when the core has reached this
  static constexpr std::uint8_t compressed = 16;   // the instruction has 2 bytes, not 4
  static constexpr std::uint8_t writes_integer = 32;  // takes a physical integer register
  static constexpr std::uint8_t writes_float = 64;    // takes a physical floating-point register
};

struct Record {
  std::uint64_t pc = 0;
  // Of load, store and atomic: the byte touched first. Of branch, jump and indirect: the next instruction's
  // address. Of marker: its payload (marker.hpp). Addresses are those the caches see (see
  // virtual_memory/address_space.hpp).
  std::uint64_t address = 0;
  // How many records back in this stream the producers of its operands are; 0: no such producer, or one so
  // old that it cannot matter. Of a store the first is its data and the others are its address. Markers are
  // not counted.
  static constexpr std::uint16_t furthest_producer = 0x7fff;
  std::array<std::uint16_t, 3> producers{};
  InstructionClass kind = InstructionClass::integer;
  std::uint8_t flags = 0;
  std::uint8_t size = 0;     // bytes touched in memory; a core splits what crosses a line
  std::uint8_t format = 0;   // of floating point: bytes of the operands (4 or 8), for latencies
  std::uint16_t thread = 0;  // software thread, counted over all processes

  bool has(std::uint8_t trait) const { return (flags & trait) != 0; }
  bool touches_memory() const {
    return kind == InstructionClass::load || kind == InstructionClass::store ||
           kind == InstructionClass::atomic;
  }
  bool is_control() const {
    return kind == InstructionClass::branch || kind == InstructionClass::jump ||
           kind == InstructionClass::indirect;
  }
  std::uint64_t next_pc() const { return pc + (has(Trait::compressed) ? 2 : 4); }
};
static_assert(sizeof(Record) == 32);

}  // namespace manyscale::cpu
