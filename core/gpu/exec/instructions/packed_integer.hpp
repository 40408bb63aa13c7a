// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "gpu/exec/builder.hpp"

namespace manyscale::gpu {

// vadd2, vsub4, vabsdiff4, …: arithmetic on the two halves or four bytes of 32 bits.
void decode_packed_integer(Builder& builder);

}  // namespace manyscale::gpu
