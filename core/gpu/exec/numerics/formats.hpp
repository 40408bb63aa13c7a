// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace manyscale::gpu {

/// A rounding modifier of PTX: to nearest even, towards zero, down, up, and to nearest with ties away from
/// zero.
enum class Rounding : std::uint8_t { rn, rz, rm, rp, rna };

/// What a conversion does beyond the largest finite value: what IEEE 754 says, or `.satfinite`.
enum class Overflow : std::uint8_t { ieee, satfinite };

/// A number of type `.f16`: 1 sign, 5 exponent and 10 mantissa bits.
struct F16 {
  std::uint16_t bits;
};

/// A number of type `.bf16`: the upper half of an f32.
struct Bf16 {
  std::uint16_t bits;
};

/// A number of type `.tf32`: an f32 whose 13 lowest mantissa bits are zero.
struct Tf32 {
  std::uint32_t bits;
};

/// A number of type `.e4m3`: no infinity, and NaN only where all bits but the sign are set.
struct E4m3 {
  std::uint8_t bits;
};

/// A number of type `.e5m2`: the upper half of an f16.
struct E5m2 {
  std::uint8_t bits;
};

// The ISA leaves the NaN of single and half precision unspecified, and hardware gives one value, which is
// used here.
inline constexpr std::uint32_t canonical_nan_f32 = 0x7fffffff;
inline constexpr std::uint16_t canonical_nan_f16 = 0x7fff;
inline constexpr std::uint16_t canonical_nan_bf16 = 0x7fff;
// f64 has payloads according to the ISA, without saying which of two: see `propagate`. This is the NaN of an
// invalid operation on numbers, the same as that of x86.
inline constexpr std::uint64_t default_nan_f64 = 0xfff8000000000000;
// The one of rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64, which the ISA gives.
inline constexpr std::uint64_t canonical_nan_f64_approximate = 0x7fffffff00000000;

constexpr std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

constexpr std::uint64_t bits_of(double value) {
  return std::bit_cast<std::uint64_t>(value);
}

constexpr std::uint16_t bits_of(F16 value) {
  return value.bits;
}

constexpr std::uint16_t bits_of(Bf16 value) {
  return value.bits;
}

/// The unsigned integer that holds the bits of a format.
template <class T>
using BitsOf = decltype(bits_of(T{}));

/// The number that has these bits.
template <class T>
constexpr T from_bits(BitsOf<T> bits) {
  return std::bit_cast<T>(bits);
}

/// The bits of plus infinity, which are also the mask of the exponent.
template <class T>
inline constexpr BitsOf<T> infinity_bits = 0;
template <>
inline constexpr std::uint32_t infinity_bits<float> = 0x7f800000;
template <>
inline constexpr std::uint64_t infinity_bits<double> = 0x7ff0000000000000;
template <>
inline constexpr std::uint16_t infinity_bits<F16> = 0x7c00;
template <>
inline constexpr std::uint16_t infinity_bits<Bf16> = 0x7f80;

/// The bits of one.
template <class T>
inline constexpr BitsOf<T> one_bits = 0;
template <>
inline constexpr std::uint32_t one_bits<float> = 0x3f800000;
template <>
inline constexpr std::uint64_t one_bits<double> = 0x3ff0000000000000;
template <>
inline constexpr std::uint16_t one_bits<F16> = 0x3c00;
template <>
inline constexpr std::uint16_t one_bits<Bf16> = 0x3f80;

/// The bit of the sign.
template <class T>
inline constexpr BitsOf<T> sign_bit = static_cast<BitsOf<T>>(BitsOf<T>{1} << (8 * sizeof(T) - 1));

/// One of two values that are both computed. A conditional expression would let the compiler compute only
/// one, by a branch that it then cannot turn back into vector code where floating-point arithmetic stands
/// behind it.
template <class Bits>
constexpr Bits select(bool condition, Bits yes, Bits no) {
  const auto mask = static_cast<Bits>(Bits{0} - static_cast<Bits>(condition));
  return static_cast<Bits>((yes & mask) | (no & static_cast<Bits>(~mask)));
}

/// The bits without the sign.
template <class T>
constexpr BitsOf<T> magnitude_bits(T value) {
  return static_cast<BitsOf<T>>(bits_of(value) & ~sign_bit<T>);
}

template <class T>
constexpr bool is_negative(T value) {
  return (bits_of(value) & sign_bit<T>) != 0;
}

template <class T>
constexpr bool is_nan(T value) {
  return magnitude_bits(value) > infinity_bits<T>;
}

/// A float without the payload of a NaN, so that results are the same on every host.
constexpr float canonical(float value) {
  return value != value ? from_bits<float>(canonical_nan_f32) : value;
}

/// A result of f64: if it is NaN, the first operand that is, made quiet. Which operand the hardware of the
/// host takes depends on the instructions the compiler chose.
template <class... More>
constexpr double propagate(double result, double first, More... more) {
  constexpr std::uint64_t quiet = 0x0008000000000000;
  if constexpr (sizeof...(More) == 0) {
    const std::uint64_t nan = first != first ? bits_of(first) | quiet : default_nan_f64;
    return result != result ? from_bits<double>(nan) : result;
  } else {
    const double rest = propagate(result, more...);
    return first != first ? from_bits<double>(bits_of(first) | quiet) : rest;
  }
}

}  // namespace manyscale::gpu
