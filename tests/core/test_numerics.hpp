// SPDX-License-Identifier: Apache-2.0
// What the tests of numerics share: checks, random bits, operands where roundings part, and exact results.
#pragma once
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <type_traits>
#include <vector>

#include "gpu/exec/numerics/formats.hpp"
#include "test_checks.hpp"

namespace manyscale::gpu {

__extension__ using Quad = __float128;
__extension__ using Int128 = __int128;

using manyscale::test::failed;
using manyscale::test::passed;

template <class... Operands>
void check(bool condition, const char* what, Operands... operands) {
  ++(condition ? passed : failed);
  if (condition || failed > 20) return;
  std::fprintf(stderr, "failed: %s", what);
  (std::fprintf(stderr, " %#llx", static_cast<unsigned long long>(operands)), ...);
  std::fprintf(stderr, "\n");
}

inline std::uint64_t random_bits() {
  static std::uint64_t state = 0;
  std::uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

inline constexpr int host_directions[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

template <class F>
void for_directions(F f) {
  f.template operator()<Rounding::rn>();
  f.template operator()<Rounding::rz>();
  f.template operator()<Rounding::rm>();
  f.template operator()<Rounding::rp>();
}

// A value rounded to nearest even with this precision and smallest exponent; nothing but powers of two and a
// cast.
inline double round_exact(Quad exact, int precision, int least, double largest) {
  if (exact == 0) return 0;
  const Quad size = exact < 0 ? -exact : exact;
  int exponent = std::ilogb(static_cast<double>(size));
  if (size < static_cast<Quad>(std::ldexp(1.0, exponent))) --exponent;
  const int unit = (exponent > least ? exponent : least) - precision + 1;
  const Quad scaled = size / static_cast<Quad>(std::ldexp(1.0, unit));
  const auto below = static_cast<Int128>(scaled);
  const Quad rest = scaled - static_cast<Quad>(below);
  const bool up = rest > Quad{0.5} || (rest == Quad{0.5} && (below & 1) != 0);
  const double rounded = std::ldexp(static_cast<double>(below + up), unit);
  const double limited = rounded > largest ? std::numeric_limits<double>::infinity() : rounded;
  return exact < 0 ? -limited : limited;
}

template <class T>
double nearest(Quad exact) {
  if constexpr (std::is_same_v<T, F16>) return round_exact(exact, 11, -14, 65504);
  return round_exact(exact, 8, -126, 0x1.fep127);
}

// Numbers at the ends of binades and of the range.
template <class T>
std::vector<T> operands() {
  using Bits = BitsOf<T>;
  const int mantissa = sizeof(T) == 4 ? 23 : 52;
  std::vector<T> pool;
  for (const Bits exponent :
       {Bits{0}, Bits{1}, Bits{2}, one_bits<T> >> mantissa, (one_bits<T> >> mantissa) + 1,
        (infinity_bits<T> >> mantissa) - 1, infinity_bits<T> >> mantissa}) {
    const Bits ones = (Bits{1} << mantissa) - 1;
    for (const Bits fraction : {Bits{0}, Bits{1}, Bits{3}, ones / 2, ones / 2 + 1, ones - 1, ones}) {
      const Bits bits = (exponent << mantissa) | fraction;
      pool.push_back(from_bits<T>(bits));
      pool.push_back(from_bits<T>(bits | sign_bit<T>));
    }
  }
  return pool;
}

}  // namespace manyscale::gpu
