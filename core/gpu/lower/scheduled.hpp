// SPDX-License-Identifier: Apache-2.0
// From real SASS to what a timing model reads: the compiler has chosen the instructions, their order,
// their registers and when each may issue, so nothing is left to guess.
#pragma once
#include <span>

#include "gpu/exec/program.hpp"
#include "gpu/lower/sass_code.hpp"
#include "gpu/sass/instruction.hpp"

namespace manyscale::gpu {

// The kind of unit that a machine instruction needs.
InstructionKind kind_of(const sass::Instruction& instruction);

// A program whose code is SASS.
SassProgram scheduled_program(const Program& program);

// A function whose operations are its machine instructions, one to one.
SassFunction scheduled_function(std::span<const sass::Instruction> instructions);

}  // namespace manyscale::gpu
