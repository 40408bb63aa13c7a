// SPDX-License-Identifier: Apache-2.0
// Conversions between formats and the arithmetic of halves, against values built from their definition.
#include "gpu/exec/numerics/float_to_int.hpp"
#include "gpu/exec/numerics/flush.hpp"
#include "gpu/exec/numerics/fp8.hpp"
#include "gpu/exec/numerics/half.hpp"
#include "gpu/exec/numerics/half_arithmetic.hpp"
#include "gpu/exec/numerics/half_arrays.hpp"
#include "gpu/exec/numerics/ordering.hpp"
#include "gpu/exec/numerics/rounding.hpp"
#include "test_numerics.hpp"

using namespace manyscale::gpu;

namespace {

// ---- Conversions to small formats: each gap between neighbours, at its ends, its middle and beside it.

struct Format {
  int exponent_bits;
  int mantissa_bits;
  std::uint32_t largest;
};

double value_of(const Format& format, std::uint32_t code) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const int field = static_cast<int>(code >> format.mantissa_bits);
  const double fraction = code & ((1u << format.mantissa_bits) - 1);
  const double implicit = field == 0 ? 0 : std::ldexp(1.0, format.mantissa_bits);
  return std::ldexp(implicit + fraction, (field == 0 ? 1 : field) - bias - format.mantissa_bits);
}

std::uint32_t choose(Rounding direction, bool negative, int side, std::uint32_t low) {
  // The side is 0 for the lower neighbour itself, 1 to 3 for below, at and above the middle.
  if (side == 0) return low;
  switch (direction) {
    case Rounding::rn:
      return side == 2 ? low + (low & 1) : low + (side == 3);
    case Rounding::rna:
      return low + (side >= 2);
    case Rounding::rz:
      return low;
    case Rounding::rm:
      return low + negative;
    case Rounding::rp:
      return low + !negative;
  }
  return low;
}

template <class Source, class Convert>
void check_gaps(const Format& format, Rounding direction, std::uint32_t beyond, const char* what,
                Convert convert) {
  const std::uint32_t sign = 1u << (format.exponent_bits + format.mantissa_bits);
  long wrong = 0;
  for (std::uint32_t low = 0; low <= format.largest; ++low) {
    const double a = value_of(format, low);
    const double b = value_of(format, low + 1);
    const auto middle = static_cast<Source>(a + (b - a) / 2);
    const struct {
      Source value;
      int side;
    } points[] = {{static_cast<Source>(a), 0},
                  {std::nextafter(static_cast<Source>(a), std::numeric_limits<Source>::infinity()), 1},
                  {static_cast<Source>(a + (b - a) / 4), 1},
                  {std::nextafter(middle, Source{0}), 1},
                  {middle, 2},
                  {std::nextafter(middle, std::numeric_limits<Source>::infinity()), 3},
                  {std::nextafter(static_cast<Source>(b), Source{0}), 3}};
    for (const auto& point : points) {
      for (const bool negative : {false, true}) {
        const std::uint32_t code = choose(direction, negative, point.side, low);
        const std::uint32_t expected = (code > format.largest ? beyond : code) | (negative ? sign : 0);
        wrong += convert(negative ? -point.value : point.value) != expected;
      }
    }
  }
  check(wrong == 0, what, wrong, static_cast<int>(direction));
}

