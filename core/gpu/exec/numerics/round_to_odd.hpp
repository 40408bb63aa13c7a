// SPDX-License-Identifier: Apache-2.0
// Rounding to odd: an inexact value becomes the one of its two neighbours whose last bit is set. Rounded once
// more to a format with at least two bits less, in any direction, the result is that of a single rounding,
// because the last bit says that there was more (S. Boldo, G. Melquiond, "Emulation of FMA and correctly
// rounded sums", 2008).
#pragma once

#include <cstdint>

#include "gpu/exec/numerics/formats.hpp"

namespace manyscale::gpu {

/// A value rounded to nearest whose exact value differs from it by something of the sign of `error`, rounded
/// to odd instead. An error that is not a number stands for none: the value is then infinite or NaN.
template <class T>
constexpr T odd(T nearest, T error) {
  const BitsOf<T> bits = bits_of(nearest);
  const bool inexact = (error > 0) | (error < 0);
  const bool too_large = inexact & (is_negative(nearest) != is_negative(error));
  return from_bits<T>((bits - BitsOf<T>{too_large}) | BitsOf<T>{inexact});
}

/// What a + b lost when it was rounded to `sum`, exactly (Knuth's TwoSum). No partial sum may overflow.
template <class T>
constexpr T sum_error(T a, T b, T sum) {
  const T b_part = sum - a;
  const T a_part = sum - b_part;
  return (a - a_part) + (b - b_part);
}

/// a + b rounded to odd. With `Down`, an exact zero of operands that differ in sign is -0, as in rounding
/// down.
template <bool Down = false, class T>
constexpr T odd_sum(T a, T b) {
  const T sum = a + b;
  const T result = odd(sum, sum_error(a, b, sum));
  if constexpr (Down) {
    const BitsOf<T> zero = (bits_of(a) | bits_of(b)) & sign_bit<T>;
    return from_bits<T>(select(magnitude_bits(result) == 0, zero, bits_of(result)));
  }
  return result;
}

/// An f64 rounded to an odd f32.
constexpr float odd_float(double value) {
  const float nearest = static_cast<float>(value);
  const double back = nearest;
  const std::uint32_t bits = bits_of(nearest);
  const bool inexact = (back < value) | (back > value);
  const bool too_large = (is_negative(value) & (back < value)) | (!is_negative(value) & (back > value));
  return from_bits<float>((bits - std::uint32_t{too_large}) | std::uint32_t{inexact});
}

/// An f64 rounded to f32.
template <Rounding R>
constexpr float narrow(double value) {
  static_assert(R != Rounding::rna);
  const float nearest = static_cast<float>(value);
  if constexpr (R == Rounding::rn) return nearest;
  const double back = nearest;
  const bool above = back > value;
  const bool below = back < value;
  const bool negative = is_negative(value);
  std::uint32_t bits = bits_of(nearest);
  if constexpr (R == Rounding::rz) {
    bits -= (negative & below) | (!negative & above);
  } else if constexpr (R == Rounding::rm) {
    bits += static_cast<std::uint32_t>(negative & above) - static_cast<std::uint32_t>(!negative & above);
  } else if constexpr (R == Rounding::rp) {
    bits += static_cast<std::uint32_t>(!negative & below) - static_cast<std::uint32_t>(negative & below);
  }
  return from_bits<float>(bits);
}

}  // namespace manyscale::gpu
