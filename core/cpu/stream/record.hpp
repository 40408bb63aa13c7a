// SPDX-License-Identifier: Apache-2.0
// One executed instruction as a timing model sees it: what kind of work it is, which earlier instructions it
// needs, and which memory it touches. It does not matter whether it comes live from a functional front end or
// from a recorded trace; a core knows no instruction set.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

namespace manyscale::cpu {

// Kinds of work that a core may treat differently: by unit, by latency, or by rule.
enum class Kind : std::uint8_t {
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
  marker,    // no work: something that an observer wants to know of begins or ends here
};
inline constexpr std::size_t kinds = 18;

// What else is true of a record; bits of Record::flags.
struct Trait {
  static constexpr std::uint8_t taken = 1;         // of branch: it was taken; jumps are always
  static constexpr std::uint8_t sleeps = 1;        // of system, in a recorded trace: who waits there sleeps
  static constexpr std::uint8_t call = 2;          // of jump and indirect: pushes a return address
  static constexpr std::uint8_t pauses = 2;        // of marker: the run pauses when the core commits it
  static constexpr std::uint8_t returns = 4;       // of indirect: pops a return address
  static constexpr std::uint8_t halts_stream = 8;  // the source goes on only when the core has reached this
  static constexpr std::uint8_t compressed = 16;   // the instruction has 2 bytes, not 4
  static constexpr std::uint8_t writes_integer = 32;  // takes a physical integer register
  static constexpr std::uint8_t writes_float = 64;    // takes a physical floating-point register
  static constexpr std::uint8_t mispredicted = 128;   // of control in a recorded trace
  // Of ALU instructions and memory accesses in a recorded trace: CompactedWaiters, in bits they have no other
  // use for.
  static constexpr std::uint8_t compacted_waiters = 0x87;
};

// The taken branches among the instructions compacted into a record, and how many instructions come after the
// last of them.
struct CompactedBranches {
  static constexpr std::uint8_t most = 15;  // of either
  std::uint8_t count = 0;
  std::uint8_t after = 0;
};

// How many compacted instructions wait for a record's result, each in an entry of the issue queue; large
// numbers are rounded.
struct CompactedWaiters {
  static constexpr std::array<std::uint8_t, 16> counts{0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48};
};

struct Record {
  std::uint64_t pc = 0;
  // Of load, store and atomic: the byte touched first. Of branch, jump and indirect: where the program went
  // on. Of marker: what the observer wants to be told. Addresses are those the caches see (see
  // linux/address_space.hpp).
  std::uint64_t address = 0;
  // How many records back in this stream the producers of its operands are; 0: no such producer, or one so
  // old that it cannot matter. Of a store the first is its data and the others are its address. Markers are
  // not counted. With `dispatched` added, of a recorded trace: what counts is not the result of that record,
  // but when it was dispatched.
  static constexpr std::uint16_t dispatched = 0x8000;
  static constexpr std::uint16_t furthest_producer = 0x7fff;
  std::array<std::uint16_t, 3> producers{};
  Kind kind = Kind::integer;
  std::uint8_t flags = 0;
  std::uint8_t size = 0;     // bytes touched in memory; a core splits what crosses a line
  std::uint8_t format = 0;   // of floating point: bytes of the operands (4 or 8), for latencies
  std::uint16_t thread = 0;  // software thread, counted over all processes
  // Of a recorded trace: the computational delay, in cycles after the operand of each producer is there, or
  // after dispatch where there is no such producer; and how many instructions were compacted into this
  // record: they take entries and widths just before it, but do nothing.
  std::array<std::uint8_t, 3> delays{};
  std::uint8_t weight = 0;

  bool has(std::uint8_t trait) const { return (flags & trait) != 0; }
  bool touches_memory() const { return kind == Kind::load || kind == Kind::store || kind == Kind::atomic; }
  bool is_control() const { return kind == Kind::branch || kind == Kind::jump || kind == Kind::indirect; }
  // That it stands for: itself and those compacted into it.
  std::uint32_t instructions() const { return weight + 1u; }
  std::uint64_t next_pc() const { return pc + (has(Trait::compressed) ? 2 : 4); }

  // Of control in a recorded trace: fetch was re-steered when it was decoded.
  bool is_misfetch() const { return is_control() && format == 1; }
  void set_misfetch() { format = 1; }
  // Of a recorded trace; kept in a field that is of no other use to the record's kind.
  CompactedBranches compacted_branches() const {
    const std::uint8_t bits = uses_size() ? format : size;
    return {static_cast<std::uint8_t>(bits & 15), static_cast<std::uint8_t>(bits >> 4)};
  }
  void set_compacted_branches(CompactedBranches branches) {
    (uses_size() ? format : size) = static_cast<std::uint8_t>(branches.after << 4 | branches.count);
  }

  // Of a recorded trace.
  std::uint32_t compacted_waiters() const {
    return kind > Kind::atomic ? 0u : CompactedWaiters::counts[(flags & 7) | (flags >> 7 << 3)];
  }
  void set_compacted_waiters(std::uint32_t waiters) {
    if (kind > Kind::atomic) return;
    const auto& counts = CompactedWaiters::counts;
    const auto above = std::upper_bound(counts.begin(), counts.end(), waiters);
    const auto code = static_cast<std::uint8_t>(above - counts.begin() - 1);
    flags = static_cast<std::uint8_t>((flags & ~Trait::compacted_waiters) | (code & 7) | (code >> 3 << 7));
  }

 private:
  bool uses_size() const { return touches_memory() || kind == Kind::system; }
};
static_assert(sizeof(Record) == 32);

}  // namespace manyscale::cpu
