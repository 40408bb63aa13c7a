// SPDX-License-Identifier: Apache-2.0
// Shows a warp's accesses to the checker of its CTA, and says what it found as warnings of the launch.
#pragma once
#include "gpu/exec/memory_access.hpp"

namespace manyscale::gpu {

class Cta;

// The access in warp.access is about to happen.
void check_access(Warp& warp, const Op& op, ptx::Space space, unsigned bytes, Does does);

// A barrier of the CTA is about to let go those who wait at it. Lanes of one warp must not wait at different
// instructions, unless these allow it.
void check_barrier(Cta& cta, Worker& worker, unsigned barrier);

}  // namespace manyscale::gpu
