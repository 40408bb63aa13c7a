// SPDX-License-Identifier: Apache-2.0
// What conversions share: formats of floating-point numbers and rounding, as modifiers name them.
#pragma once
#include <cstdint>
#include <vector>

#include "gpu/exec/numerics/rounding.hpp"
#include "gpu/exec/op.hpp"
#include "gpu/exec/sass/lanes.hpp"

namespace manyscale::gpu {

class MachineBuilder;

// Where the rounding stands in Op::immediate.
inline constexpr unsigned kRoundingBits = kFreeBits;
inline Rounding rounding_of(const Op& op) {
  return static_cast<Rounding>(op.immediate >> kRoundingBits & 3);
}

enum class Float : std::uint8_t { f16, f32, f64, bf16 };

// The rounding that a modifier names; to the nearest if none does.
Rounding accept_rounding(MachineBuilder& builder);
// The formats that modifiers name, in their order.
std::vector<Float> accept_floats(MachineBuilder& builder);

}  // namespace manyscale::gpu
