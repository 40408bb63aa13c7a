// SPDX-License-Identifier: Apache-2.0
// Scoreboard of a warp whose code was lowered from PTX: when its registers and predicates have their values,
// and what made them. SASS does without: its compiler has put a schedule into it (dependence_counters.hpp).
#pragma once
#include <array>
#include <bit>
#include <cstdint>

#include "gpu/sm/execution_pipes.hpp"
#include "gpu/sm/stall.hpp"

namespace manyscale::gpu {

struct Scoreboard {
  std::array<Cycle, 256> ready{};
  std::array<Stall, 256> writer{};
  std::array<Pipe, 256> pipe{};  // that made the register's value
  std::array<Cycle, 8> predicates{};
  std::array<std::uint32_t, 256> conflict{};  // cycles that conflicts add to `ready`, of memory

  // The registers that an instruction writes have their values at a cycle.
  void set(const std::uint8_t* registers, unsigned count, Cycle when, Stall why, Pipe from,
           std::uint32_t added) {
    for (unsigned i = 0; i < count; ++i) {
      ready[registers[i]] = when;
      writer[registers[i]] = why;
      pipe[registers[i]] = from;
      if (why != Stall::wait) conflict[registers[i]] = added;
    }
  }
  void set_predicates(unsigned which, Cycle when) {
    for (unsigned p = 0; p < 8; ++p)
      if (which >> p & 1) predicates[p] = when;
  }
  // Waits for what an instruction reads and writes. `guard`: cycles that a predicate takes longer to decide
  // whether an instruction takes effect.
  void wait(const SassInstruction& instruction, const std::uint8_t* registers, const PipeTable& pipes,
            Cycle guard, Waiting& waiting) const {
    const Pipe reader = pipes.pipe_of(instruction.kind);
    for (unsigned i = 0; i < instruction.reads; ++i) {
      const std::uint8_t r = registers[i];
      waiting.consider(ready[r] == kPending ? kPending : ready[r] + pipes.crossing(pipe[r], reader),
                       writer[r], &conflict[r]);
    }
    for (unsigned i = instruction.reads; i < unsigned{instruction.reads} + instruction.writes; ++i)
      waiting.consider(ready[registers[i]], writer[registers[i]], &conflict[registers[i]]);
    for (unsigned left = instruction.reads_predicates | instruction.writes_predicates; left != 0;
         left &= left - 1) {
      const auto p = static_cast<unsigned>(std::countr_zero(left));
      waiting.consider(predicates[p] + (instruction.guards >> p & 1 ? guard : 0), Stall::wait);
    }
  }
};

}  // namespace manyscale::gpu
