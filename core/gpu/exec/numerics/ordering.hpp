// SPDX-License-Identifier: Apache-2.0
// Signs, comparisons, minimum and maximum of all floating-point formats.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "gpu/exec/numerics/formats.hpp"
#include "gpu/exec/numerics/half.hpp"

namespace manyscale::gpu {

/// `neg`: the sign turned round, of a NaN too.
template <class T>
constexpr T neg(T value) {
  return from_bits<T>(static_cast<BitsOf<T>>(bits_of(value) ^ sign_bit<T>));
}

/// `abs`: without the sign.
template <class T>
constexpr T abs(T value) {
  return from_bits<T>(magnitude_bits(value));
}

/// `copysign`: the magnitude of the second operand with the sign of the first.
template <class T>
constexpr T copysign(T sign, T magnitude) {
  return from_bits<T>(
      static_cast<BitsOf<T>>((bits_of(sign) & sign_bit<T>) | (bits_of(magnitude) & ~sign_bit<T>)));
}

/// The NaN that min and max return: the canonical one, or for f64 a quiet operand.
template <class T>
constexpr T nan_of(T a, T b) {
  if constexpr (std::is_same_v<T, double>) {
    return propagate(from_bits<double>(default_nan_f64), a, b);
  } else if constexpr (std::is_same_v<T, float>) {
    return from_bits<float>(canonical_nan_f32);
  } else {
    return from_bits<T>(canonical_nan_f16);
  }
}

/// An integer that orders as the numbers do, with -0 below +0.
template <class T>
constexpr auto order_of(T value) {
  using Signed = std::make_signed_t<BitsOf<T>>;
  const BitsOf<T> bits = bits_of(value);
  return static_cast<Signed>(is_negative(value) ? bits ^ static_cast<BitsOf<T>>(~sign_bit<T>) : bits);
}

/// How min and max treat NaN: as absent, or as the result (`.NaN`).
enum class Nan : std::uint8_t { ignored, propagated };

/// The smaller or larger operand, with -0 below +0.
template <bool Larger, Nan N, class T>
constexpr T extreme(T a, T b) {
  const bool beyond = Larger ? order_of(a) > order_of(b) : order_of(a) < order_of(b);
  if constexpr (N == Nan::propagated) {
    const T chosen = beyond ? a : b;
    return is_nan(a) | is_nan(b) ? nan_of(a, b) : chosen;
  } else {
    const T chosen = ((beyond & !is_nan(a)) | is_nan(b)) ? a : b;
    return (is_nan(a) & is_nan(b)) ? nan_of(a, b) : chosen;
  }
}

/// The same by comparisons of the host, of which equality alone does not tell -0 from +0.
template <bool Larger, Nan N, std::floating_point T>
constexpr T extreme(T a, T b) {
  const bool beyond = Larger ? a > b : a < b;
  const T chosen = (beyond | (b != b)) ? a : b;
  const BitsOf<T> zero = Larger ? bits_of(a) & bits_of(b) : bits_of(a) | bits_of(b);
  const T result = a == b ? from_bits<T>(zero) : chosen;
  const bool nan = N == Nan::propagated ? (a != a) | (b != b) : result != result;
  return nan ? nan_of(a, b) : result;
}

/// `min`: the smaller operand.
template <Nan N = Nan::ignored, class T>
constexpr T min(T a, T b) {
  return extreme<false, N>(a, b);
}

/// `max`: the larger operand.
template <Nan N = Nan::ignored, class T>
constexpr T max(T a, T b) {
  return extreme<true, N>(a, b);
}

/// The result of min or max of magnitudes with the product of the operands' signs, as `.xorsign.abs` wants
/// it.
template <class T>
constexpr T with_signs(T result, T a, T b) {
  const auto sign = static_cast<BitsOf<T>>((bits_of(a) ^ bits_of(b)) & sign_bit<T>);
  const auto signed_bits = static_cast<BitsOf<T>>(bits_of(result) | sign);
  return is_nan(result) ? result : from_bits<T>(signed_bits);
}

/// `min.xorsign.abs`.
template <Nan N = Nan::ignored, class T>
constexpr T min_xorsign_abs(T a, T b) {
  return with_signs(min<N>(abs(a), abs(b)), a, b);
}

/// `max.xorsign.abs`.
template <Nan N = Nan::ignored, class T>
constexpr T max_xorsign_abs(T a, T b) {
  return with_signs(max<N>(abs(a), abs(b)), a, b);
}

/// A comparison of `set` and `setp`; those that end in u also hold if an operand is NaN.
enum class Comparison : std::uint8_t { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };

/// Whether a comparison holds.
template <Comparison C, class T>
constexpr bool compare(T first, T second) {
  if constexpr (std::is_same_v<T, F16> || std::is_same_v<T, Bf16>) {
    return compare<C>(to_f32(first), to_f32(second));
  } else {
    const T a = first;
    const T b = second;
    const bool unordered = (a != a) | (b != b);
    switch (C) {
      case Comparison::eq:
        return a == b;
      case Comparison::ne:
        return (a < b) | (a > b);
      case Comparison::lt:
        return a < b;
      case Comparison::le:
        return a <= b;
      case Comparison::gt:
        return a > b;
      case Comparison::ge:
        return a >= b;
      case Comparison::equ:
        return (a == b) | unordered;
      case Comparison::neu:
        return a != b;
      case Comparison::ltu:
        return (a < b) | unordered;
      case Comparison::leu:
        return (a <= b) | unordered;
      case Comparison::gtu:
        return (a > b) | unordered;
      case Comparison::geu:
        return (a >= b) | unordered;
      case Comparison::num:
        return !unordered;
      case Comparison::nan:
        return unordered;
    }
    return false;
  }
}

}  // namespace manyscale::gpu