TEST(conversions_to_small_formats_round_as_defined) {
  constexpr Format f16{5, 10, 0x7bff}, bf16{8, 7, 0x7f7f}, tf32{8, 10, 0x3fbff}, e4m3{4, 3, 0x7e},
      e5m2{5, 2, 0x7b};
  for_directions([&]<Rounding R>() {
    constexpr auto sat = Overflow::satfinite;
    // Beyond the largest number rounding towards zero, or away from the infinity of that sign, never gets
    // there.
    check_gaps<float>(f16, R, 0x7c00, "f16.f32", [](float x) { return to_f16<R>(x).bits; });
    check_gaps<double>(f16, R, 0x7c00, "f16.f64", [](double x) { return to_f16<R>(x).bits; });
    check_gaps<float>(f16, R, 0x7bff, "f16.f32 satfinite", [](float x) { return to_f16<R, sat>(x).bits; });
    check_gaps<float>(bf16, R, 0x7f80, "bf16.f32", [](float x) { return to_bf16<R>(x).bits; });
    check_gaps<double>(bf16, R, 0x7f80, "bf16.f64", [](double x) { return to_bf16<R>(x).bits; });
    check_gaps<float>(bf16, R, 0x7f7f, "bf16.f32 satfinite", [](float x) { return to_bf16<R, sat>(x).bits; });
    check_gaps<float>(tf32, R, 0x3fc00, "tf32.f32", [](float x) { return to_tf32<R>(x).bits >> 13; });
  });
  check_gaps<float>(tf32, Rounding::rna, 0x3fc00, "tf32", [](float x) { return to_tf32<>(x).bits >> 13; });
  check_gaps<float>(tf32, Rounding::rna, 0x3fbff, "tf32 satfinite",
                    [](float x) { return to_tf32<Rounding::rna, Overflow::satfinite>(x).bits >> 13; });
  check_gaps<float>(e4m3, Rounding::rn, 0x7e, "e4m3.f32", [](float x) { return to_e4m3(x).bits; });
  check_gaps<float>(e4m3, Rounding::rn, 0x7f, "e4m3.f32 without satfinite",
                    [](float x) { return to_e4m3<Overflow::ieee>(x).bits; });
  check_gaps<float>(e5m2, Rounding::rn, 0x7b, "e5m2.f32", [](float x) { return to_e5m2(x).bits; });
  check_gaps<float>(e5m2, Rounding::rn, 0x7c, "e5m2.f32 without satfinite",
                    [](float x) { return to_e5m2<Overflow::ieee>(x).bits; });
}

template <class T>
void check_widening(const Format& format, const char* what) {
  const std::uint32_t sign = 1u << (format.exponent_bits + format.mantissa_bits);
  for (std::uint32_t code = 0; code < sign; ++code) {
    for (const std::uint32_t bits : {code, code | sign}) {
      const float got = to_f32(T{static_cast<decltype(T::bits)>(bits)});
      const double magnitude = value_of(format, code);
      const bool infinite = format.largest + 1 == ((1u << format.exponent_bits) - 1)
                                                      << format.mantissa_bits &&
                            code == format.largest + 1;
      if (code > format.largest && !infinite) {
        check(bits_of(got) == canonical_nan_f32, what, bits);
      } else {
        const double expected = infinite ? std::numeric_limits<double>::infinity() : magnitude;
        check(std::fabs(got) == expected && std::signbit(got) == (bits != code), what, bits);
      }
    }
  }
}

TEST(small_formats_widen_exactly) {
  check_widening<F16>({5, 10, 0x7bff}, "f32.f16");
  check_widening<Bf16>({8, 7, 0x7f7f}, "f32.bf16");
  check_widening<E4m3>({4, 3, 0x7e}, "f32.e4m3");
  check_widening<E5m2>({5, 2, 0x7b}, "f32.e5m2");
  for (std::uint32_t bits = 0; bits < 256; ++bits) {
    const auto code = static_cast<std::uint8_t>(bits);
    check(bits_of(to_f32(to_f16(E4m3{code}))) == bits_of(to_f32(E4m3{code})), "f16.e4m3", bits);
    check(bits_of(to_f32(to_f16(E5m2{code}))) == bits_of(to_f32(E5m2{code})), "f16.e5m2", bits);
    check((code & 0x7f) == 0x7f || to_e4m3(to_f16(E4m3{code})).bits == code, "e4m3.f16", bits);
    check((code & 0x7f) >= 0x7c || to_e5m2(to_f16(E5m2{code})).bits == code, "e5m2.f16", bits);
  }
}

