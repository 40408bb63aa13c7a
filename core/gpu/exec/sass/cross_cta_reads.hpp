// SPDX-License-Identifier: Apache-2.0
// Cross-CTA reads of a kernel that there is only SASS of: the origins of its addresses, found by a forward
// data flow over its registers. Where it loses track (a pointer from memory, an indirect branch) it assumes
// the worst.
#pragma once
#include "gpu/exec/cross_cta_reads.hpp"
#include "gpu/exec/program.hpp"

namespace manyscale::gpu {

// Of a decoded program; `memory` has the variables that its constant banks point to.
CrossCtaReads find_sass_cross_cta_reads(const Program& program, const DeviceMemory& memory);

}  // namespace manyscale::gpu
