// SPDX-License-Identifier: Apache-2.0
// Functions that a program may call without defining them: printf, malloc, free, a failed assertion.
#pragma once
#include <string_view>

#include "gpu/exec/builder.hpp"
#include "gpu/exec/program.hpp"

namespace manyscale::gpu {

// Decodes a call to a function without a body; Unsupported if it is not one of ours.
void decode_builtin(Builder& builder, std::string_view name, CallSite site);

}  // namespace manyscale::gpu