TEST(special_values_convert_as_documented) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto payload = from_bits<float>(0xff800123);
  constexpr auto sat = Overflow::satfinite;
  constexpr auto rn = Rounding::rn;
  check(to_f16(payload).bits == 0x7fff && to_bf16(payload).bits == 0x7fff, "NaN to 16 bits");
  check(to_f16<Rounding::rz>(payload).bits == 0x7fff && to_bf16<rn, sat>(payload).bits == 0x7fff,
        "NaN stays NaN");
  check(to_tf32(payload).bits == 0x7fffffff, "NaN to tf32");
  check(to_e4m3(payload).bits == 0x7f && to_e5m2(payload).bits == 0x7f, "NaN to 8 bits");
  check(to_f16<Rounding::rz>(-infinity).bits == 0xfc00 && to_bf16<Rounding::rm>(infinity).bits == 0x7f80,
        "infinity");
  check(to_f16<rn, sat>(-infinity).bits == 0xfbff && to_bf16<rn, sat>(infinity).bits == 0x7f7f, "satfinite");
  check(to_tf32<Rounding::rna, sat>(infinity).bits == 0x7f7fe000, "satfinite tf32");
  check(to_e4m3(-infinity).bits == 0xfe && to_e5m2(infinity).bits == 0x7b, "satfinite 8 bits");
  check(relu(F16{0xbc00}).bits == 0 && relu(F16{0x8000}).bits == 0 && relu(F16{0xfe00}).bits == 0x7fff,
        "relu");
  check(relu(Bf16{0x3f80}).bits == 0x3f80 && relu(E4m3{0xff}).bits == 0x7f && relu(E5m2{0xc0}).bits == 0,
        "relu");
  check(flush(F16{0x83ff}).bits == 0x8000 && flush(F16{0x0400}).bits == 0x0400, "ftz f16");
  check(bits_of(flush(from_bits<float>(0x807fffff))) == 0x80000000 && flush(0x1p-126f) == 0x1p-126f,
        "ftz f32");
  check(saturate(payload) == 0 && !std::signbit(saturate(-0.0f)) && saturate(2.0f) == 1 &&
            saturate(0.5f) == 0.5f && saturate(-infinity) == 0 && saturate(infinity) == 1 &&
            saturate(2.0) == 1,
        "sat");
  check(saturate(F16{0x7e00}).bits == 0 && saturate(F16{0x4000}).bits == 0x3c00, "sat f16");
}

template <class T>
void convert_many() {
  std::vector<T> halves(65536);
  std::vector<float> wide(halves.size());
  for (std::uint32_t bits = 0; bits < halves.size(); ++bits)
    halves[bits].bits = static_cast<std::uint16_t>(bits);
  widen(halves.data(), wide.data(), 65536);
  for (std::uint32_t bits = 0; bits < halves.size(); ++bits) {
    check(bits_of(canonical(wide[bits])) == bits_of(to_f32(halves[bits])), "many to f32", bits);
  }
  for (int round = 0; round < 20; ++round) {
    // Of numbers next to those of 16 bits, and of any.
    std::vector<float> numbers = wide;
    for (float& number : numbers) {
      const auto random = static_cast<std::uint32_t>(random_bits());
      number = from_bits<float>(round % 2 == 0 ? random : bits_of(number) + random % 0x4000 - 0x2000);
    }
    narrow(numbers.data(), halves.data(), 65536);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const std::uint16_t expected =
          std::is_same_v<T, F16> ? to_f16(numbers[i]).bits : to_bf16(numbers[i]).bits;
      check(halves[i].bits == expected, "many to 16 bits", bits_of(numbers[i]));
    }
  }
}

// ---- Arithmetic of 16 bits against exact results in 113 bits.

// The sum of products and numbers that may lie hundreds of powers of two apart: only the side of the small
// one counts then, and it is brought near enough to be seen.
Quad sum_in_sight(double a, double b) {
  if (a == 0 || b == 0 || !std::isfinite(a + b)) return static_cast<Quad>(a) + static_cast<Quad>(b);
  const double large = std::fabs(a) > std::fabs(b) ? a : b;
  double small = std::fabs(a) > std::fabs(b) ? b : a;
  if (std::ilogb(large) - std::ilogb(small) > 60)
    small = std::copysign(std::ldexp(1.0, std::ilogb(large) - 60), small);
  return static_cast<Quad>(large) + static_cast<Quad>(small);
}

