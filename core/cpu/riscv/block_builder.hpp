// SPDX-License-Identifier: Apache-2.0
// Makes blocks of operations from the instructions in memory.
#pragma once
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "cpu/riscv/block.hpp"
#include "cpu/riscv/instruction.hpp"
#include "cpu/virtual_memory/address_space.hpp"

namespace manyscale::cpu::riscv {

class BlockBuilder {
 public:
  // Instructions of a block at most.
  static constexpr std::int64_t longest = 64;

  explicit BlockBuilder(AddressSpace& memory) : memory_(memory) {}

  // Addresses at which blocks begin with a stop.
  void watch(std::vector<std::uint64_t> addresses) { watched_ = {addresses.begin(), addresses.end()}; }

  // The operations of a block at this pc, with at most so many instructions; its length. 0 if the first
  // instruction cannot be fetched. `marked` as in Block.
  template <class Op>
  std::int64_t build(std::uint64_t pc, std::int64_t most, std::vector<Op>& operations, bool& marked);

  // The end of a block after so many instructions that goes on at this pc.
  template <class Op>
  static Op going_on(std::uint64_t pc, std::int64_t done);

 private:
  std::optional<Instruction> fetch(std::uint64_t pc);

  AddressSpace& memory_;
  std::unordered_set<std::uint64_t> watched_;
};

}  // namespace manyscale::cpu::riscv
