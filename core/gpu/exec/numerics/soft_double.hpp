// SPDX-License-Identifier: Apache-2.0
// f64 arithmetic in integers, for the rounding directions that the host is not set to. Setting it would cost
// more than this, and compilers move arithmetic across the call that does.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "gpu/exec/numerics/formats.hpp"

namespace manyscale::gpu::soft {

__extension__ using Uint128 = unsigned __int128;

/// The number significand · 2^exponent. The lowest bit may stand for anything that was shifted out below it.
struct Exact {
  bool negative;
  int exponent;
  Uint128 significand;
};

inline int highest_bit(Uint128 value) {
  const auto high = static_cast<std::uint64_t>(value >> 64);
  return high != 0 ? 127 - std::countl_zero(high) : 63 - std::countl_zero(static_cast<std::uint64_t>(value));
}

inline Exact unpack(double value) {
  const std::uint64_t magnitude = magnitude_bits(value);
  const int field = static_cast<int>(magnitude >> 52);
  const std::uint64_t fraction = magnitude & 0x000fffffffffffff;
  if (field == 0) return {is_negative(value), -1074, fraction};
  return {is_negative(value), field - 1075, fraction | 0x0010000000000000};
}

/// Whether a value is rounded away from zero, given the bits that are lost relative to half of the last one
/// kept.
template <Rounding R>
constexpr bool rounds_up(bool negative, bool is_odd, bool inexact, bool above_half, bool half_or_above) {
  if constexpr (R == Rounding::rn) return above_half || (half_or_above && is_odd);
  if constexpr (R == Rounding::rna) return half_or_above;
  if constexpr (R == Rounding::rm) return inexact && negative;
  if constexpr (R == Rounding::rp) return inexact && !negative;
  return false;
}

/// Whether a value beyond the largest finite one becomes infinite.
template <Rounding R>
constexpr bool overflows_to_infinity(bool negative) {
  if constexpr (R == Rounding::rz) return false;
  if constexpr (R == Rounding::rm) return negative;
  if constexpr (R == Rounding::rp) return !negative;
  return true;
}

/// The f64 next to a number other than zero.
template <Rounding R>
double pack(const Exact& number) {
  const int top = number.exponent + highest_bit(number.significand);
  const int unit = top - 52 > -1074 ? top - 52 : -1074;
  const int shift = unit - number.exponent;
  std::uint64_t kept = 0;
  if (shift <= 0) {
    kept = static_cast<std::uint64_t>(number.significand << -shift);
  } else {
    const Uint128 wide = shift < 128 ? number.significand >> shift : 0;
    const Uint128 lost = shift < 128 ? number.significand - (wide << shift) : number.significand;
    const Uint128 half = shift <= 128 ? Uint128{1} << (shift - 1) : ~Uint128{0};
    kept = static_cast<std::uint64_t>(wide);
    kept += rounds_up<R>(number.negative, kept & 1, lost != 0, lost > half, lost >= half);
  }
  // The implicit bit of a normal number carries into the exponent, and so does a significand rounded up to
  // two.
  std::uint64_t bits = (static_cast<std::uint64_t>(unit + 1074) << 52) + kept;
  if (bits >= infinity_bits<double>) {
    bits = infinity_bits<double> - !overflows_to_infinity<R>(number.negative);
  }
  return from_bits<double>(bits | (number.negative ? sign_bit<double> : 0));
}

inline void normalize(Exact& number) {
  const int shift = 125 - highest_bit(number.significand);
  number.significand <<= shift;
  number.exponent -= shift;
}

/// The sum of two numbers other than zero. Significands of at most 106 bits keep 20 bits below them at this
/// alignment, so what is shifted out lies below any bit that cancellation can bring up.
template <Rounding R>
double sum(Exact large, Exact small) {
  normalize(large);
  normalize(small);
  if (large.exponent < small.exponent ||
      (large.exponent == small.exponent && large.significand < small.significand)) {
    const Exact other = large;
    large = small;
    small = other;
  }
  const int distance = large.exponent - small.exponent;
  const Uint128 aligned = distance < 128 ? small.significand >> distance : 0;
  const bool lost = distance < 128 ? (aligned << distance) != small.significand : true;
  const Uint128 addend = aligned | Uint128{lost};
  if (large.negative == small.negative) {
    large.significand += addend;
  } else {
    large.significand -= addend;
    if (large.significand == 0) return R == Rounding::rm ? -0.0 : 0.0;
  }
  return pack<R>(large);
}

inline bool is_finite(double value) {
  return magnitude_bits(value) < infinity_bits<double>;
}

/// a + b where one of the two is zero, infinite or NaN, so that only the sign of a zero depends on the
/// rounding.
template <Rounding R>
double special_sum(double a, double b) {
  if (a == 0 && b == 0 && R == Rounding::rm && is_negative(a) != is_negative(b)) return -0.0;
  return a + b;
}

template <Rounding R>
double add(double a, double b) {
  if (a == 0 || b == 0 || !is_finite(a) || !is_finite(b)) return special_sum<R>(a, b);
  return sum<R>(unpack(a), unpack(b));
}

inline Exact product(double a, double b) {
  const Exact x = unpack(a);
  const Exact y = unpack(b);
  return {x.negative != y.negative, x.exponent + y.exponent, x.significand * y.significand};
}

template <Rounding R>
double mul(double a, double b) {
  if (a == 0 || b == 0 || !is_finite(a) || !is_finite(b)) return a * b;
  return pack<R>(product(a, b));
}

template <Rounding R>
double fma(double a, double b, double c) {
  if (!is_finite(a) || !is_finite(b)) return a * b + c;
  if (!is_finite(c)) return c;
  if (a == 0 || b == 0) return special_sum<R>(a * b, c);
  if (c == 0) return pack<R>(product(a, b));
  return sum<R>(product(a, b), unpack(c));
}

template <Rounding R>
double div(double a, double b) {
  if (a == 0 || b == 0 || !is_finite(a) || !is_finite(b)) return a / b;
  Exact x = unpack(a);
  Exact y = unpack(b);
  normalize(x);
  // A divisor of 53 bits leaves 72 or more bits of the quotient.
  const int shift = 52 - highest_bit(y.significand);
  y.significand <<= shift;
  y.exponent -= shift;
  const Uint128 quotient = x.significand / y.significand;
  const bool inexact = quotient * y.significand != x.significand;
  return pack<R>({x.negative != y.negative, x.exponent - y.exponent, quotient | Uint128{inexact}});
}

template <Rounding R>
double sqrt(double value) {
  if (value == 0 || !is_finite(value) || value < 0) {
    return value < 0 ? std::numeric_limits<double>::quiet_NaN() : value;
  }
  Exact number = unpack(value);
  normalize(number);
  if (number.exponent % 2 != 0) {
    number.significand >>= 1;
    ++number.exponent;
  }
  std::uint64_t root = 0;
  for (int bit = 62; bit >= 0; --bit) {
    const std::uint64_t larger = root | (std::uint64_t{1} << bit);
    if (Uint128{larger} * larger <= number.significand) root = larger;
  }
  const bool inexact = Uint128{root} * root != number.significand;
  return pack<R>({false, number.exponent / 2, Uint128{root} | Uint128{inexact}});
}

}  // namespace manyscale::gpu::soft
