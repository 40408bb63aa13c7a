// SPDX-License-Identifier: Apache-2.0
// IEEE 754 arithmetic in integers, with any of RISC-V's rounding modes: for nearest with ties away, which
// hosts do not have, and for conversions that saturate. Numbers are bit patterns; NaN results are canonical.
#pragma once
#include <cstdint>

namespace manyscale::cpu::riscv::soft_float {

struct Format {
  unsigned fraction_bits, exponent_bits;
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr int largest_exponent() const { return (1 << exponent_bits) - 1; }
  constexpr std::uint64_t sign_bit() const { return std::uint64_t{1} << (fraction_bits + exponent_bits); }
  constexpr std::uint64_t quiet_bit() const { return std::uint64_t{1} << (fraction_bits - 1); }
  constexpr std::uint64_t infinity() const {
    return static_cast<std::uint64_t>(largest_exponent()) << fraction_bits;
  }
  constexpr std::uint64_t canonical_nan() const { return infinity() | quiet_bit(); }
  constexpr bool is_nan(std::uint64_t bits) const { return (bits & ~sign_bit()) > infinity(); }
  constexpr bool is_signaling(std::uint64_t bits) const { return is_nan(bits) && (bits & quiet_bit()) == 0; }
  constexpr bool is_infinite(std::uint64_t bits) const { return (bits & ~sign_bit()) == infinity(); }
  constexpr bool is_zero(std::uint64_t bits) const { return (bits & ~sign_bit()) == 0; }
};
inline constexpr Format single_precision{23, 8}, double_precision{52, 11};

// A result, with the flags (FloatFlag) that it raises.
struct Result {
  std::uint64_t bits = 0;
  std::uint8_t flags = 0;
};

Result add(Format format, std::uint64_t a, std::uint64_t b, std::uint8_t rounding);
Result multiply(Format format, std::uint64_t a, std::uint64_t b, std::uint8_t rounding);
Result divide(Format format, std::uint64_t a, std::uint64_t b, std::uint8_t rounding);
Result square_root(Format format, std::uint64_t a, std::uint8_t rounding);
// a * b + c with one rounding.
Result fused(Format format, std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint8_t rounding);
Result convert(Format from, Format to, std::uint64_t a, std::uint8_t rounding);
Result from_integer(Format format, bool negative, std::uint64_t magnitude, std::uint8_t rounding);
// To an integer of 32 or 64 bits; what is beyond its range becomes the nearest value in it, NaN the largest.
// A result of 32 bits is sign-extended.
Result to_integer(Format format, std::uint64_t a, std::uint8_t rounding, unsigned bits, bool is_signed);

}  // namespace manyscale::cpu::riscv::soft_float
