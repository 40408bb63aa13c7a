// SPDX-License-Identifier: Apache-2.0
#include "cpu/riscv/soft_float.hpp"

#include <bit>
#include <utility>

#include "cpu/riscv/instruction.hpp"

namespace manyscale::cpu::riscv::soft_float {

namespace {

using u64 = std::uint64_t;
__extension__ using u128 = unsigned __int128;

// A finite number that is not 0: significand * 2^exponent. The lowest bit also stands for anything below it
// that was lost (so it must lie below what rounding keeps).
struct Number {
  bool negative = false;
  int exponent = 0;
  u128 significand = 0;
};

int width(u128 value) {
  const auto high = static_cast<u64>(value >> 64);
  return high != 0 ? 64 + std::bit_width(high) : std::bit_width(static_cast<u64>(value));
}

Number unpack(Format format, u64 bits) {
  const bool negative = (bits & format.sign_bit()) != 0;
  const int exponent = static_cast<int>((bits & ~format.sign_bit()) >> format.fraction_bits);
  const u64 fraction = bits & ((u64{1} << format.fraction_bits) - 1);
  const u64 hidden = exponent == 0 ? 0 : u64{1} << format.fraction_bits;
  return {negative, (exponent == 0 ? 1 : exponent) - format.bias() - static_cast<int>(format.fraction_bits),
          hidden | fraction};
}

// Moves the highest bit to bit 125; nothing is lost, since no operand is longer.
void normalise(Number& number) {
  const int shift = 126 - width(number.significand);
  number.significand <<= shift;
  number.exponent -= shift;
}

u128 shift_right_sticky(u128 value, int count) {
  if (count <= 0) return value;
  if (count > 127) return value != 0;
  return value >> count | ((value & ((u128{1} << count) - 1)) != 0);
}

// Whether what is cut off below the kept bits makes the magnitude one larger. `rest` is compared with `half`.
bool rounds_up(std::uint8_t rounding, bool negative, bool odd, u128 rest, u128 half) {
  switch (rounding) {
    case Rounding::nearest_even:
      return rest > half || (rest == half && odd);
    case Rounding::nearest_away:
      return rest >= half;
    case Rounding::down:
      return negative && rest != 0;
    case Rounding::up:
      return !negative && rest != 0;
    default:
      return false;
  }
}

// Cuts `dropped` low bits off, rounding; returns whether anything was lost.
u128 round_off(u128 value, int dropped, bool negative, std::uint8_t rounding, bool& lost) {
  if (dropped <= 0) {
    lost = false;
    return value << -dropped;
  }
  if (dropped > 126) {  // all of it is far below one half
    value = value != 0;
    dropped = 2;
  }
  const u128 rest = value & ((u128{1} << dropped) - 1);
  u128 kept = value >> dropped;
  lost = rest != 0;
  if (rounds_up(rounding, negative, (kept & 1) != 0, rest, u128{1} << (dropped - 1))) ++kept;
  return kept;
}

Result pack(Format format, Number number, std::uint8_t rounding) {
  const u64 sign = number.negative ? format.sign_bit() : 0;
  const int precision = static_cast<int>(format.fraction_bits) + 1;
  const int least = 1 - format.bias() - static_cast<int>(format.fraction_bits);  // exponent of the last bit
  int dropped = width(number.significand) - precision;
  bool lost = false;
  // Tiny is what would be below the smallest normal number if exponents had no end.
  u128 kept = round_off(number.significand, dropped, number.negative, rounding, lost);
  int exponent = number.exponent + dropped;
  const bool tiny = exponent + width(kept) - precision < least;
  if (exponent < least) {
    dropped = least - number.exponent;
    kept = round_off(number.significand, dropped, number.negative, rounding, lost);
    exponent = least;
  }
  if (width(kept) > precision) {
    kept >>= 1;  // it was all ones before
    ++exponent;
  }
  Result result;
  if (lost) result.flags = FloatFlag::inexact | (tiny ? FloatFlag::underflow : 0);
  const bool normal = width(kept) == precision;
  const int biased = normal ? exponent - least + 1 : 0;
  if (biased >= format.largest_exponent()) {
    result.flags = FloatFlag::overflow | FloatFlag::inexact;
    const bool stays = rounding == Rounding::to_zero || (rounding == Rounding::down && !number.negative) ||
                       (rounding == Rounding::up && number.negative);
    result.bits = sign | (format.infinity() - (stays ? 1 : 0));
    return result;
  }
  const u64 fraction = static_cast<u64>(kept) & ((u64{1} << format.fraction_bits) - 1);
  result.bits = sign | static_cast<u64>(biased) << format.fraction_bits | fraction;
  return result;
}

Result invalid(Format format) {
  return {format.canonical_nan(), FloatFlag::invalid};
}

template <class... Bits>
Result not_a_number(Format format, Bits... operands) {
  const bool signaling = (format.is_signaling(operands) || ...);
  return {format.canonical_nan(), signaling ? FloatFlag::invalid : std::uint8_t{0}};
}

// The sign of an exact zero that is the sum of numbers that are not both zeros of one sign.
u64 zero_sum(Format format, std::uint8_t rounding) {
  return rounding == Rounding::down ? format.sign_bit() : 0;
}

Result add_numbers(Format format, Number a, Number b, std::uint8_t rounding) {
  normalise(a);
  normalise(b);
  if (a.exponent < b.exponent) std::swap(a, b);
  b.significand = shift_right_sticky(b.significand, a.exponent - b.exponent);
  if (a.negative == b.negative) {
    a.significand += b.significand;
  } else if (a.significand >= b.significand) {
    a.significand -= b.significand;
  } else {
    a.significand = b.significand - a.significand;
    a.negative = b.negative;
  }
  if (a.significand == 0) return {zero_sum(format, rounding), 0};
  return pack(format, a, rounding);
}

}  // namespace

Result fused(Format format, u64 a, u64 b, u64 c, std::uint8_t rounding) {
  const bool no_product =
      (format.is_infinite(a) && format.is_zero(b)) || (format.is_zero(a) && format.is_infinite(b));
  if (no_product) return invalid(format);  // also where c is a quiet NaN
  if (format.is_nan(a) || format.is_nan(b) || format.is_nan(c)) return not_a_number(format, a, b, c);
  const u64 sign = (a ^ b) & format.sign_bit();
  if (format.is_infinite(a) || format.is_infinite(b)) {
    const bool cancels = format.is_infinite(c) && (c & format.sign_bit()) != sign;
    return cancels ? invalid(format) : Result{sign | format.infinity(), 0};
  }
  if (format.is_infinite(c)) return {c, 0};
  if (format.is_zero(a) || format.is_zero(b)) {
    if (!format.is_zero(c)) return {c, 0};
    return {sign == (c & format.sign_bit()) ? c : zero_sum(format, rounding), 0};
  }
  const Number first = unpack(format, a), second = unpack(format, b);
  const Number product{sign != 0, first.exponent + second.exponent, first.significand * second.significand};
  if (format.is_zero(c)) return pack(format, product, rounding);
  return add_numbers(format, product, unpack(format, c), rounding);
}

Result add(Format format, u64 a, u64 b, std::uint8_t rounding) {
  const u64 one = static_cast<u64>(format.bias()) << format.fraction_bits;
  return fused(format, a, one, b, rounding);
}

Result multiply(Format format, u64 a, u64 b, std::uint8_t rounding) {
  // Adding a zero of the product's sign changes nothing, not even a zero's sign.
  return fused(format, a, b, (a ^ b) & format.sign_bit(), rounding);
}

Result divide(Format format, u64 a, u64 b, std::uint8_t rounding) {
  if (format.is_nan(a) || format.is_nan(b)) return not_a_number(format, a, b);
  const u64 sign = (a ^ b) & format.sign_bit();
  if (format.is_infinite(a)) {
    return format.is_infinite(b) ? invalid(format) : Result{sign | format.infinity(), 0};
  }
  if (format.is_infinite(b)) return {sign, 0};
  if (format.is_zero(b)) {
    if (format.is_zero(a)) return invalid(format);
    return {sign | format.infinity(), FloatFlag::divide_by_zero};
  }
  if (format.is_zero(a)) return {sign, 0};
  Number dividend = unpack(format, a), divisor = unpack(format, b);
  normalise(dividend);
  divisor.exponent -= 64 - width(divisor.significand);
  divisor.significand <<= 64 - width(divisor.significand);
  Number quotient{sign != 0, dividend.exponent - divisor.exponent,
                  dividend.significand / divisor.significand};
  // At least 61 bits; one more shows whether there is a rest.
  quotient.significand = quotient.significand << 1 | (dividend.significand % divisor.significand != 0);
  --quotient.exponent;
  return pack(format, quotient, rounding);
}

Result square_root(Format format, u64 a, std::uint8_t rounding) {
  if (format.is_nan(a)) return not_a_number(format, a);
  if (format.is_zero(a)) return {a, 0};
  if ((a & format.sign_bit()) != 0) return invalid(format);
  if (format.is_infinite(a)) return {a, 0};
  Number number = unpack(format, a);
  normalise(number);
  if (number.exponent % 2 != 0) {
    number.significand >>= 1;  // its low bits are zero
    ++number.exponent;
  }
  u128 root = 0, rest = number.significand;
  for (u128 bit = u128{1} << 124; bit != 0; bit >>= 2) {
    if (rest >= root + bit) {
      rest -= root + bit;
      root = (root >> 1) + bit;
    } else {
      root >>= 1;
    }
  }
  return pack(format, {false, number.exponent / 2 - 1, root << 1 | (rest != 0)}, rounding);
}

Result convert(Format from, Format to, u64 a, std::uint8_t rounding) {
  const u64 sign = (a & from.sign_bit()) != 0 ? to.sign_bit() : 0;
  if (from.is_nan(a))
    return {to.canonical_nan(), from.is_signaling(a) ? FloatFlag::invalid : std::uint8_t{0}};
  if (from.is_infinite(a)) return {sign | to.infinity(), 0};
  if (from.is_zero(a)) return {sign, 0};
  return pack(to, unpack(from, a), rounding);
}

Result from_integer(Format format, bool negative, u64 magnitude, std::uint8_t rounding) {
  if (magnitude == 0) return {};
  return pack(format, {negative, 0, magnitude}, rounding);
}

Result to_integer(Format format, u64 a, std::uint8_t rounding, unsigned bits, bool is_signed) {
  const u64 largest = ~u64{0} >> (64 - bits) >> (is_signed ? 1 : 0);
  const u64 smallest = is_signed ? ~largest : 0;
  auto shown = [bits](u64 value) {
    return bits == 32 ? static_cast<u64>(static_cast<std::int64_t>(static_cast<std::int32_t>(value))) : value;
  };
  const bool negative = (a & format.sign_bit()) != 0;
  if (format.is_nan(a)) return {shown(largest), FloatFlag::invalid};
  const Result saturated{shown(negative ? smallest : largest), FloatFlag::invalid};
  if (format.is_infinite(a)) return saturated;
  if (format.is_zero(a)) return {};
  const Number number = unpack(format, a);
  if (number.exponent + width(number.significand) > 65) return saturated;
  bool lost = false;
  const u128 magnitude = round_off(number.significand, -number.exponent, negative, rounding, lost);
  const u128 most = negative ? (is_signed ? u128{largest} + 1 : 0) : u128{largest};
  if (magnitude > most) return saturated;
  const u64 value = negative ? u64{0} - static_cast<u64>(magnitude) : static_cast<u64>(magnitude);
  return {shown(value), lost ? FloatFlag::inexact : std::uint8_t{0}};
}

}  // namespace manyscale::cpu::riscv::soft_float
