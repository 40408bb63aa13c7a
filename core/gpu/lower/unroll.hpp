// SPDX-License-Identifier: Apache-2.0
// Unrolls short counted loops by four, as the vendor's assembler does before it makes SASS of PTX.
#pragma once
#include "gpu/ptx/module.hpp"

namespace manyscale::gpu {

// Changes all functions of a module in place; what they compute stays the same. A loop is unrolled if it is
// one block, ends with the comparison of a counter with something that does not change, is short, and the
// text does not forbid it
// (.pragma "nounroll"). Copies of an instruction keep its line.
void unroll_loops(ptx::Module& module);

}  // namespace manyscale::gpu
