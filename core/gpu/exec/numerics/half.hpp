// SPDX-License-Identifier: Apache-2.0
// Conversions between f32 or f64 and the formats of 16 bits, and tf32.
#pragma once

#include <cstdint>

#include "gpu/exec/numerics/formats.hpp"
#include "gpu/exec/numerics/round_to_odd.hpp"
#include "gpu/exec/numerics/soft_double.hpp"

namespace manyscale::gpu {

/// The magnitude of a finite f32 in a format with these numbers of exponent and mantissa bits, given and
/// returned as bits without a sign. The result is not limited: from the code of infinity on, it is too large.
template <Rounding R, int ExponentBits, int MantissaBits>
constexpr std::uint32_t encode(std::uint32_t magnitude, bool negative) {
  constexpr int bias_difference = 127 - ((1 << (ExponentBits - 1)) - 1);
  const std::uint32_t fraction = magnitude & 0x007fffff;
  const int field = static_cast<int>(magnitude >> 23);
  const std::uint32_t significand = field != 0 ? fraction | 0x00800000 : fraction;
  const int exponent = (field != 0 ? field : 1) - bias_difference;
  const int below = exponent < 1 ? 1 - exponent : 0;
  const int wanted = 23 - MantissaBits + below;
  const int shift = wanted < 26 ? wanted : 26;
  const std::uint32_t kept = significand >> shift;
  const std::uint32_t lost = significand & ((1u << shift) - 1);
  const std::uint32_t half = 1u << (shift - 1);
  const bool up = soft::rounds_up<R>(negative, kept & 1, lost != 0, lost > half, lost >= half);
  const std::uint32_t binade = static_cast<std::uint32_t>(exponent + below - 1) << MantissaBits;
  return binade + kept + std::uint32_t{up};
}

/// An f32 in a format whose codes are ordered as those of IEEE 754, with its sign; `Nan` is the code of NaN.
template <Rounding R, Overflow O, int ExponentBits, int MantissaBits, std::uint32_t Nan>
constexpr std::uint32_t convert_down(float value) {
  constexpr std::uint32_t infinity = ((1u << ExponentBits) - 1) << MantissaBits;
  const std::uint32_t magnitude = magnitude_bits(value);
  const bool negative = is_negative(value);
  const bool to_infinity = magnitude == infinity_bits<float> || soft::overflows_to_infinity<R>(negative);
  const std::uint32_t largest = O == Overflow::satfinite || !to_infinity ? infinity - 1 : infinity;
  const std::uint32_t finite = encode<R, ExponentBits, MantissaBits>(magnitude, negative);
  const std::uint32_t limited = finite < infinity ? finite : largest;
  const std::uint32_t sign = negative ? 1u << (ExponentBits + MantissaBits) : 0;
  return is_nan(value) ? Nan : limited | sign;
}

/// The f32 that a code without sign stands for, infinity and NaN aside.
template <int ExponentBits, int MantissaBits>
constexpr float decode(std::uint32_t code) {
  constexpr std::uint32_t bias_difference = 127 - ((1 << (ExponentBits - 1)) - 1);
  constexpr std::uint32_t smallest_normal = (bias_difference + 1) << 23;
  const std::uint32_t aligned = code << (23 - MantissaBits);
  // A subnormal is the fraction of the smallest normal number, with that number taken off.
  const float subnormal = from_bits<float>(aligned + smallest_normal) - from_bits<float>(smallest_normal);
  const float normal = from_bits<float>(aligned + (bias_difference << 23));
  return from_bits<float>(select(code < (1u << MantissaBits), bits_of(subnormal), bits_of(normal)));
}

/// `cvt.f16.f32`.
template <Rounding R = Rounding::rn, Overflow O = Overflow::ieee>
constexpr F16 to_f16(float value) {
  if constexpr (R == Rounding::rn && O == Overflow::ieee) {
    const std::uint32_t magnitude = magnitude_bits(value);
    const std::uint32_t sign = (bits_of(value) >> 16) & 0x8000;
    const std::uint32_t normal = (magnitude + 0xc8000fff + ((magnitude >> 13) & 1)) >> 13;
    // Added to 1/2, whose last bit is the smallest f16, a small number is rounded by the addition.
    const std::uint32_t subnormal = bits_of(from_bits<float>(magnitude) + 0.5f) - 0x3f000000;
    const std::uint32_t finite = select(magnitude < 0x38800000, subnormal, normal);
    const std::uint32_t number = select(magnitude < 0x47800000, finite, 0x7c00u);
    const bool nan = magnitude > infinity_bits<float>;
    const std::uint32_t bits = select(nan, std::uint32_t{canonical_nan_f16}, number | sign);
    return {static_cast<std::uint16_t>(bits)};
  }
  return {static_cast<std::uint16_t>(convert_down<R, O, 5, 10, canonical_nan_f16>(value))};
}

/// `cvt.bf16.f32`.
template <Rounding R = Rounding::rn, Overflow O = Overflow::ieee>
constexpr Bf16 to_bf16(float value) {
  if constexpr (R == Rounding::rn && O == Overflow::ieee) {
    const std::uint32_t bits = bits_of(value);
    const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return {static_cast<std::uint16_t>(is_nan(value) ? canonical_nan_bf16 : rounded)};
  }
  return {static_cast<std::uint16_t>(convert_down<R, O, 8, 7, canonical_nan_bf16>(value))};
}

/// `cvt.tf32.f32`.
template <Rounding R = Rounding::rna, Overflow O = Overflow::ieee>
constexpr Tf32 to_tf32(float value) {
  if (is_nan(value)) return {canonical_nan_f32};
  return {convert_down<R, O, 8, 10, 0>(value) << 13};
}

/// `cvt.f16.f64`: in one rounding, since the f32 between the two is rounded to odd.
template <Rounding R = Rounding::rn, Overflow O = Overflow::ieee>
constexpr F16 to_f16(double value) {
  return to_f16<R, O>(odd_float(value));
}

/// `cvt.bf16.f64`.
template <Rounding R = Rounding::rn, Overflow O = Overflow::ieee>
constexpr Bf16 to_bf16(double value) {
  return to_bf16<R, O>(odd_float(value));
}

/// `cvt.f32.f16`.
constexpr float to_f32(F16 value) {
  const std::uint32_t magnitude = value.bits & 0x7fffu;
  const std::uint32_t sign = (value.bits & 0x8000u) << 16;
  const std::uint32_t number = bits_of(decode<5, 10>(magnitude));
  const std::uint32_t limited = select(magnitude < 0x7c00, number, infinity_bits<float>);
  return from_bits<float>(select(magnitude > 0x7c00, canonical_nan_f32, limited | sign));
}

/// `cvt.f32.bf16`.
constexpr float to_f32(Bf16 value) {
  return canonical(from_bits<float>(static_cast<std::uint32_t>(value.bits) << 16));
}

/// A tf32 as the f32 it is.
constexpr float to_f32(Tf32 value) {
  return from_bits<float>(value.bits);
}

/// `cvt.f64.f16`.
constexpr double to_f64(F16 value) {
  return to_f32(value);
}

/// `cvt.f64.bf16`.
constexpr double to_f64(Bf16 value) {
  return to_f32(value);
}

/// `cvt.f16.bf16`.
template <Rounding R = Rounding::rn, Overflow O = Overflow::ieee>
constexpr F16 to_f16(Bf16 value) {
  return to_f16<R, O>(to_f32(value));
}

/// `cvt.bf16.f16`.
template <Rounding R = Rounding::rn, Overflow O = Overflow::ieee>
constexpr Bf16 to_bf16(F16 value) {
  return to_bf16<R, O>(to_f32(value));
}

/// `.relu`: nothing below zero, and -0 is +0; NaN stays.
constexpr F16 relu(F16 value) {
  const std::uint16_t positive = is_negative(value) ? std::uint16_t{0} : value.bits;
  return {is_nan(value) ? canonical_nan_f16 : positive};
}

constexpr Bf16 relu(Bf16 value) {
  const std::uint16_t positive = is_negative(value) ? std::uint16_t{0} : value.bits;
  return {is_nan(value) ? canonical_nan_bf16 : positive};
}

constexpr Tf32 relu(Tf32 value) {
  const float number = from_bits<float>(value.bits);
  const std::uint32_t positive = is_negative(number) ? 0u : value.bits;
  return {is_nan(number) ? canonical_nan_f32 : positive};
}

}  // namespace manyscale::gpu
