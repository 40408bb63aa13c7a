// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "gpu/exec/numerics/formats.hpp"
#include "gpu/exec/numerics/soft_double.hpp"

namespace manyscale::gpu {

/// An angle as a number of right angles, of which the last two bits count, and a rest in [-π/4, π/4].
struct ReducedAngle {
  std::uint64_t quadrant;
  double rest;
};

/// An angle below 2^24, by taking off multiples of π/2. The first two parts of π/2 have 29 bits, so that
/// their multiples are exact.
inline ReducedAngle reduce_small_angle(double a) {
  constexpr double first = 0x1.921fb54p+0;
  constexpr double second = 0x1.10b4611p-30;
  constexpr double third = 0x1.4c4c6628b80dcp-59;
  constexpr double to_whole = 0x1.8p52;
  const double shifted = a * 0x1.45f306dc9c883p-1 + to_whole;
  const double count = shifted - to_whole;
  const double rest = ((a - count * first) - count * second) - count * third;
  return {bits_of(shifted), rest};
}

/// An angle from 2^24 on, from those bits of 2/π that matter to it (M. Payne, R. Hanek, 1983).
inline ReducedAngle reduce_large_angle(float a) {
  constexpr std::array<std::uint64_t, 5> two_over_pi{0, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0,
                                                     0xdb6295993c439041, 0xfe5163abdebbc561};
  const std::uint32_t magnitude = magnitude_bits(a);
  const std::uint32_t exponent = (magnitude >> 23) - 150;
  const std::uint32_t significand = (magnitude & 0x007fffff) | 0x00800000;
  // Bits of 2/π before this one give multiples of four right angles. The table begins with 64 zeros.
  const std::uint32_t position = 62 + exponent;
  const std::uint32_t word = position / 64;
  const std::uint32_t offset = position % 64;
  soft::Uint128 window = (soft::Uint128{two_over_pi[word]} << 64) | two_over_pi[word + 1];
  if (offset != 0) window = (window << offset) | (two_over_pi[word + 2] >> (64 - offset));
  // Right angles with 126 bits behind the point.
  const soft::Uint128 turned = window * significand;
  const auto quadrant = static_cast<std::uint64_t>((turned + (soft::Uint128{1} << 125)) >> 126) & 3;
  const soft::Uint128 difference = turned - (soft::Uint128{quadrant} << 126);
  const bool below = (difference >> 127) != 0;
  const soft::Uint128 size = below ? -difference : difference;
  const double rest = (static_cast<double>(static_cast<std::uint64_t>(size >> 64)) * 0x1p-62 +
                       static_cast<double>(static_cast<std::uint64_t>(size)) * 0x1p-126) *
                      0x1.921fb54442d18p+0;
  const bool negative = below != is_negative(a);
  return {is_negative(a) ? 0 - quadrant : quadrant, negative ? -rest : rest};
}

}  // namespace manyscale::gpu
