// SPDX-License-Identifier: Apache-2.0
// f32 and f64 arithmetic, correctly rounded in each direction. The host rounds to nearest; f32 is rounded
// otherwise by way of f64, and f64 by way of integers.
#pragma once

#include <cmath>

#include "gpu/exec/numerics/formats.hpp"
#include "gpu/exec/numerics/round_to_odd.hpp"
#include "gpu/exec/numerics/soft_double.hpp"

namespace manyscale::gpu {

/// `add.f32`: a + b.
template <Rounding R = Rounding::rn>
inline float add(float a, float b) {
  if constexpr (R == Rounding::rn) return canonical(a + b);
  return canonical(narrow<R>(odd_sum<R == Rounding::rm>(double{a}, double{b})));
}

/// `sub.f32`: a - b.
template <Rounding R = Rounding::rn>
inline float sub(float a, float b) {
  if constexpr (R == Rounding::rn) return canonical(a - b);
  return add<R>(a, -b);
}

/// `mul.f32`: a · b. Two significands of 24 bits multiply exactly in f64.
template <Rounding R = Rounding::rn>
inline float mul(float a, float b) {
  if constexpr (R == Rounding::rn) return canonical(a * b);
  return canonical(narrow<R>(double{a} * double{b}));
}

/// `fma.f32`: a · b + c in one rounding. Without an instruction for it on the host, the exact product in f64
/// and a sum rounded to odd give the same, and can be vectorised.
template <Rounding R = Rounding::rn>
inline float fma(float a, float b, float c) {
#if defined(__FMA__)
  if constexpr (R == Rounding::rn) return canonical(std::fma(a, b, c));
#endif
  return canonical(narrow<R>(odd_sum<R == Rounding::rm>(double{a} * double{b}, double{c})));
}

/// `div.f32`: a / b. A quotient that is no f32 differs from any f32 by 2^-48 of itself or more, since a and
/// the product of two f32 are whole multiples of that part of themselves. So it does not become one when it
/// is rounded to f64, and stays on its side.
template <Rounding R = Rounding::rn>
inline float div(float a, float b) {
  if constexpr (R == Rounding::rn) return canonical(a / b);
  return canonical(narrow<R>(double{a} / double{b}));
}

/// `rcp.f32`: 1 / a.
template <Rounding R = Rounding::rn>
inline float rcp(float a) {
  return div<R>(1.0f, a);
}

/// `sqrt.f32`: the square root of a, which is as far from an f32 as a quotient.
template <Rounding R = Rounding::rn>
inline float sqrt(float a) {
  if constexpr (R == Rounding::rn) return canonical(std::sqrt(a));
  return canonical(narrow<R>(std::sqrt(double{a})));
}

/// `add.f64`: a + b.
template <Rounding R = Rounding::rn>
inline double add(double a, double b) {
  if constexpr (R == Rounding::rn) return propagate(a + b, a, b);
  return propagate(soft::add<R>(a, b), a, b);
}

/// `sub.f64`: a - b.
template <Rounding R = Rounding::rn>
inline double sub(double a, double b) {
  if constexpr (R == Rounding::rn) return propagate(a - b, a, b);
  return propagate(soft::add<R>(a, -b), a, b);
}

/// `mul.f64`: a · b.
template <Rounding R = Rounding::rn>
inline double mul(double a, double b) {
  if constexpr (R == Rounding::rn) return propagate(a * b, a, b);
  return propagate(soft::mul<R>(a, b), a, b);
}

/// `fma.f64`: a · b + c in one rounding.
template <Rounding R = Rounding::rn>
inline double fma(double a, double b, double c) {
  if constexpr (R == Rounding::rn) return propagate(std::fma(a, b, c), a, b, c);
  return propagate(soft::fma<R>(a, b, c), a, b, c);
}

/// `div.f64`: a / b.
template <Rounding R = Rounding::rn>
inline double div(double a, double b) {
  if constexpr (R == Rounding::rn) return propagate(a / b, a, b);
  return propagate(soft::div<R>(a, b), a, b);
}

/// `rcp.f64`: 1 / a.
template <Rounding R = Rounding::rn>
inline double rcp(double a) {
  return div<R>(1.0, a);
}

/// `sqrt.f64`: the square root of a.
template <Rounding R = Rounding::rn>
inline double sqrt(double a) {
  if constexpr (R == Rounding::rn) return propagate(std::sqrt(a), a);
  return propagate(soft::sqrt<R>(a), a);
}

/// `cvt.f32.f64`: an f64 rounded to f32.
template <Rounding R = Rounding::rn>
inline float to_f32(double value) {
  return canonical(narrow<R>(value));
}

/// `cvt.f64.f32`, which is exact; a NaN keeps its payload.
inline double to_f64(float value) {
  return value;
}

}  // namespace manyscale::gpu