template <class T>
void check_half(T result, double host, Quad exact, const char* what, std::uint32_t x, std::uint32_t y) {
  if (std::isnan(host)) {
    check(result.bits == 0x7fff, what, x, y);
  } else if (std::isinf(host) || exact == 0) {
    check(to_f64(result) == host && std::signbit(to_f64(result)) == std::signbit(host), what, x, y);
  } else {
    check(to_f64(result) == nearest<T>(exact) && is_negative(result) == (exact < 0), what, x, y);
  }
}

template <class T>
void check_half_pair(T a, T b, T c) {
  const double x = to_f64(a), y = to_f64(b), z = to_f64(c);
  check_half(add(a, b), x + y, sum_in_sight(x, y), "half add", a.bits, b.bits);
  check_half(sub(a, b), x - y, sum_in_sight(x, -y), "half sub", a.bits, b.bits);
  check_half(mul(a, b), x * y, static_cast<Quad>(x) * static_cast<Quad>(y), "half mul", a.bits, b.bits);
  check_half(fma(a, b, c), x * y + z, sum_in_sight(x * y, z), "half fma", a.bits, b.bits);
}

template <class T>
void round_halves() {
  for (int i = 0; i < 400'000; ++i) {
    const std::uint64_t r = random_bits();
    auto bits = [&](int shift) { return T{static_cast<std::uint16_t>(r >> shift)}; };
    T c = bits(32);
    // Half of the time the addend is next to the product or far below it, where ties are.
    if (i % 4 == 0) c = neg(mul(bits(0), bits(16)));
    if (i % 4 == 1) c = T{static_cast<std::uint16_t>((r >> 32) & 0x80ff)};
    check_half_pair(bits(0), bits(16), c);
  }
  // All operands against a few, and short significands, whose products are often halfway between two numbers.
  for (std::uint32_t a = 0; a < 65536; a += 3) {
    for (const std::uint16_t b : {0x0001, 0x3c01, 0x7bff, 0x8000, 0x7f80}) {
      check_half_pair(T{static_cast<std::uint16_t>(a)}, T{b}, T{0x8001});
    }
  }
}

// ---- Integers.

[[gnu::noinline]] float narrow_on_host(double value) {
  volatile double in = value;
  volatile float out = static_cast<float>(in);
  return out;
}

// The x87 unit holds any integer of 64 bits and rounds once when it stores.
template <class T>
[[gnu::noinline]] T from_int_on_host(Int128 value) {
  volatile long double in = static_cast<long double>(value);
  volatile T out = static_cast<T>(in);
  return out;
}

template <class Int>
void check_from_int(Int value) {
  int direction = 0;
  for_directions([&]<Rounding R>() {
    std::fesetround(host_directions[direction++]);
    const float single = from_int_on_host<float>(value);
    const double twofold = from_int_on_host<double>(value);
    std::fesetround(FE_TONEAREST);
    check(bits_of(from_int<float, R>(value)) == bits_of(single), "f32 from integer", value,
          static_cast<int>(R));
    check(bits_of(from_int<double, R>(value)) == bits_of(twofold), "f64 from integer", value,
          static_cast<int>(R));
  });
  const auto exact = static_cast<Quad>(value);
  check(to_f64(from_int<F16>(value)) == nearest<F16>(exact), "f16 from integer", value);
  check(to_f64(from_int<Bf16>(value)) == nearest<Bf16>(exact), "bf16 from integer", value);
}

template <class Int, Rounding R, class F>
void check_to_int(F value) {
  const auto got = to_int<Int, R>(value);
  constexpr bool wide = sizeof(F) == 8 || sizeof(Int) == 8;
  if (std::isnan(value)) {
    check(got == (wide ? static_cast<Int>(std::uint64_t{1} << (8 * sizeof(Int) - 1)) : 0),
          "integer from NaN");
    return;
  }
  const F limited = value > F(0x1p70) ? F(0x1p70) : value < F(-0x1p70) ? F(-0x1p70) : value;
  auto floor = static_cast<Int128>(limited);
  if (static_cast<Quad>(floor) > static_cast<Quad>(limited)) --floor;
  const Quad rest = static_cast<Quad>(limited) - static_cast<Quad>(floor);
  bool up = false;
  if (R == Rounding::rn) up = rest > Quad{0.5} || (rest == Quad{0.5} && (floor & 1) != 0);
  if (R == Rounding::rz) up = rest != 0 && limited < 0;
  if (R == Rounding::rp) up = rest != 0;
  Int128 expected = floor + up;
  if (expected > std::numeric_limits<Int>::max()) expected = std::numeric_limits<Int>::max();
  if (expected < std::numeric_limits<Int>::min()) expected = std::numeric_limits<Int>::min();
  check(got == static_cast<Int>(expected), "integer from float", bits_of(value), got, sizeof(Int),
        static_cast<int>(R));
}

