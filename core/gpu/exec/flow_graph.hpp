// SPDX-License-Identifier: Apache-2.0
// The control flow of a function in basic blocks: where paths that part meet again, and which registers live
// where.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/exec/op.hpp"

namespace manyscale::gpu {

inline constexpr std::uint32_t kNoBlock = ~std::uint32_t{0};

struct Block {
  std::uint32_t first = 0;  // operations [first, last)
  std::uint32_t last = 0;
  std::vector<std::uint32_t> successors;
  bool leaves = false;  // can end the function
};

// The registers that each operation reads and writes, by operation.
struct RegisterUses {
  std::vector<std::uint32_t> first;  // reads of op i: registers[first[2 i] … first[2 i + 1]), then its writes
  std::vector<std::uint32_t> registers;
  std::span<const std::uint32_t> reads(std::size_t op) const {
    return std::span(registers).subspan(first[2 * op], first[2 * op + 1] - first[2 * op]);
  }
  std::span<const std::uint32_t> writes(std::size_t op) const {
    return std::span(registers).subspan(first[2 * op + 1], first[2 * op + 2] - first[2 * op + 1]);
  }
};

// Cuts operations into blocks. Branch targets are indices of operations, in Op::aux and in the tables.
std::vector<Block> make_blocks(std::span<const Op> ops,
                               std::span<const std::vector<std::uint32_t>> branch_tables);

// For each block the nearest one that every path from it to the end passes; kNoBlock if there is none.
std::vector<std::uint32_t> immediate_post_dominators(std::span<const Block> blocks);

// The first and last operation between which a register holds something; first > last if it is never used.
struct LiveRange {
  std::uint32_t first = ~std::uint32_t{0};
  std::uint32_t last = 0;
};
std::vector<LiveRange> live_ranges(std::span<const Op> ops, std::span<const Block> blocks,
                                   const RegisterUses& uses, std::size_t registers);

// For each register an offset in the frame. Registers that live at the same time have different ones, and
// only registers of the same size share one, because diverged lanes may be in both live ranges.
struct FrameLayout {
  std::vector<std::uint32_t> offset;  // by register: bytes from the start of the frame
  std::uint32_t bytes = 0;            // of the frame
};
FrameLayout allocate_registers(std::span<const LiveRange> ranges,
                               std::span<const std::uint8_t> bytes_of_register);

}  // namespace manyscale::gpu
