// SPDX-License-Identifier: Apache-2.0
// Functions of the system that SASS calls by address: printf, malloc, free, a failed assertion. Their
// arguments are in R4 and following, as are their results.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "gpu/exec/op.hpp"

namespace manyscale::gpu {

// The address of such a function, in the code window; nothing if there is none of that name.
std::optional<std::uint64_t> builtin_address(std::string_view name);
bool is_builtin(std::uint64_t address);
// Carries it out for the lanes in the warp's mask.
void call_builtin(Warp& warp, const Op& op, std::uint64_t address);

}  // namespace manyscale::gpu
