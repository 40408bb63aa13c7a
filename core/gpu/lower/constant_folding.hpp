// SPDX-License-Identifier: Apache-2.0
// Operations on constants, which an assembler computes itself: words, and conversions of floats to words.
#pragma once
#include <cstdint>
#include <optional>

#include "gpu/lower/values.hpp"

namespace manyscale::gpu {

// The result of an operation whose operands are all immediate; nothing if they are not, or for other
// operations.
std::optional<std::uint32_t> folded(const Values& values, std::uint32_t op);

}  // namespace manyscale::gpu
