// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "abi.hpp"
#include "operations.hpp"

namespace manyscale::cudart {

// What cudaMemcpy3D's parameters ask for.
Error volume_copy(const Copy3DParameters& given, CopyOperation& operation);

}  // namespace manyscale::cudart