template <class F>
void check_to_ints(F value) {
  for_directions([&]<Rounding R>() {
    check_to_int<std::int8_t, R>(value);
    check_to_int<std::uint8_t, R>(value);
    check_to_int<std::int16_t, R>(value);
    check_to_int<std::uint16_t, R>(value);
    check_to_int<std::int32_t, R>(value);
    check_to_int<std::uint32_t, R>(value);
    check_to_int<std::int64_t, R>(value);
    check_to_int<std::uint64_t, R>(value);
    const F whole_value = to_integral<R>(value);
    check(std::isnan(value) || std::fabs(value) > F(1e9) ||
              (whole_value == static_cast<F>(to_int<std::int64_t, R>(value)) &&
               std::signbit(whole_value) == std::signbit(value)),
          "whole numbers", bits_of(value));
  });
}

TEST(integers_convert_exactly) {
  for (int width = 0; width <= 64; ++width) {
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t r = random_bits();
      const std::uint64_t limited = width == 64 ? r : r & ((std::uint64_t{1} << width) - 1);
      // Also numbers next to a power of two.
      const std::uint64_t value =
          i < 20 ? (width < 64 ? std::uint64_t{1} << width : 0) + static_cast<std::uint64_t>(i) - 10
                 : limited;
      check_from_int(value);
      check_from_int(static_cast<std::int64_t>(value));
      check_from_int(static_cast<std::uint32_t>(value));
      check_from_int(static_cast<std::int32_t>(value));
      check_from_int(static_cast<std::int16_t>(value));
      check_from_int(static_cast<std::uint8_t>(value));
      check_to_ints(static_cast<float>(static_cast<std::int64_t>(value)) / 4);
      check_to_ints(static_cast<double>(value) / 8);
      check_to_ints(std::nextafter(static_cast<float>(value), 0.0f));
      check_to_ints(std::nextafter(-static_cast<double>(value), 0.0));
      check_to_ints(from_bits<float>(static_cast<std::uint32_t>(r)));
      check_to_ints(from_bits<double>(r));
    }
  }
  for (const float value : operands<float>()) check_to_ints(value);
  for (const double value : operands<double>()) check_to_ints(value);
  check(to_int<std::int32_t, Rounding::rz>(F16{0xfc00}) == std::numeric_limits<std::int32_t>::min(),
        "s32.f16");
  check(to_integral<Rounding::rp>(F16{0xb800}).bits == 0x8000, "-1/2 rounded up is -0");
}

TEST(narrowing_rounds_like_the_host) {
  for (int i = 0; i < 300'000; ++i) {
    const std::uint64_t r = random_bits();
    const float near = from_bits<float>(static_cast<std::uint32_t>(r));
    const double value = i % 2 == 0 ? from_bits<double>(bits_of(double{near}) + (r >> 60) - 8)
                                    : std::ldexp(static_cast<double>(r), static_cast<int>(r % 300) - 220);
    if (std::isnan(value)) continue;
    int direction = 0;
    for_directions([&]<Rounding R>() {
      std::fesetround(host_directions[direction++]);
      const float expected = narrow_on_host(value);
      std::fesetround(FE_TONEAREST);
      check(bits_of(to_f32<R>(value)) == bits_of(expected), "f32.f64", bits_of(value), static_cast<int>(R));
    });
  }
}

TEST(many_convert_like_one) {
  convert_many<F16>();
  convert_many<Bf16>();
}

TEST(halves_are_rounded_once) {
  round_halves<F16>();
  round_halves<Bf16>();
}

}  // namespace
