// SPDX-License-Identifier: Apache-2.0
// Faults and deadlocks in words: what happened, to which thread, at which instruction and source line.
#pragma once
#include <string>

#include "gpu/exec/fault.hpp"
#include "gpu/exec/launch.hpp"

namespace manyscale::gpu {

KernelFault explain(const Cta& cta, const Warp& warp, const Fault& fault);
KernelFault explain_deadlock(const Cta& cta);

}  // namespace manyscale::gpu
