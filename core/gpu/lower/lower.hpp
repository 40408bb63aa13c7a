// SPDX-License-Identifier: Apache-2.0
// From a decoded program to what hardware would execute for it, as the vendor's assembler would make of it.
#pragma once
#include "gpu/exec/program.hpp"
#include "gpu/lower/sass_code.hpp"

namespace manyscale::gpu {

// Lowers all functions of a program. Registers beyond `most_registers` are spilled. Of a program that is
// SASS already, nothing is changed.
SassProgram lower(const Program& program, std::uint32_t most_registers = 255);

}  // namespace manyscale::gpu
