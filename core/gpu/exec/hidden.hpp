// SPDX-License-Identifier: Apache-2.0
// Handlers of steps that stand in no instruction but are needed to give it its operands.
#pragma once
#include "gpu/exec/op.hpp"

namespace manyscale::gpu {

// Zero-extends or cuts lanes of src[0] to dst.
Handler hidden_resize(unsigned from_bytes, unsigned to_bytes);
// The address of immediate in the current frame.
Handler hidden_frame_address(unsigned bytes);

}  // namespace manyscale::gpu
