// SPDX-License-Identifier: Apache-2.0
// `cvt` between floating-point formats and integers, and to integral values.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "gpu/exec/numerics/formats.hpp"
#include "gpu/exec/numerics/half.hpp"
#include "gpu/exec/numerics/rounding.hpp"

namespace manyscale::gpu {

/// A value rounded to a whole number, with the sign of a zero kept.
template <Rounding R, std::floating_point F>
inline F whole(F value) {
  const F nearest = std::rint(value);
  if constexpr (R == Rounding::rn) return nearest;
  // Compilers make vector code of std::rint, but not of the others, which may not raise the flag for inexact
  // results.
  const F size = from_bits<F>(magnitude_bits(value));
  const bool above = nearest > value;
  const bool below = nearest < value;
  const bool beyond = from_bits<F>(magnitude_bits(nearest)) > size;
  const bool wrong = R == Rounding::rz ? beyond : R == Rounding::rm ? above : below;
  const bool down = R == Rounding::rz ? !is_negative(value) : R == Rounding::rm;
  const BitsOf<F> step = select(wrong, one_bits<F>, BitsOf<F>{0}) | select(down, sign_bit<F>, BitsOf<F>{0});
  const F result = nearest + from_bits<F>(step);
  return from_bits<F>(magnitude_bits(result) | (bits_of(value) & sign_bit<F>));
}

/// `cvt.rni.f32.f32` and its like: a number rounded to a whole one of the same format.
template <Rounding R>
inline float to_integral(float value) {
  return canonical(whole<R>(value));
}

template <Rounding R>
inline double to_integral(double value) {
  return propagate(whole<R>(value), value);
}

template <Rounding R>
inline F16 to_integral(F16 value) {
  return to_f16(whole<R>(to_f32(value)));
}

template <Rounding R>
inline Bf16 to_integral(Bf16 value) {
  return to_bf16(whole<R>(to_f32(value)));
}

/// 2^Exponent.
template <std::floating_point F, int Exponent>
inline constexpr F power_of_two = F{2} * power_of_two<F, Exponent - 1>;
template <std::floating_point F>
inline constexpr F power_of_two<F, 0> = F{1};

/// `cvt.rzi.s32.f32` and its like: rounded, then clamped to the range of the integer. As the ISA has it, NaN
/// becomes 0, or only the highest bit if f64 or an integer of 64 bits is involved.
template <std::integral Int, Rounding R, std::floating_point F>
inline Int to_int(F value) {
  using Limits = std::numeric_limits<Int>;
  constexpr F beyond = power_of_two<F, Limits::digits>;
  constexpr F lowest = std::is_signed_v<Int> ? -beyond : F{0};
  constexpr bool wide = sizeof(F) == 8 || sizeof(Int) == 8;
  constexpr Int nan = wide ? static_cast<Int>(std::uint64_t{1} << (8 * sizeof(Int) - 1)) : Int{0};
  // The cast below rounds towards zero.
  const F rounded = R == Rounding::rz ? value : whole<R>(value);
  const BitsOf<F> raised = select(rounded > lowest, bits_of(rounded), bits_of(lowest));
  const bool fits = from_bits<F>(raised) < beyond;
  using Bits = std::make_unsigned_t<Int>;
  const auto inside = static_cast<Bits>(static_cast<Int>(from_bits<F>(select(fits, raised, BitsOf<F>{0}))));
  const Bits clamped = select(fits, inside, static_cast<Bits>(Limits::max()));
  return static_cast<Int>(select(is_nan(value), static_cast<Bits>(nan), clamped));
}

template <std::integral Int, Rounding R>
inline Int to_int(F16 value) {
  return to_int<Int, R>(to_f32(value));
}

template <std::integral Int, Rounding R>
inline Int to_int(Bf16 value) {
  return to_int<Int, R>(to_f32(value));
}

/// The two halves of an integer of 64 bits as f64, whose sum is the integer.
template <std::integral Int>
struct Halves {
  double high;
  double low;

  explicit Halves(Int value)
      : high(static_cast<double>(value >> 32) * 0x1p32),
        low(static_cast<double>(static_cast<std::uint64_t>(value) & 0xffffffff)) {}
};

/// An integer as an f64 from which it can be rounded further without a second rounding.
template <std::integral Int>
inline double odd_double(Int value) {
  if constexpr (sizeof(Int) < 8) {
    return static_cast<double>(value);
  } else {
    const Halves<Int> halves(value);
    return odd_sum(halves.high, halves.low);
  }
}

/// `cvt.rn.f32.s32` and its like: an integer rounded to a floating-point format.
template <class T, Rounding R = Rounding::rn, std::integral Int>
inline T from_int(Int value) {
  if constexpr (std::is_same_v<T, F16>) {
    return to_f16<R>(odd_double(value));
  } else if constexpr (std::is_same_v<T, Bf16>) {
    return to_bf16<R>(odd_double(value));
  } else if constexpr (R == Rounding::rn || (sizeof(T) == 8 && sizeof(Int) < 8)) {
    return static_cast<T>(value);
  } else if constexpr (std::is_same_v<T, float>) {
    return narrow<R>(odd_double(value));
  } else {
    const Halves<Int> halves(value);
    return add<R>(halves.high, halves.low);
  }
}

}  // namespace manyscale::gpu
