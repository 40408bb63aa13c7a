// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic as PTX defines it, on single values. It wraps around, saturates where that is said, and
// is defined for all operands.
#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>

namespace manyscale::gpu::integers {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

template <class T>
inline constexpr unsigned kBits = 8 * sizeof(T);

// An unsigned integer in which arithmetic on T wraps: shorter ones would be promoted to int, which overflows.
template <class T>
using Word = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;

// The integer that holds any product of two T.
template <class T>
struct Twice;
template <>
struct Twice<std::uint16_t> {
  using type = std::uint32_t;
};
template <>
struct Twice<std::int16_t> {
  using type = std::int32_t;
};
template <>
struct Twice<std::uint32_t> {
  using type = std::uint64_t;
};
template <>
struct Twice<std::int32_t> {
  using type = std::int64_t;
};
template <>
struct Twice<std::uint64_t> {
  using type = Uint128;
};
template <>
struct Twice<std::int64_t> {
  using type = Int128;
};

template <class T>
typename Twice<T>::type product(T a, T b) {
  return static_cast<typename Twice<T>::type>(a) * b;
}

template <class T>
std::make_unsigned_t<T> low(T a, T b) {
  return static_cast<std::make_unsigned_t<T>>(Word<T>(a) * Word<T>(b));
}

template <class T>
std::make_unsigned_t<T> high(T a, T b) {
  return static_cast<std::make_unsigned_t<T>>(product(a, b) >> kBits<T>);
}

// a + b, or the nearest number that there is.
inline std::int32_t saturating_sum(std::int32_t a, std::int32_t b) {
  const std::uint32_t sum = std::uint32_t(a) + std::uint32_t(b);
  const bool overflows = static_cast<std::int32_t>((std::uint32_t(a) ^ sum) & (std::uint32_t(b) ^ sum)) < 0;
  return overflows ? (a >> 31) ^ std::numeric_limits<std::int32_t>::max() : static_cast<std::int32_t>(sum);
}

inline std::int32_t saturating_difference(std::int32_t a, std::int32_t b) {
  const std::uint32_t difference = std::uint32_t(a) - std::uint32_t(b);
  const bool overflows =
      static_cast<std::int32_t>((std::uint32_t(a) ^ std::uint32_t(b)) & (std::uint32_t(a) ^ difference)) < 0;
  return overflows ? (a >> 31) ^ std::numeric_limits<std::int32_t>::max()
                   : static_cast<std::int32_t>(difference);
}

// f of both halves of a packed pair of 16-bit integers.
template <class T, class F>
std::uint32_t by_halves(std::uint32_t a, std::uint32_t b, F f) {
  const auto result = [&](unsigned shift) {
    return std::uint32_t{
        static_cast<std::uint16_t>(f(static_cast<T>(a >> shift), static_cast<T>(b >> shift)))};
  };
  return result(0) | result(16) << 16;
}

// The product of the lower 24 bits.
template <class T>
std::uint64_t product24(T a, T b) {
  const auto extended = [](T x) { return static_cast<T>(static_cast<std::uint32_t>(x) << 8) >> 8; };
  return static_cast<std::uint64_t>(product<T>(extended(a), extended(b)));
}

// The index-th part of a word, extended by its sign if Part has one.
template <class Part>
std::int32_t part_of(std::uint32_t word, unsigned index) {
  using Extended = std::conditional_t<std::is_signed_v<Part>, std::int32_t, std::uint32_t>;
  const std::uint32_t at_top = word << (32 - kBits<Part> * (index + 1));
  return static_cast<std::int32_t>(static_cast<Extended>(at_top) >> (32 - kBits<Part>));
}

// Division by zero gives a quotient and a remainder of all ones, whatever the sign: that is what the code
// that ptxas makes of it gives. The ISA says that the result is unspecified.
template <class T>
struct Quotient {
  T quotient;
  T remainder;
};

// A double holds every operand of up to 32 bits, and the rounded quotient is a whole number only if the exact
// one is, so that cutting off its fraction is exact. Unlike integer division this can be done for many lanes
// at once. Choices are made by masks, because the compiler takes a division out of the vector code when it
// can be skipped.
inline Quotient<std::uint32_t> divide_magnitudes(std::uint32_t a, std::uint32_t b) {
  // A divisor of at least two keeps the quotient within the int32 that processors convert to.
  const std::uint32_t is_small = 0 - std::uint32_t{b < 2};
  const std::uint32_t divisor = (b & ~is_small) | (2 & is_small);
  const auto cut = static_cast<std::int32_t>(static_cast<double>(a) / static_cast<double>(divisor));
  const std::uint32_t quotient = (static_cast<std::uint32_t>(cut) & ~is_small) | (a & is_small);
  return {quotient, a - quotient * b};
}

inline Quotient<std::uint64_t> divide_magnitudes(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t divisor = b == 0 ? 1 : b;
  return {a / divisor, a % divisor};
}

template <class T>
Quotient<T> divide(T a, T b) {
  using U = Word<T>;
  const U a_sign = std::is_signed_v<T> ? 0 - U{a < 0} : 0;
  const U b_sign = std::is_signed_v<T> ? 0 - U{b < 0} : 0;
  const auto with_sign = [](U magnitude, U sign) { return (magnitude ^ sign) - sign; };
  const Quotient<U> magnitudes =
      divide_magnitudes(with_sign(static_cast<U>(a), a_sign), with_sign(static_cast<U>(b), b_sign));
  const U by_zero = 0 - U{b == 0};
  return {static_cast<T>(with_sign(magnitudes.quotient, a_sign ^ b_sign) | by_zero),
          static_cast<T>(with_sign(magnitudes.remainder, a_sign) | by_zero)};
}

// The larger or smaller of two; with `relu`, zero if that is negative.
template <class T, bool larger, bool relu>
T extreme(T a, T b) {
  const T result = (a < b) == larger ? b : a;
  return relu && result < T{0} ? T{0} : result;
}

}  // namespace manyscale::gpu::integers
