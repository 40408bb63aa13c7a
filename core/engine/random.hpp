// SPDX-License-Identifier: Apache-2.0
// Random numbers by counting: the n-th draw of a stream is a function of (seed, stream, n) alone, so it does
// not depend on the order in which streams draw, nor on threads. Only basic arithmetic, so every host gives
// the same numbers.
#pragma once
#include <bit>
#include <cstdint>
#include <string_view>

namespace manyscale {

// A bijection of 64 bits that spreads every input bit over the output (the finaliser of SplitMix64).
constexpr std::uint64_t mix64(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

// A number for a name, the same on every host (FNV-1a).
constexpr std::uint64_t hash_name(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// The natural logarithm of a positive normal number, by basic arithmetic alone (relative error below 1e-13):
// a library's logarithm may differ in its last bit from host to host.
inline double portable_log(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023);
  double mantissa = std::bit_cast<double>((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);
  if (mantissa > 1.4142135623730951) {
    mantissa *= 0.5;
    exponent += 1.0;
  }
  // log m = 2 atanh(s) with s = (m - 1) / (m + 1), |s| < 0.172
  const double s = (mantissa - 1.0) / (mantissa + 1.0);
  const double q = s * s;
  // The series 1 + q/3 + q^2/5 + … + q^8/17, in pairs so that the processor can work on several at a time.
  const double q2 = q * q;
  const double q4 = q2 * q2;
  const double low = (1.0 + q * (1.0 / 3)) + q2 * (1.0 / 5 + q * (1.0 / 7));
  const double high = (1.0 / 9 + q * (1.0 / 11)) + q2 * (1.0 / 13 + q * (1.0 / 15));
  const double sum = low + q4 * (high + q4 * (1.0 / 17));
  return exponent * 0.6931471805599453 + 2.0 * s * sum;
}

class Random {
 public:
  Random() = default;
  Random(std::uint64_t seed, std::uint64_t stream)
      : key_(mix64(mix64(seed + 0x9e3779b97f4a7c15u) ^ stream)) {}

  std::uint64_t next() { return mix64(key_ + ++count_ * 0x9e3779b97f4a7c15u); }
  // Uniform in [0, bound), bound > 0.
  std::uint64_t below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
  }
  // Uniform in (0, 1].
  double uniform() { return static_cast<double>((next() >> 11) + 1) * 0x1p-53; }
  // Exponential with mean 1.
  double exponential() { return -portable_log(uniform()); }

 private:
  __extension__ using Wide = unsigned __int128;

  std::uint64_t key_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace manyscale
