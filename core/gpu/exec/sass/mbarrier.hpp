// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory that count arrivals, as SASS has them.
#pragma once

namespace manyscale::gpu {

class MachineBuilder;

// ATOMS.ARRIVE: the arrival of sm_80.
void decode_shared_arrival(MachineBuilder& builder);

}  // namespace manyscale::gpu
