// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "gpu/sass/instruction.hpp"

namespace manyscale::sass {

// Says of each operand how many registers it takes, which follows from the instruction's name and modifiers.
void size_operands(Instruction& instruction);

}  // namespace manyscale::sass
