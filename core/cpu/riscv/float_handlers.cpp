// SPDX-License-Identifier: Apache-2.0
// Floating point (F and D): the host's arithmetic where it has the rounding mode, integers (soft_float.hpp)
// where it does not. Results that are NaN are canonical; flags are left in the host or put into fcsr.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "cpu/riscv/handlers.hpp"
#include "cpu/riscv/host_float.hpp"
#include "cpu/riscv/machine.hpp"
#include "cpu/riscv/soft_float.hpp"

namespace manyscale::cpu::riscv {

namespace {

using host_float::held;
using soft_float::Format;
using soft_float::Result;

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, u32, u64>;

template <class T>
constexpr Format format_of = sizeof(T) == 4 ? soft_float::single_precision : soft_float::double_precision;

constexpr u64 box = 0xffffffff00000000;

// A register's bits as this format sees them: a single that is not boxed counts as NaN.
template <class T>
BitsOf<T> bits_of(const Hart* h, std::uint8_t index) {
  const u64 bits = h->f[index];
  if constexpr (sizeof(T) == 8) {
    return bits;
  } else {
    return (bits & box) == box ? static_cast<u32>(bits) : u32{0x7fc00000};
  }
}

template <class T>
T value_of(const Hart* h, std::uint8_t index) {
  return std::bit_cast<T>(bits_of<T>(h, index));
}

template <class T>
void put_bits(Hart* h, std::uint8_t index, BitsOf<T> bits) {
  h->f[index] = sizeof(T) == 8 ? u64{bits} : box | bits;
}

template <class T>
bool is_nan(BitsOf<T> bits) {
  return format_of<T>.is_nan(bits);
}

template <class T>
void put_arithmetic(Hart* h, std::uint8_t index, T value) {
  auto bits = std::bit_cast<BitsOf<T>>(value);
  if (is_nan<T>(bits)) [[unlikely]]
    bits = static_cast<BitsOf<T>>(format_of<T>.canonical_nan());
  put_bits<T>(h, index, bits);
}

// Arithmetic. Each has the host's way and the exact way for a rounding mode that the host has not.
struct Add {
  static constexpr bool fuses = false;
  template <class T>
  static T host(T a, T b, T) {
    return a + b;
  }
  static Result exact(Format format, u64 a, u64 b, u64, std::uint8_t rounding) {
    return soft_float::add(format, a, b, rounding);
  }
};
struct Subtract {
  static constexpr bool fuses = false;
  template <class T>
  static T host(T a, T b, T) {
    return a - b;
  }
  static Result exact(Format format, u64 a, u64 b, u64, std::uint8_t rounding) {
    // A NaN stays one, with its signaling bit, whatever its sign.
    return soft_float::add(format, a, b ^ format.sign_bit(), rounding);
  }
};
struct Multiply {
  static constexpr bool fuses = false;
  template <class T>
  static T host(T a, T b, T) {
    return a * b;
  }
  static Result exact(Format format, u64 a, u64 b, u64, std::uint8_t rounding) {
    return soft_float::multiply(format, a, b, rounding);
  }
};
struct Divide {
  static constexpr bool fuses = false;
  template <class T>
  static T host(T a, T b, T) {
    return a / b;
  }
  static Result exact(Format format, u64 a, u64 b, u64, std::uint8_t rounding) {
    return soft_float::divide(format, a, b, rounding);
  }
};
struct SquareRoot {
  static constexpr bool fuses = false;
  template <class T>
  static T host(T a, T, T) {
    return std::sqrt(a);
  }
  static Result exact(Format format, u64 a, u64, u64, std::uint8_t rounding) {
    return soft_float::square_root(format, a, rounding);
  }
};
template <bool negate_product, bool negate_addend>
struct Fused {
  static constexpr bool fuses = true;
  template <class T>
  static T host(T a, T b, T c) {
    return std::fma(negate_product ? -a : a, b, negate_addend ? -c : c);
  }
  static Result exact(Format format, u64 a, u64 b, u64 c, std::uint8_t rounding) {
    return soft_float::fused(format, negate_product ? a ^ format.sign_bit() : a, b,
                             negate_addend ? c ^ format.sign_bit() : c, rounding);
  }
};
#if defined(__FMA__) || !defined(__SSE2__)
constexpr bool host_fuses = true;
#else
constexpr bool host_fuses = false;
#endif

// Operands as decoded: the third source and the rounding mode share the immediate.
template <class Op>
std::uint8_t third(const Op* op) {
  return static_cast<std::uint8_t>(op->immediate >> 8);
}
template <class Op>
std::uint8_t static_rounding(const Op* op) {
  return static_cast<std::uint8_t>(op->immediate & 7);
}

// The rounding mode that an instruction asks for; above nearest_away if there is none such.
template <class Op>
std::uint8_t rounding_for(const Op* op, const Hart* h) {
  const std::uint8_t rounding = static_rounding(op);
  return rounding == Rounding::dynamic ? rounding_of(*h) : rounding;
}

// The exact way of an instruction: with a rounding mode that is in it (compilers hardly ever write one), or
// that the host has not. compute(rounding) stores the result and gives the flags.
template <class Op, class Compute>
const Op* exactly(const Op* op, Hart* h, Machine* m, Compute compute) {
  const std::uint8_t rounding = rounding_for(op, h);
  if (rounding > Rounding::nearest_away) return fault(op, h, m, Fault::Cause::illegal, op->pc);
  note(op, m);
  h->fcsr |= compute(rounding);
  return op + 1;
}

template <class T>
std::uint8_t put_result(Hart* h, std::uint8_t index, const Result& result) {
  put_bits<T>(h, index, static_cast<BitsOf<T>>(result.bits));
  return result.flags;
}

template <class Op, class T, class Arithmetic>
[[gnu::noinline]] const Op* arithmetic_exactly(const Op* op, Hart* h, Machine* m) {
  return exactly(op, h, m, [&](std::uint8_t rounding) {
    const Result result = Arithmetic::exact(format_of<T>, bits_of<T>(h, op->rs1), bits_of<T>(h, op->rs2),
                                            bits_of<T>(h, third(op)), rounding);
    return put_result<T>(h, op->rd, result);
  });
}

template <class Op, class T, class Arithmetic>
const Op* arithmetic(const Op* op, Hart* h, Machine* m) {
  if (m->unusual_rounding || (Arithmetic::fuses && !host_fuses)) [[unlikely]] {
    return arithmetic_exactly<Op, T, Arithmetic>(op, h, m);
  }
  const T a = value_of<T>(h, op->rs1), b = value_of<T>(h, op->rs2);
  T c = b;
  if constexpr (Arithmetic::fuses) c = value_of<T>(h, third(op));
  const T result = held(Arithmetic::host(held(a), held(b), held(c)));
  if constexpr (Arithmetic::fuses) {
    // Infinity times zero is invalid even if a quiet NaN is added; hosts need not flag it.
    if (is_nan<T>(std::bit_cast<BitsOf<T>>(result))) [[unlikely]] {
      return arithmetic_exactly<Op, T, Arithmetic>(op, h, m);
    }
  }
  note(op, m);
  put_arithmetic(h, op->rd, result);
  return next(op, h, m);
}

// Between the two formats.
template <class Op, class From, class To>
[[gnu::noinline]] const Op* change_format_exactly(const Op* op, Hart* h, Machine* m) {
  return exactly(op, h, m, [&](std::uint8_t rounding) {
    const Result result =
        soft_float::convert(format_of<From>, format_of<To>, bits_of<From>(h, op->rs1), rounding);
    return put_result<To>(h, op->rd, result);
  });
}

template <class Op, class From, class To>
const Op* change_format(const Op* op, Hart* h, Machine* m) {
  if (m->unusual_rounding) [[unlikely]]
    return change_format_exactly<Op, From, To>(op, h, m);
  note(op, m);
  put_arithmetic(h, op->rd, held(static_cast<To>(held(value_of<From>(h, op->rs1)))));
  return next(op, h, m);
}

template <class Op, class T, class Integer>
[[gnu::noinline]] const Op* from_integer_exactly(const Op* op, Hart* h, Machine* m) {
  return exactly(op, h, m, [&](std::uint8_t rounding) {
    const auto value = static_cast<Integer>(h->x[op->rs1]);
    const bool negative = value < 0;
    const u64 magnitude = negative ? u64{0} - static_cast<u64>(value) : static_cast<u64>(value);
    const Result result = soft_float::from_integer(format_of<T>, negative, magnitude, rounding);
    return put_result<T>(h, op->rd, result);
  });
}

template <class Op, class T, class Integer>
const Op* from_integer(const Op* op, Hart* h, Machine* m) {
  if (m->unusual_rounding) [[unlikely]]
    return from_integer_exactly<Op, T, Integer>(op, h, m);
  note(op, m);
  const T value = held(static_cast<T>(static_cast<Integer>(h->x[op->rs1])));
  put_bits<T>(h, op->rd, std::bit_cast<BitsOf<T>>(value));
  return next(op, h, m);
}

// To integers: the host where the result surely is in range, so that its flags are right.
template <class Integer, class T>
bool surely_fits(T value) {
  if constexpr (std::is_signed_v<Integer>) {
    constexpr T limit = sizeof(Integer) == 4 ? T(2147483520) : T(9223371487098961920.0);
    return value >= -limit && value <= limit;
  } else {
    constexpr T limit = sizeof(Integer) == 4 ? T(4294967040) : T(9223371487098961920.0);
    return value >= T(0) && value <= limit;
  }
}

#if defined(__SSE2__)
constexpr bool host_converts = true;
template <bool truncates>
i64 on_host(double value) {
  const __m128d wide = _mm_set_sd(value);
  return truncates ? _mm_cvttsd_si64(wide) : _mm_cvtsd_si64(wide);
}
template <bool truncates>
i64 on_host(float value) {
  const __m128 wide = _mm_set_ss(value);
  return truncates ? _mm_cvttss_si64(wide) : _mm_cvtss_si64(wide);
}
#else
constexpr bool host_converts = false;
template <bool truncates, class T>
i64 on_host(T) {
  return 0;
}
#endif

template <class Op, class T, class Integer>
[[gnu::noinline]] const Op* to_integer_exactly(const Op* op, Hart* h, Machine* m) {
  return exactly(op, h, m, [&](std::uint8_t rounding) {
    const Result result = soft_float::to_integer(format_of<T>, bits_of<T>(h, op->rs1), rounding,
                                                 8 * sizeof(Integer), std::is_signed_v<Integer>);
    h->x[op->rd] = result.bits;
    return result.flags;
  });
}

template <class Op, class T, class Integer, bool is_static>
const Op* to_integer(const Op* op, Hart* h, Machine* m) {
  const bool usual = is_static ? static_rounding(op) == Rounding::to_zero : !m->unusual_rounding;
  const auto bits = bits_of<T>(h, op->rs1);
  if (!usual || !host_converts || is_nan<T>(bits)) [[unlikely]]
    return to_integer_exactly<Op, T, Integer>(op, h, m);
  const T value = std::bit_cast<T>(bits);
  if (!surely_fits<Integer>(value)) [[unlikely]]
    return to_integer_exactly<Op, T, Integer>(op, h, m);
  note(op, m);
  const auto result = static_cast<std::make_signed_t<Integer>>(on_host<is_static>(held(value)));
  h->x[op->rd] = static_cast<u64>(static_cast<i64>(result));
  return next(op, h, m);
}

// Comparisons. A quiet comparison is invalid for signaling NaN only.
template <class Op, class T, auto compare, bool is_quiet>
const Op* comparison(const Op* op, Hart* h, Machine* m) {
  note(op, m);
  const auto a = bits_of<T>(h, op->rs1), b = bits_of<T>(h, op->rs2);
  if (is_nan<T>(a) || is_nan<T>(b)) [[unlikely]] {
    const bool signaling = format_of<T>.is_signaling(a) || format_of<T>.is_signaling(b);
    if (!is_quiet || signaling) h->fcsr |= FloatFlag::invalid;
    h->x[op->rd] = 0;
  } else {
    h->x[op->rd] = compare(std::bit_cast<T>(a), std::bit_cast<T>(b));
  }
  return next(op, h, m);
}

constexpr auto equal = [](auto a, auto b) { return a == b; };
constexpr auto less = [](auto a, auto b) { return a < b; };
constexpr auto less_or_equal = [](auto a, auto b) { return a <= b; };

// Of two numbers the smaller or larger, where -0 is below +0; a NaN gives way to a number.
template <class Op, class T, bool larger>
const Op* extreme(const Op* op, Hart* h, Machine* m) {
  note(op, m);
  constexpr Format format = format_of<T>;
  const auto a = bits_of<T>(h, op->rs1), b = bits_of<T>(h, op->rs2);
  auto result = a;
  if (is_nan<T>(a) || is_nan<T>(b)) [[unlikely]] {
    if (format.is_signaling(a) || format.is_signaling(b)) h->fcsr |= FloatFlag::invalid;
    result = !is_nan<T>(a) ? a : !is_nan<T>(b) ? b : static_cast<BitsOf<T>>(format.canonical_nan());
  } else {
    const T first = std::bit_cast<T>(a), second = std::bit_cast<T>(b);
    const bool below = first < second || (first == second && (a & format.sign_bit()) != 0);
    result = below != larger ? a : b;
  }
  put_bits<T>(h, op->rd, result);
  return next(op, h, m);
}

template <class Op, class T, auto sign>
const Op* with_sign(const Op* op, Hart* h, Machine* m) {
  note(op, m);
  constexpr auto sign_bit = static_cast<BitsOf<T>>(format_of<T>.sign_bit());
  const auto a = bits_of<T>(h, op->rs1), b = bits_of<T>(h, op->rs2);
  put_bits<T>(h, op->rd, (a & ~sign_bit) | (sign(a, b) & sign_bit));
  return next(op, h, m);
}

constexpr auto same_sign = [](auto, auto b) { return b; };
constexpr auto other_sign = [](auto, auto b) { return ~b; };
constexpr auto product_sign = [](auto a, auto b) { return a ^ b; };

template <class Op, class T>
const Op* classify(const Op* op, Hart* h, Machine* m) {
  note(op, m);
  constexpr Format format = format_of<T>;
  const u64 bits = bits_of<T>(h, op->rs1);
  const u64 magnitude = bits & ~format.sign_bit();
  unsigned positive = 6;  // the bit for a positive number of this class; normal
  if (magnitude == 0)
    positive = 4;
  else if (magnitude < u64{1} << format.fraction_bits)
    positive = 5;
  else if (magnitude == format.infinity())
    positive = 7;
  unsigned which = bits == magnitude ? positive : 7 - positive;
  if (format.is_nan(bits)) which = format.is_signaling(bits) ? 8 : 9;
  h->x[op->rd] = u64{1} << which;
  return next(op, h, m);
}

template <class Op, class T>
const Op* move_to_integer(const Op* op, Hart* h, Machine* m) {
  note(op, m);
  const u64 bits = h->f[op->rs1];
  h->x[op->rd] = sizeof(T) == 8 ? bits : static_cast<u64>(static_cast<i64>(static_cast<i32>(bits)));
  return next(op, h, m);
}

template <class Op, class T>
const Op* move_from_integer(const Op* op, Hart* h, Machine* m) {
  note(op, m);
  put_bits<T>(h, op->rd, static_cast<BitsOf<T>>(h->x[op->rs1]));
  return next(op, h, m);
}

using f32 = float;
using f64 = double;
using MultiplyAdd = Fused<false, false>;
using MultiplySubtract = Fused<false, true>;
using NegatedMultiplyAdd = Fused<true, false>;
using NegatedMultiplySubtract = Fused<true, true>;

}  // namespace

template <class Op>
std::span<const Handler<Op>> float_handlers() {
  // Conversions that are always exact do not care where the rounding mode is.
  static constexpr auto handlers = std::to_array<Handler<Op>>({
      {"fadd.s", arithmetic<Op, f32, Add>, arithmetic_exactly<Op, f32, Add>},
      {"fsub.s", arithmetic<Op, f32, Subtract>, arithmetic_exactly<Op, f32, Subtract>},
      {"fmul.s", arithmetic<Op, f32, Multiply>, arithmetic_exactly<Op, f32, Multiply>},
      {"fdiv.s", arithmetic<Op, f32, Divide>, arithmetic_exactly<Op, f32, Divide>},
      {"fsqrt.s", arithmetic<Op, f32, SquareRoot>, arithmetic_exactly<Op, f32, SquareRoot>},
      {"fmadd.s", arithmetic<Op, f32, MultiplyAdd>, arithmetic_exactly<Op, f32, MultiplyAdd>},
      {"fmsub.s", arithmetic<Op, f32, MultiplySubtract>, arithmetic_exactly<Op, f32, MultiplySubtract>},
      {"fnmsub.s", arithmetic<Op, f32, NegatedMultiplyAdd>, arithmetic_exactly<Op, f32, NegatedMultiplyAdd>},
      {"fnmadd.s", arithmetic<Op, f32, NegatedMultiplySubtract>,
       arithmetic_exactly<Op, f32, NegatedMultiplySubtract>},
      {"fsgnj.s", with_sign<Op, f32, same_sign>},
      {"fsgnjn.s", with_sign<Op, f32, other_sign>},
      {"fsgnjx.s", with_sign<Op, f32, product_sign>},
      {"fmin.s", extreme<Op, f32, false>},
      {"fmax.s", extreme<Op, f32, true>},
      {"feq.s", comparison<Op, f32, equal, true>},
      {"flt.s", comparison<Op, f32, less, false>},
      {"fle.s", comparison<Op, f32, less_or_equal, false>},
      {"fclass.s", classify<Op, f32>},
      {"fmv.x.w", move_to_integer<Op, f32>},
      {"fmv.w.x", move_from_integer<Op, f32>},
      {"fcvt.w.s", to_integer<Op, f32, i32, false>, to_integer<Op, f32, i32, true>},
      {"fcvt.wu.s", to_integer<Op, f32, u32, false>, to_integer<Op, f32, u32, true>},
      {"fcvt.l.s", to_integer<Op, f32, i64, false>, to_integer<Op, f32, i64, true>},
      {"fcvt.lu.s", to_integer<Op, f32, u64, false>, to_integer<Op, f32, u64, true>},
      {"fcvt.s.w", from_integer<Op, f32, i32>, from_integer_exactly<Op, f32, i32>},
      {"fcvt.s.wu", from_integer<Op, f32, u32>, from_integer_exactly<Op, f32, u32>},
      {"fcvt.s.l", from_integer<Op, f32, i64>, from_integer_exactly<Op, f32, i64>},
      {"fcvt.s.lu", from_integer<Op, f32, u64>, from_integer_exactly<Op, f32, u64>},
      {"fadd.d", arithmetic<Op, f64, Add>, arithmetic_exactly<Op, f64, Add>},
      {"fsub.d", arithmetic<Op, f64, Subtract>, arithmetic_exactly<Op, f64, Subtract>},
      {"fmul.d", arithmetic<Op, f64, Multiply>, arithmetic_exactly<Op, f64, Multiply>},
      {"fdiv.d", arithmetic<Op, f64, Divide>, arithmetic_exactly<Op, f64, Divide>},
      {"fsqrt.d", arithmetic<Op, f64, SquareRoot>, arithmetic_exactly<Op, f64, SquareRoot>},
      {"fmadd.d", arithmetic<Op, f64, MultiplyAdd>, arithmetic_exactly<Op, f64, MultiplyAdd>},
      {"fmsub.d", arithmetic<Op, f64, MultiplySubtract>, arithmetic_exactly<Op, f64, MultiplySubtract>},
      {"fnmsub.d", arithmetic<Op, f64, NegatedMultiplyAdd>, arithmetic_exactly<Op, f64, NegatedMultiplyAdd>},
      {"fnmadd.d", arithmetic<Op, f64, NegatedMultiplySubtract>,
       arithmetic_exactly<Op, f64, NegatedMultiplySubtract>},
      {"fsgnj.d", with_sign<Op, f64, same_sign>},
      {"fsgnjn.d", with_sign<Op, f64, other_sign>},
      {"fsgnjx.d", with_sign<Op, f64, product_sign>},
      {"fmin.d", extreme<Op, f64, false>},
      {"fmax.d", extreme<Op, f64, true>},
      {"feq.d", comparison<Op, f64, equal, true>},
      {"flt.d", comparison<Op, f64, less, false>},
      {"fle.d", comparison<Op, f64, less_or_equal, false>},
      {"fclass.d", classify<Op, f64>},
      {"fmv.x.d", move_to_integer<Op, f64>},
      {"fmv.d.x", move_from_integer<Op, f64>},
      {"fcvt.w.d", to_integer<Op, f64, i32, false>, to_integer<Op, f64, i32, true>},
      {"fcvt.wu.d", to_integer<Op, f64, u32, false>, to_integer<Op, f64, u32, true>},
      {"fcvt.l.d", to_integer<Op, f64, i64, false>, to_integer<Op, f64, i64, true>},
      {"fcvt.lu.d", to_integer<Op, f64, u64, false>, to_integer<Op, f64, u64, true>},
      {"fcvt.d.w", from_integer<Op, f64, i32>, from_integer<Op, f64, i32>},
      {"fcvt.d.wu", from_integer<Op, f64, u32>, from_integer<Op, f64, u32>},
      {"fcvt.d.l", from_integer<Op, f64, i64>, from_integer_exactly<Op, f64, i64>},
      {"fcvt.d.lu", from_integer<Op, f64, u64>, from_integer_exactly<Op, f64, u64>},
      {"fcvt.s.d", change_format<Op, f64, f32>, change_format_exactly<Op, f64, f32>},
      {"fcvt.d.s", change_format<Op, f32, f64>, change_format<Op, f32, f64>},
  });
  return handlers;
}

template std::span<const Handler<PlainOperation>> float_handlers();
template std::span<const Handler<RecordingOperation>> float_handlers();

}  // namespace manyscale::cpu::riscv
