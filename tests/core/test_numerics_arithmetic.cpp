// SPDX-License-Identifier: Apache-2.0
// f32 and f64 arithmetic against the host in the same rounding mode, and the order of numbers.
#include "gpu/exec/numerics/half.hpp"
#include "gpu/exec/numerics/ordering.hpp"
#include "gpu/exec/numerics/rounding.hpp"
#include "test_numerics.hpp"

using namespace manyscale::gpu;

namespace {

template <class T>
T random_operand(T near) {
  using Bits = BitsOf<T>;
  const std::uint64_t r = random_bits();
  const auto any = static_cast<Bits>(r);
  switch ((r >> 60) & 7) {
    case 0:
      return from_bits<T>(bits_of(near) + static_cast<Bits>(static_cast<std::int64_t>(r << 40) >> 56));
    case 1:
      return neg(from_bits<T>(bits_of(near) ^ (any & 0xf)));
    case 2:
      return from_bits<T>(any & ~infinity_bits<T>);
    // Short significands, whose products and quotients are exact.
    case 3:
      return from_bits<T>(any & static_cast<Bits>(~Bits{0} << (sizeof(T) == 4 ? 16 : 40)));
    case 4:
      return from_bits<T>((one_bits<T> + (any & (one_bits<T> >> 4))) | (any & sign_bit<T>));
    default:
      return from_bits<T>(any);
  }
}

enum class Operation { add, sub, mul, fma, div, rcp, sqrt };

template <class T>
[[gnu::noinline]] T on_host(Operation operation, T first, T second, T third) {
  volatile T a = first, b = second, c = third, result = 0;
  switch (operation) {
    case Operation::add:
      result = a + b;
      break;
    case Operation::sub:
      result = a - b;
      break;
    case Operation::mul:
      result = a * b;
      break;
    case Operation::fma:
      result = std::fma(a, b, c);
      break;
    case Operation::div:
      result = a / b;
      break;
    case Operation::rcp:
      result = T{1} / a;
      break;
    case Operation::sqrt:
      result = std::sqrt(a);
      break;
  }
  return result;
}

template <Rounding R, class T>
T ours(Operation operation, T a, T b, T c) {
  switch (operation) {
    case Operation::add:
      return add<R>(a, b);
    case Operation::sub:
      return sub<R>(a, b);
    case Operation::mul:
      return mul<R>(a, b);
    case Operation::fma:
      return fma<R>(a, b, c);
    case Operation::div:
      return div<R>(a, b);
    case Operation::rcp:
      return rcp<R>(a);
    case Operation::sqrt:
      return sqrt<R>(a);
  }
  return 0;
}

template <class T>
bool same(T got, T expected) {
  if (!std::isnan(expected)) return bits_of(got) == bits_of(expected);
  return sizeof(T) == 4 ? bits_of(got) == static_cast<BitsOf<T>>(canonical_nan_f32) : std::isnan(got);
}

template <class T>
void round_like_the_host(int count) {
  const std::vector<T> pool = operands<T>();
  std::vector<T> a, b, c, expected;
  for (const T x : pool) {
    for (const T y : pool) {
      a.push_back(x);
      b.push_back(y);
      c.push_back(pool[random_bits() % pool.size()]);
    }
  }
  for (int i = 0; i < count; ++i) {
    a.push_back(random_operand<T>(T{1}));
    b.push_back(random_operand<T>(a.back()));
    c.push_back(random_operand<T>(i % 2 == 0 ? -(a.back() * b.back()) : a.back()));
  }
  expected.resize(a.size());
  for (const Operation operation : {Operation::add, Operation::sub, Operation::mul, Operation::fma,
                                    Operation::div, Operation::rcp, Operation::sqrt}) {
    int direction = 0;
    for_directions([&]<Rounding R>() {
      std::fesetround(host_directions[direction++]);
      for (std::size_t i = 0; i < a.size(); ++i) expected[i] = on_host(operation, a[i], b[i], c[i]);
      std::fesetround(FE_TONEAREST);
      for (std::size_t i = 0; i < a.size(); ++i) {
        const T got = ours<R>(operation, a[i], b[i], c[i]);
        check(same(got, expected[i]), sizeof(T) == 4 ? "f32" : "f64", static_cast<int>(operation),
              static_cast<int>(R), bits_of(a[i]), bits_of(b[i]), bits_of(c[i]), bits_of(got),
              bits_of(expected[i]));
      }
    });
  }
}

TEST(nan_is_the_same_everywhere) {
  const double first = from_bits<double>(0x7ff0000000000123), second = from_bits<double>(0xfff8000000000456);
  const double infinity = std::numeric_limits<double>::infinity();
  check(bits_of(add(first, second)) == 0x7ff8000000000123, "the first NaN of an f64 sum, made quiet");
  check(bits_of(sub(1.0, second)) == 0xfff8000000000456, "the second NaN of an f64 difference");
  check(bits_of(fma(1.0, second, first)) == 0xfff8000000000456, "the first NaN of an f64 fma");
  check(bits_of(fma<Rounding::rz>(1.0, 2.0, first)) == 0x7ff8000000000123, "the addend's NaN");
  check(bits_of(add(infinity, -infinity)) == default_nan_f64, "an invalid f64 operation");
  check(bits_of(sqrt<Rounding::rp>(-1.0)) == default_nan_f64, "an invalid f64 root");
  check(bits_of(to_f32(first)) == canonical_nan_f32, "f32.f64 of NaN");
}

// ---- Order.

template <class T>
void check_order(T a, T b, double x, double y) {
  const bool a_nan = std::isnan(x), b_nan = std::isnan(y);
  const bool less = x < y || (x == 0 && y == 0 && std::signbit(x) && !std::signbit(y));
  const bool equal = x == y && std::signbit(x) == std::signbit(y);
  auto is = [](T got, T expected) { return bits_of(got) == bits_of(expected); };
  if (a_nan && b_nan) {
    check(is_nan(min(a, b)) && is_nan(max(a, b)), "min and max of two NaN");
  } else if (a_nan || b_nan) {
    check(is(min(a, b), a_nan ? b : a) && is(max(a, b), a_nan ? b : a), "min and max leave out a NaN");
  } else {
    check(is(min(a, b), less || equal ? a : b) && is(max(a, b), less ? b : a), "min and max", bits_of(a),
          bits_of(b));
    check(is(abs(min_xorsign_abs(a, b)), min(abs(a), abs(b))), "xorsign keeps the magnitude");
    check(is_negative(max_xorsign_abs(a, b)) == (is_negative(a) != is_negative(b)),
          "xorsign multiplies the signs");
  }
  check(is_nan(min<Nan::propagated>(a, b)) == (a_nan || b_nan), "min.NaN");
  check(is_nan(max<Nan::propagated>(a, b)) == (a_nan || b_nan), "max.NaN");
  const bool unordered = a_nan || b_nan;
  check(compare<Comparison::lt>(a, b) == (x < y) && compare<Comparison::geu>(a, b) == !(x < y), "lt and geu");
  check(compare<Comparison::gt>(a, b) == (x > y) && compare<Comparison::leu>(a, b) == !(x > y), "gt and leu");
  check(compare<Comparison::le>(a, b) == (x <= y) && compare<Comparison::gtu>(a, b) == !(x <= y),
        "le and gtu");
  check(compare<Comparison::ge>(a, b) == (x >= y) && compare<Comparison::ltu>(a, b) == !(x >= y),
        "ge and ltu");
  check(compare<Comparison::eq>(a, b) == (x == y) && compare<Comparison::neu>(a, b) == (x != y),
        "eq and neu");
  check(compare<Comparison::ne>(a, b) == (!unordered && x != y), "ne");
  check(compare<Comparison::equ>(a, b) == (unordered || x == y), "equ");
  check(compare<Comparison::num>(a, b) == !unordered && compare<Comparison::nan>(a, b) == unordered,
        "num and nan");
}

TEST(order_is_that_of_the_numbers) {
  for (const float a : operands<float>()) {
    for (const float b : operands<float>()) check_order(a, b, a, b);
  }
  for (const double a : operands<double>()) {
    for (const double b : operands<double>()) check_order(a, b, a, b);
  }
  for (std::uint32_t a = 0; a < 65536; a += 251) {
    for (std::uint32_t b = 0; b < 65536; b += 253) {
      const auto x = static_cast<std::uint16_t>(a), y = static_cast<std::uint16_t>(b);
      check_order(F16{x}, F16{y}, to_f64(F16{x}), to_f64(F16{y}));
      check_order(Bf16{x}, Bf16{y}, to_f64(Bf16{x}), to_f64(Bf16{y}));
    }
  }
  const auto nan = from_bits<float>(0xffc00001);
  check(bits_of(min(nan, nan)) == canonical_nan_f32 &&
            bits_of(max<Nan::propagated>(nan, 1.0f)) == canonical_nan_f32,
        "the canonical NaN");
  check(bits_of(max_xorsign_abs(nan, -2.0f)) == bits_of(2.0f), "xorsign with a negative NaN");
}

TEST(arithmetic_rounds_like_the_host) {
  round_like_the_host<float>(200'000);
  round_like_the_host<double>(200'000);
}

}  // namespace
