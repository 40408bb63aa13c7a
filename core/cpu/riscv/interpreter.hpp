// SPDX-License-Identifier: Apache-2.0
// Executes RV64GC instructions of one process: decoded once into blocks, executed many times. It has no
// timing; it can write a record of each instruction for a timing model.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cpu/riscv/hart.hpp"
#include "cpu/stream/record_ring.hpp"
#include "cpu/virtual_memory/address_space.hpp"

namespace manyscale::cpu::riscv {

// Why execution came back to the caller.
enum class Stop : std::uint8_t {
  budget,       // the number of instructions asked for was executed (or the ring is full)
  system_call,  // pc is at an ecall that was not executed; its record is written. Who does it also moves pc
                // behind it and counts it in Hart::retired.
  ordered,      // pc is at an atomic, load-reserved, store-conditional or fence that was not executed, in a
                // recording run that halts there; its record is written. Interpreter::step executes it.
  marker,       // a marked pc, or a marker instruction, was reached; see Interpreter::marker
  breakpoint,   // ebreak at pc
  fault,        // see Interpreter::fault; pc is at the instruction, which had no effect
};

struct Fault {
  // unsupported: of a known extension that is not executed; exhausted: the memory limit of the process.
  enum class Cause : std::uint8_t { illegal, unsupported, load, store, fetch, misaligned, exhausted };
  Cause cause = Cause::illegal;
  std::uint64_t address = 0;      // of the access or jump
  std::uint32_t instruction = 0;  // its bits, where there is one
};

// The contents of a marker instruction: `slti x0, rs1, code`, a hint that real processors ignore.
struct Marker {
  std::uint64_t pc = 0;
  std::uint64_t value = 0;  // of rs1
  std::int32_t code = 0;    // of the instruction; -1 at a watched pc with another instruction
};

// Last writers of registers, to know the producers of a record; one for each software thread or core.
struct Producers {
  std::uint64_t number = 0;                     // of the next record that is not a marker
  std::array<std::uint64_t, 64> last_writer{};  // number + 1 of x0 to x31 and f0 to f31; 0: none
};

class Interpreter {
 public:
  explicit Interpreter(AddressSpace& memory);
  ~Interpreter();

  // Stops with Stop::marker before the instruction at each of these addresses (sorted or not) is executed;
  // to go on past it, run with `past_marker`.
  void watch(std::vector<std::uint64_t> addresses);

  // Executes up to `budget` instructions. No records.
  Stop run(Hart& hart, std::uint64_t budget, bool past_marker = false);

  // The same with a record of each instruction, written to ring[end], ring[end + 1], …; `end` is advanced and
  // is never taken beyond `limit`. Halts (Stop::ordered) at atomics and fences, with their record written and
  // marked Trait::halts_stream.
  Stop record(Hart& hart, std::uint64_t budget, RecordRing& ring, std::uint64_t& end, std::uint64_t limit,
              Producers& producers, std::uint16_t thread, bool past_marker = false);

  // Executes the one instruction at pc without a record, whether it is marked or not: Stop::budget if it was
  // executed (an ecall never is).
  Stop step(Hart& hart);

  // The values of the control registers cycle and time until this is called again; without records they also
  // grow by one with each instruction.
  void set_time(std::uint64_t cycles, std::uint64_t ticks);
  // Decodes again what is executed from now on: after code in memory was changed by others than the program.
  void drop_code();

  const Fault& fault() const;
  const Marker& marker() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

// The text of one instruction, as an assembler would take it; for messages and listings.
std::string disassemble(std::uint32_t bits, std::uint64_t pc);

}  // namespace manyscale::cpu::riscv
