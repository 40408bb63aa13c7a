// SPDX-License-Identifier: Apache-2.0
// The approximate functions of PTX. The ISA bounds their error and gives their values at special operands;
// what lies between differs between generations of hardware. Here they are evaluated in f64 by basic
// operations only, which are the same on every host, and rounded once: within 1 ulp of f32, and below the
// bounds of the ISA.
// `.ftz` is `flush` before and after.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "gpu/exec/numerics/formats.hpp"
#include "gpu/exec/numerics/half.hpp"
#include "gpu/exec/numerics/rounding.hpp"
#include "gpu/exec/numerics/trigonometric_reduction.hpp"

namespace manyscale::gpu {

/// c[0] + c[1] x + … by Horner's rule; without a loop, which would stand in the way of one over lanes.
template <std::size_t First = 0, std::size_t N>
constexpr double polynomial(const std::array<double, N>& coefficients, double x) {
  if constexpr (First + 1 == N) {
    return coefficients[First];
  } else {
    return polynomial<First + 1>(coefficients, x) * x + coefficients[First];
  }
}

/// The series of 2^x: ln(2)^k / k!.
inline constexpr std::array<double, 11> exponential_series = [] {
  std::array<double, 11> series{1.0};
  for (std::size_t k = 1; k < series.size(); ++k) {
    series[k] = series[k - 1] * 0x1.62e42fefa39efp-1 / static_cast<double>(k);
  }
  return series;
}();

/// 2^x for |x| < 1000, to about 40 bits.
constexpr double power_of_two_near(double x) {
  // Added to this, a number is rounded to a whole one, which stands in the lowest bits.
  constexpr double to_whole = 0x1.8p52;
  const double shifted = x + to_whole;
  const double fraction = x - (shifted - to_whole);
  const double scale = from_bits<double>((bits_of(shifted) + 1023) << 52);
  return polynomial(exponential_series, fraction) * scale;
}

/// `ex2.approx.f32`: 2^a.
constexpr float ex2_approx(float a) {
  const std::uint32_t above = select(a < -160.0f, bits_of(-160.0f), bits_of(a));
  const std::uint32_t inside = select(a > 130.0f, bits_of(130.0f), above);
  return canonical(static_cast<float>(power_of_two_near(from_bits<float>(inside))));
}

/// `lg2.approx.f32`: the logarithm of a to base 2.
constexpr float lg2_approx(float a) {
  // The logarithm of m in [1/√2, √2) from s = (m - 1) / (m + 1): (2 / ln 2) (s + s³/3 + s⁵/5 + …).
  constexpr std::uint64_t inverse_root_two = 0x3fe6a09e667f3bcd;
  constexpr double factor = 0x1.71547652b82fep+1;
  constexpr std::array<double, 9> series{1.0,      1.0 / 3,  1.0 / 5,  1.0 / 7, 1.0 / 9,
                                         1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17};
  const std::uint64_t bits = bits_of(double{a});
  const std::uint64_t above = bits - inverse_root_two;
  const std::int32_t exponent = static_cast<std::int32_t>(above >> 32) >> 20;
  const double m = from_bits<double>((above & 0x000fffffffffffff) + inverse_root_two);
  const double s = (m - 1) / (m + 1);
  const auto number = static_cast<float>(exponent + factor * s * polynomial(series, s * s));
  const std::uint32_t positive = select(bits_of(a) < infinity_bits<float>, bits_of(number), bits_of(a));
  const std::uint32_t beside_zero = select(bits_of(a) > infinity_bits<float>, canonical_nan_f32, positive);
  const std::uint32_t minus_infinity = infinity_bits<float> | sign_bit<float>;
  return from_bits<float>(select(magnitude_bits(a) == 0, minus_infinity, beside_zero));
}

/// The sine of an angle given as quadrant and rest in [-π/4, π/4].
constexpr double sine(std::uint64_t quadrant, double rest) {
  constexpr std::array<double, 7> sine_series{1.0,          -1.0 / 6,        1.0 / 120,       -1.0 / 5040,
                                              1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800};
  constexpr std::array<double, 8> cosine_series{
      1.0, -1.0 / 2, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600, -1.0 / 87178291200};
  const double square = rest * rest;
  const std::uint64_t even = bits_of(rest * polynomial(sine_series, square));
  const std::uint64_t odd = bits_of(polynomial(cosine_series, square));
  const std::uint64_t is_odd = std::uint64_t{0} - (quadrant & 1);
  const std::uint64_t sign = (quadrant & 2) << 62;
  return from_bits<double>(((odd & is_odd) | (even & ~is_odd)) ^ sign);
}

/// Angles below this are reduced without a table, and so many at once.
inline constexpr float small_angle = 0x1p24f;

/// `sin.approx.f32` of a small angle.
inline float sin_small(float a) {
  const ReducedAngle angle = reduce_small_angle(a);
  return static_cast<float>(sine(angle.quadrant, angle.rest));
}

/// `cos.approx.f32` of a small angle.
inline float cos_small(float a) {
  const ReducedAngle angle = reduce_small_angle(a);
  return static_cast<float>(sine(angle.quadrant + 1, angle.rest));
}

/// `sin.approx.f32`: the sine of a in radians.
inline float sin_approx(float a) {
  const std::uint32_t magnitude = magnitude_bits(a);
  if (magnitude < bits_of(small_angle)) return sin_small(a);
  if (magnitude >= infinity_bits<float>) return from_bits<float>(canonical_nan_f32);
  const ReducedAngle angle = reduce_large_angle(a);
  return static_cast<float>(sine(angle.quadrant, angle.rest));
}

/// `cos.approx.f32`: the cosine of a in radians.
inline float cos_approx(float a) {
  const std::uint32_t magnitude = magnitude_bits(a);
  if (magnitude < bits_of(small_angle)) return cos_small(a);
  if (magnitude >= infinity_bits<float>) return from_bits<float>(canonical_nan_f32);
  const ReducedAngle angle = reduce_large_angle(a);
  return static_cast<float>(sine(angle.quadrant + 1, angle.rest));
}

/// `tanh.approx.f32`: the hyperbolic tangent of a.
constexpr float tanh_approx(float a) {
  const std::uint32_t magnitude = magnitude_bits(a);
  const double limited = from_bits<float>(select(magnitude > bits_of(20.0f), bits_of(20.0f), magnitude));
  // Next to zero a Padé approximant, since the other form cancels there.
  const double square = limited * limited;
  const double small = limited * (945 + square * (105 + square)) / (945 + square * (420 + square * 15));
  const double power = power_of_two_near(limited * 0x1.71547652b82fep+1);
  const double large = (power - 1) / (power + 1);
  const bool near_zero = magnitude < bits_of(0.25f);
  const std::uint32_t number =
      select(near_zero, bits_of(static_cast<float>(small)), bits_of(static_cast<float>(large)));
  const std::uint32_t sign = bits_of(a) & sign_bit<float>;
  return from_bits<float>(select(is_nan(a), canonical_nan_f32, number | sign));
}

/// `rcp.approx.f32`: 1 / a.
inline float rcp_approx(float a) {
  return rcp<Rounding::rn>(a);
}

/// `sqrt.approx.f32`: the square root of a.
inline float sqrt_approx(float a) {
  return sqrt<Rounding::rn>(a);
}

/// `rsqrt.approx.f32`: 1 / √a.
inline float rsqrt_approx(float a) {
  return canonical(static_cast<float>(1.0 / std::sqrt(double{a})));
}

/// `div.approx.f32`: a / b as a · (1 / b), which the ISA makes 0, or NaN for an infinite a, where 1 / b is
/// subnormal.
inline float div_approx(float a, float b) {
  const std::uint32_t divisor = magnitude_bits(b);
  const std::uint32_t sign = (bits_of(a) ^ bits_of(b)) & sign_bit<float>;
  const std::uint32_t lost = magnitude_bits(a) < infinity_bits<float> ? sign : canonical_nan_f32;
  const bool subnormal = divisor > 0x7e800000 && divisor < infinity_bits<float>;
  return subnormal ? from_bits<float>(lost) : div<Rounding::rn>(a, b);
}

/// `div.full.f32`: a / b in the full range.
inline float div_full(float a, float b) {
  return div<Rounding::rn>(a, b);
}

/// `ex2.approx.f16`.
constexpr F16 ex2_approx(F16 a) {
  return to_f16(ex2_approx(to_f32(a)));
}

/// `ex2.approx.ftz.bf16`, with `flush` before and after.
constexpr Bf16 ex2_approx(Bf16 a) {
  return to_bf16(ex2_approx(to_f32(a)));
}

/// `tanh.approx.f16`.
constexpr F16 tanh_approx(F16 a) {
  return to_f16(tanh_approx(to_f32(a)));
}

/// `tanh.approx.bf16`.
constexpr Bf16 tanh_approx(Bf16 a) {
  return to_bf16(tanh_approx(to_f32(a)));
}

/// `rsqrt.approx.f64`: 1 / √a.
inline double rsqrt_approx(double a) {
  return propagate(1.0 / std::sqrt(a), a);
}

/// The upper word of an f64, with a subnormal flushed: all that the gross approximations of f64 see.
constexpr double upper_word(double a) {
  const std::uint64_t bits = bits_of(a) & 0xffffffff00000000;
  return from_bits<double>((bits & infinity_bits<double>) == 0 ? bits & sign_bit<double> : bits);
}

/// A result rounded to an upper word.
constexpr double to_upper_word(double result) {
  if (is_nan(result)) return from_bits<double>(canonical_nan_f64_approximate);
  return upper_word(from_bits<double>(bits_of(result) + 0x80000000));
}

/// `rcp.approx.ftz.f64`: 1 / a to 20 bits.
inline double rcp_approx_ftz(double a) {
  return to_upper_word(1.0 / upper_word(a));
}

/// `rsqrt.approx.ftz.f64`: 1 / √a to 20 bits.
inline double rsqrt_approx_ftz(double a) {
  return to_upper_word(1.0 / std::sqrt(upper_word(a)));
}

}  // namespace manyscale::gpu
