// SPDX-License-Identifier: Apache-2.0
// Reorders independent operations of a block as an assembler does: what takes long begins early, as long as
// there are registers for what waits.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/exec/flow_graph.hpp"
#include "gpu/exec/program.hpp"

namespace manyscale::gpu {

// What memory an operation touches, for the order of those that may touch the same.
enum class Touches : std::uint8_t { nothing, parameters, global, shared, local, anything };

// An operation as the scheduler sees it.
struct Schedulable {
  Touches touches = Touches::nothing;
  bool writes_memory = false;
  bool uses_carry = false;  // reads or writes the carry flag
  bool stays = false;       // nothing may pass it
  std::uint16_t latency = 4;
};

// The new order: indices of operations. Blocks stay where they are, and so do operations that change the
// flow. `bytes`: the size of each register, 0 for a predicate; registers beyond it count as 4 bytes.
// `most_registers`: those that a thread may have.
std::vector<std::uint32_t> schedule(std::span<const Block> blocks, const RegisterUses& uses,
                                    std::span<const Schedulable> operations,
                                    std::span<const std::uint8_t> bytes = {},
                                    std::uint32_t most_registers = 255);

}  // namespace manyscale::gpu
