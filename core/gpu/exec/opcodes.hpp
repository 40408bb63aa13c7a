// SPDX-License-Identifier: Apache-2.0
// The opcodes that can be executed, by kind: one list per file of instructions/.
#pragma once
#include <span>

#include "gpu/exec/builder.hpp"

namespace manyscale::gpu {

std::span<const Opcode> integer_opcodes();
std::span<const Opcode> bit_opcodes();
std::span<const Opcode> compare_opcodes();
std::span<const Opcode> float_opcodes();
std::span<const Opcode> half_opcodes();
std::span<const Opcode> convert_opcodes();
std::span<const Opcode> move_opcodes();
std::span<const Opcode> memory_opcodes();
std::span<const Opcode> atomic_opcodes();
std::span<const Opcode> warp_opcodes();
std::span<const Opcode> barrier_opcodes();
std::span<const Opcode> async_copy_opcodes();
std::span<const Opcode> mbarrier_opcodes();
std::span<const Opcode> tensor_opcodes();
std::span<const Opcode> texture_opcodes();
std::span<const Opcode> surface_opcodes();
std::span<const Opcode> control_opcodes();
std::span<const Opcode> system_opcodes();

// The decoder of an opcode whose first type is that one, or null.
const Opcode* find_opcode(std::string_view name, ptx::Type type);

}  // namespace manyscale::gpu
