// SPDX-License-Identifier: Apache-2.0
// Conversions of the formats of 8 bits. PTX has them with .rn and .satfinite only.
#pragma once

#include <cstdint>

#include "gpu/exec/numerics/formats.hpp"
#include "gpu/exec/numerics/half.hpp"

namespace manyscale::gpu {

inline constexpr std::uint8_t nan_fp8 = 0x7f;

/// `cvt.rn.satfinite.e4m3x2.f32`, one half of it. Without satfinite what is too large becomes NaN: there is
/// no infinity.
template <Overflow O = Overflow::satfinite>
constexpr E4m3 to_e4m3(float value) {
  constexpr std::uint32_t largest = 0x7e;
  const std::uint32_t magnitude = magnitude_bits(value);
  const std::uint32_t sign = (bits_of(value) >> 24) & 0x80;
  const std::uint32_t finite = encode<Rounding::rn, 4, 3>(magnitude, false);
  const std::uint32_t beyond = O == Overflow::satfinite ? largest : nan_fp8;
  const std::uint32_t limited = finite <= largest ? finite : beyond;
  return {static_cast<std::uint8_t>(is_nan(value) ? nan_fp8 : limited | sign)};
}

/// `cvt.rn.satfinite.e5m2x2.f32`, one half of it.
template <Overflow O = Overflow::satfinite>
constexpr E5m2 to_e5m2(float value) {
  return {static_cast<std::uint8_t>(convert_down<Rounding::rn, O, 5, 2, nan_fp8>(value))};
}

/// `cvt.rn.satfinite.e4m3x2.f16x2`, one half of it.
template <Overflow O = Overflow::satfinite>
constexpr E4m3 to_e4m3(F16 value) {
  return to_e4m3<O>(to_f32(value));
}

/// `cvt.rn.satfinite.e5m2x2.f16x2`, one half of it.
template <Overflow O = Overflow::satfinite>
constexpr E5m2 to_e5m2(F16 value) {
  return to_e5m2<O>(to_f32(value));
}

/// The f32 with the value of an e4m3.
constexpr float to_f32(E4m3 value) {
  const std::uint32_t magnitude = value.bits & 0x7fu;
  const std::uint32_t sign = (value.bits & 0x80u) << 24;
  const std::uint32_t number = bits_of(decode<4, 3>(magnitude)) | sign;
  return from_bits<float>(magnitude == nan_fp8 ? canonical_nan_f32 : number);
}

/// `cvt.rn.f16x2.e4m3x2`, one half of it: exact.
constexpr F16 to_f16(E4m3 value) {
  return to_f16(to_f32(value));
}

/// `cvt.rn.f16x2.e5m2x2`, one half of it: exact.
constexpr F16 to_f16(E5m2 value) {
  const F16 wide{static_cast<std::uint16_t>(value.bits << 8)};
  return is_nan(wide) ? F16{canonical_nan_f16} : wide;
}

/// The f32 with the value of an e5m2.
constexpr float to_f32(E5m2 value) {
  return to_f32(to_f16(value));
}

/// `.relu`: nothing below zero; NaN stays.
constexpr E4m3 relu(E4m3 value) {
  const bool nan = (value.bits & 0x7f) == nan_fp8;
  return {nan ? nan_fp8 : value.bits < 0x80 ? value.bits : std::uint8_t{0}};
}

constexpr E5m2 relu(E5m2 value) {
  const bool nan = (value.bits & 0x7f) > 0x7c;
  return {nan ? nan_fp8 : value.bits < 0x80 ? value.bits : std::uint8_t{0}};
}

}  // namespace manyscale::gpu
