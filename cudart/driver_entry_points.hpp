// SPDX-License-Identifier: Apache-2.0
// Functions of the driver, asked for through the runtime.
#pragma once
#include "process.hpp"
#include "streams.hpp"

namespace manyscale::cudart {

// The function of a name that a program of a version of CUDA knows. One that is not there is null; that is an
// error only if there is no `status` (0 found, 1 not found, 2 the version is too old).
Error driver_entry_point(const char* name, void** function, int version, unsigned long long flags,
                         DefaultStream when_default, int* status);

}  // namespace manyscale::cudart
