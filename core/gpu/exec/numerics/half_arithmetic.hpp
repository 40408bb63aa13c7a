// SPDX-License-Identifier: Apache-2.0
// f16 and bf16 arithmetic in one rounding to nearest even, the only one that PTX has for them.
#pragma once

#include "gpu/exec/numerics/formats.hpp"
#include "gpu/exec/numerics/half.hpp"
#include "gpu/exec/numerics/round_to_odd.hpp"

namespace manyscale::gpu {

// Rounded to f32 and again to f16, a sum is right: 24 bits are at least twice 11 plus 2, and a sum of f16
// that is subnormal is exact. A product of f16 is exact in f32.

/// `add.f16`.
template <Rounding R = Rounding::rn>
constexpr F16 add(F16 a, F16 b) {
  static_assert(R == Rounding::rn);
  return to_f16(to_f32(a) + to_f32(b));
}

/// `sub.f16`.
template <Rounding R = Rounding::rn>
constexpr F16 sub(F16 a, F16 b) {
  static_assert(R == Rounding::rn);
  return to_f16(to_f32(a) - to_f32(b));
}

/// `mul.f16`.
template <Rounding R = Rounding::rn>
constexpr F16 mul(F16 a, F16 b) {
  static_assert(R == Rounding::rn);
  return to_f16(to_f32(a) * to_f32(b));
}

/// a · b + c of numbers of f16, in an f32 that has yet to be rounded to f16: the product is exact in f32, and
/// the sum is rounded to odd, which leaves the one rounding to f16.
constexpr float odd_fma(float a, float b, float c) {
  return odd_sum(a * b, c);
}

/// `fma.f16`.
template <Rounding R = Rounding::rn>
constexpr F16 fma(F16 a, F16 b, F16 c) {
  static_assert(R == Rounding::rn);
  return to_f16(odd_fma(to_f32(a), to_f32(b), to_f32(c)));
}

// The same holds for sums of bf16. A product of 16 bits is exact in f32 unless it is below 2^-134, half of
// the smallest bf16, and then both roundings give zero.

/// `add.bf16`.
template <Rounding R = Rounding::rn>
constexpr Bf16 add(Bf16 a, Bf16 b) {
  static_assert(R == Rounding::rn);
  return to_bf16(to_f32(a) + to_f32(b));
}

/// `sub.bf16`.
template <Rounding R = Rounding::rn>
constexpr Bf16 sub(Bf16 a, Bf16 b) {
  static_assert(R == Rounding::rn);
  return to_bf16(to_f32(a) - to_f32(b));
}

/// `mul.bf16`.
template <Rounding R = Rounding::rn>
constexpr Bf16 mul(Bf16 a, Bf16 b) {
  static_assert(R == Rounding::rn);
  return to_bf16(to_f32(a) * to_f32(b));
}

/// `fma.bf16`: in f64, since a product can leave the range of f32 and the addend bring it back. Both
/// roundings before the last one are to odd: the product alone can be halfway between two bf16, and the
/// smallest addend decides.
template <Rounding R = Rounding::rn>
constexpr Bf16 fma(Bf16 a, Bf16 b, Bf16 c) {
  static_assert(R == Rounding::rn);
  return to_bf16(odd_sum(double{to_f32(a)} * double{to_f32(b)}, double{to_f32(c)}));
}

}  // namespace manyscale::gpu
