// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/exec/numerics/formats.hpp"

namespace manyscale::gpu {

/// `.ftz`: a subnormal becomes zero of the same sign. It is applied to operands and, after rounding, to the
/// result.
template <class T>
constexpr T flush(T value) {
  const BitsOf<T> bits = bits_of(value);
  const auto zero = static_cast<BitsOf<T>>(bits & sign_bit<T>);
  return from_bits<T>((bits & infinity_bits<T>) == 0 ? zero : bits);
}

/// `.sat`: clamped to [0, 1]; NaN and -0 become +0.
template <class T>
constexpr T saturate(T value) {
  const BitsOf<T> bits = bits_of(value);
  // Negative numbers and NaN lie beyond infinity as unsigned integers.
  const BitsOf<T> at_most_one = bits > one_bits<T> ? one_bits<T> : bits;
  return from_bits<T>(bits > infinity_bits<T> ? BitsOf<T>{0} : at_most_one);
}

/// `flush` for instructions that have `.ftz`.
template <bool Ftz, class T>
constexpr T flush_if(T value) {
  if constexpr (Ftz) return flush(value);
  return value;
}

/// `saturate` for instructions that have `.sat`.
template <bool Sat, class T>
constexpr T saturate_if(T value) {
  if constexpr (Sat) return saturate(value);
  return value;
}

}  // namespace manyscale::gpu
