// SPDX-License-Identifier: Apache-2.0
// Simulated time: a whole number of femtoseconds, so that clocks such as 1312 MHz do not drift against each
// other.
#pragma once
#include <cstdint>
#include <limits>

namespace manyscale {

using Time =
    std::int64_t;  // femtoseconds since the start of the simulation; the range is 9,223 s (2.5 hours)
using Cycle = std::int64_t;  // edges of some clock since the start of the simulation

inline constexpr Time never = std::numeric_limits<Time>::max();
inline constexpr Time last_moment = never - 1;  // what would come later cannot be simulated
inline constexpr Time picosecond = 1'000;
inline constexpr Time nanosecond = 1'000'000;
inline constexpr Time microsecond = 1'000'000'000;
inline constexpr Time second = 1'000'000'000'000'000;

// The sum of a time and a non-negative delay, or `never` where it would not fit.
constexpr Time add_saturating(Time time, Time delay) {
  return time > never - delay ? never : time + delay;
}

// The moment that is so much later, or the last one.
constexpr Time moment_after(Time time, Time delay) {
  return time > last_moment - delay ? last_moment : time + delay;
}

// The period of a clock, rounded to whole femtoseconds (less than one part in a million below 2 GHz).
constexpr Time period_of(std::int64_t hertz) {
  return (second + hertz / 2) / hertz;
}

}  // namespace manyscale
