// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory that count arrivals and bytes on their way.
#pragma once
#include "gpu/exec/builder.hpp"

namespace manyscale::gpu {

// cp.async.mbarrier.arrive: copies are over at once, so it arrives like mbarrier.arrive. Decodes what follows
// `.mbarrier`.
void decode_copy_arrival(Builder& builder);

}  // namespace manyscale::gpu
