// SPDX-License-Identifier: Apache-2.0
// Short loops of PTX whose number of iterations is known when they begin.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "gpu/ptx/module.hpp"

namespace manyscale::gpu {

// A register that grows by the same amount in each iteration.
struct Induction {
  std::int64_t step = 0;
  std::uint32_t update = 0;  // the instruction that writes it
  bool derived = false;      // computed from another one, not carried around the loop
};

// A loop that is one block and ends with the comparison of a counter with something that does not change.
struct CountedLoop {
  std::uint32_t first = 0;  // instructions
  std::uint32_t last = 0;   // the branch back
  std::uint32_t test = 0;   // the comparison
  std::uint32_t counter = 0;
  ptx::Operand bound;
  std::map<std::uint32_t, Induction> inductions;                // by register
  std::map<std::uint32_t, std::vector<std::uint32_t>> writers;  // by register: the instructions that write it
  std::set<std::uint32_t> locals;                               // registers that live within an iteration
};

// Those of a function that are short enough to be unrolled and that its text does not forbid to, in order.
std::vector<CountedLoop> find_counted_loops(const ptx::Module& module, const ptx::Function& function);

// Whether an instruction of such a loop writes its first operand.
bool has_result(const ptx::Instruction& instruction);
bool has_modifier(const ptx::Module& module, const ptx::Instruction& instruction, std::string_view modifier);
ptx::Type type_of(const ptx::Module& module, const ptx::Instruction& instruction);

// An operand and all that it is made of.
template <class Visit>
void for_each_operand(const ptx::Module& module, const ptx::Operand& operand, Visit&& visit) {
  visit(operand);
  for (const ptx::Operand& child : module.children(operand)) for_each_operand(module, child, visit);
}

}  // namespace manyscale::gpu
