// SPDX-License-Identifier: Apache-2.0
// What the flags of operations say that change the flow of SASS.
#pragma once
#include <cstdint>

namespace manyscale::gpu {

inline constexpr std::uint8_t kNegatedCondition = 1;
inline constexpr std::uint8_t kAbsoluteAddress = 2;  // counted from the code window, not from the function

}  // namespace manyscale::gpu
