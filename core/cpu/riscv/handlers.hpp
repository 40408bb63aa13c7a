// SPDX-License-Identifier: Apache-2.0
// What executes each row of the instruction table, and the operations that no instruction stands for.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "cpu/riscv/block.hpp"
#include "cpu/riscv/instruction.hpp"

namespace manyscale::cpu::riscv {

// Short names of what instructions compute with.
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

template <class Op>
struct Handler {
  std::string_view name;
  Run<Op> run;
  Run<Op> run_rounded = nullptr;  // where the rounding mode is in the instruction, not dynamic
};

template <class Op>
std::span<const Handler<Op>> integer_handlers();
template <class Op>
std::span<const Handler<Op>> memory_handlers();
template <class Op>
std::span<const Handler<Op>> control_handlers();
template <class Op>
std::span<const Handler<Op>> float_handlers();

// By instruction row; in the table's order.
template <class Op>
const Handler<Op>& handler_of(const Row& row);

// Operations that are not instructions, or special cases of them.
template <class Op>
struct SpecialHandlers {
  Run<Op> nothing;        // an instruction without effect
  Run<Op> constant;       // rd = value
  Run<Op> copy;           // rd = rs1
  Run<Op> jump_register;  // jalr that keeps no return address
  Run<Op> go_on;          // no instruction: the block goes on at pc + immediate
  Run<Op> clear_zero;     // no instruction: x0 = 0 again
  Run<Op> marker;         // no instruction: stops before a marker; immediate is its code
  Run<Op> illegal;        // stops with a fault of kind `immediate`
};
template <class Op>
const SpecialHandlers<Op>& special_handlers();

}  // namespace manyscale::cpu::riscv
