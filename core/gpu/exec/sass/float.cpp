// SPDX-License-Identifier: Apache-2.0
// Floating point of 32 and 64 bits, and the special functions.
#include "gpu/exec/instructions/convert.hpp"
#include "gpu/exec/instructions/extremes.hpp"
#include "gpu/exec/numerics/approximate.hpp"
#include "gpu/exec/numerics/flush.hpp"
#include "gpu/exec/numerics/ordering.hpp"
#include "gpu/exec/numerics/rounding.hpp"
#include "gpu/exec/sass/builder.hpp"

namespace manyscale::gpu {
namespace {

using I64 = std::int64_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

// Above the operands' modifiers stand how to round (two bits), and these.
constexpr unsigned kRoundingBits = kFreeBits;
constexpr I64 kFlushes = I64{1} << (kFreeBits + 2);
constexpr I64 kSaturates = I64{1} << (kFreeBits + 3);
constexpr unsigned kScaleBits = kFreeBits + 4;

constexpr auto kSum = []<Rounding R>(auto a, auto b) { return add<R>(a, b); };
constexpr auto kProduct = []<Rounding R>(auto a, auto b) { return mul<R>(a, b); };
constexpr auto kFused = []<Rounding R>(auto a, auto b, auto c) { return fma<R>(a, b, c); };

// f of all sources, rounded to nearest; flushing or not.
template <auto f, class T, unsigned count, bool flushes, bool modified>
void compute(Warp& warp, const Op& op) {
  const auto call = [](auto... x) {
    return flush_if<flushes>(f.template operator()<Rounding::rn>(flush_if<flushes>(x)...));
  };
  const Numbers<T, modified> a(warp, op, 0), b(warp, op, 1);
  if constexpr (count == 2) {
    for_numbers<T>(warp, op.dst, [=](unsigned i) { return call(a[i], b[i]); });
  } else {
    const Numbers<T, modified> c(warp, op, 2);
    for_numbers<T>(warp, op.dst, [=](unsigned i) { return call(a[i], b[i], c[i]); });
  }
}

// The same with everything that modifiers can ask for.
template <auto f, class T, unsigned count>
void compute_modified(Warp& warp, const Op& op) {
  const bool flushes = (op.immediate & kFlushes) != 0;
  const bool saturates = (op.immediate & kSaturates) != 0;
  const auto scale = static_cast<int>(op.immediate >> kScaleBits & 7);
  const T factor = scale == 0   ? T{1}
                   : scale <= 3 ? T{1} / static_cast<T>(1 << scale)
                                : static_cast<T>(1 << (scale - 3));
  const Numbers<T, true> a(warp, op, 0), b(warp, op, 1), c(warp, op, count - 1);
  alignas(64) std::array<T, kLanes> results;
  const auto prepared = [=](T x) { return flushes ? flush(x) : x; };
  with_rounding(static_cast<Rounding>(op.immediate >> kRoundingBits & 3), [&]<Rounding R>() {
    for_each_active(warp.mask, [&](unsigned i) {
      T result;
      if constexpr (count == 2)
        result =
            f.template operator()<R>(scale != 0 ? prepared(a[i]) * factor : prepared(a[i]), prepared(b[i]));
      else
        result = f.template operator()<R>(prepared(a[i]), prepared(b[i]), prepared(c[i]));
      if (flushes) result = flush(result);
      results[i] = saturates ? saturate(result) : result;
    });
  });
  for_numbers<T>(warp, op.dst, [&](unsigned i) { return results[i]; });
}

Rounding accept_rounding(MachineBuilder& builder) {
  switch (builder.accept_one_of({"RZ", "RM", "RP", "RN"})) {
    case 0:
      return Rounding::rz;
    case 1:
      return Rounding::rm;
    case 2:
      return Rounding::rp;
    default:
      return Rounding::rn;
  }
}

template <auto f, class T, unsigned count>
void decode_arithmetic(MachineBuilder& builder) {
  constexpr unsigned words = sizeof(T) / 4;
  const Rounding rounding = accept_rounding(builder);
  const bool flushes = builder.accept("FTZ") || builder.accept("FMZ");
  const bool saturates = builder.accept("SAT");
  const int scale = builder.accept_one_of({"D2", "D4", "D8", "M2", "M4", "M8"}) + 1;
  I64 modifiers = 0;
  const Slot dst = builder.destination(0, words);
  std::array<Slot, 4> sources{kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  for (unsigned k = 0; k < count; ++k) sources[k] = builder.source(k, words, &modifiers, k);
  Handler handler = nullptr;
  if (rounding != Rounding::rn || saturates || scale != 0)
    handler = compute_modified<f, T, count>;
  else if (flushes)
    handler = modifiers != 0 ? compute<f, T, count, true, true> : compute<f, T, count, true, false>;
  else
    handler = modifiers != 0 ? compute<f, T, count, false, true> : compute<f, T, count, false, false>;
  Op& op = builder.emit(handler, words == 2 ? Class::fp64 : Class::fp32);
  op.dst = dst;
  op.src = sources;
  op.immediate = modifiers | I64{static_cast<unsigned>(rounding)} << kRoundingBits |
                 (flushes ? kFlushes : 0) | (saturates ? kSaturates : 0) | I64{scale} << kScaleBits;
}

// --- Smaller and larger

template <bool propagates>
void extreme(Warp& warp, const Op& op) {
  const Numbers<float, true> a(warp, op, 0), b(warp, op, 1);
  const Mask smaller = first_condition(warp, op);
  const bool flushes = (op.immediate & kFlushes) != 0;
  constexpr Nan nan = propagates ? Nan::propagated : Nan::ignored;
  for_numbers<float>(warp, op.dst, [=](unsigned i) {
    const float x = flushes ? flush(a[i]) : a[i];
    const float y = flushes ? flush(b[i]) : b[i];
    return (smaller >> i & 1) != 0 ? min<nan>(x, y) : max<nan>(x, y);
  });
}

// With .XORSIGN magnitudes are compared, and the result has the product of the signs.
template <Nan nan>
void extreme_with_signs(Warp& warp, const Op& op) {
  Op plain = op;
  plain.immediate &= ~(absolute_bit(0) | absolute_bit(1));
  const Numbers<float, true> a(warp, plain, 0), b(warp, plain, 1);
  const Mask smaller = first_condition(warp, op);
  const bool flushes = (op.immediate & kFlushes) != 0;
  for_numbers<float>(warp, op.dst, [=](unsigned i) {
    const float x = flushes ? flush(a[i]) : a[i];
    const float y = flushes ? flush(b[i]) : b[i];
    return (smaller >> i & 1) != 0 ? min_xorsign_abs<nan>(x, y) : max_xorsign_abs<nan>(x, y);
  });
}

void decode_fmnmx(MachineBuilder& builder) {
  const bool flushes = builder.accept("FTZ");
  const bool propagates = builder.accept("NAN");
  const bool signs = builder.accept("XORSIGN");
  I64 modifiers = 0;
  const Slot dst = builder.destination();
  const Slot a = builder.source(0, 1, &modifiers, 0);
  const Slot b = builder.source(1, 1, &modifiers, 1);
  bool negated = false;
  const Slot smaller = builder.condition(0, negated);
  const Handler handler =
      signs ? (propagates ? extreme_with_signs<Nan::propagated> : extreme_with_signs<Nan::ignored>)
            : (propagates ? extreme<true> : extreme<false>);
  Op& op = builder.emit(handler, Class::fp32);
  op.dst = dst;
  op.src = {a, b, kNoSlot, smaller};
  op.immediate = modifiers | (flushes ? kFlushes : 0) | (negated ? kPredicateNegated : 0);
}

// --- Comparisons

constexpr unsigned kHowBits = kFreeBits + 4;
constexpr I64 kBoolean = I64{1} << (kFreeBits + 8);

Mask combine(unsigned how, Mask a, Mask b) {
  return how == 0 ? a & b : how == 1 ? a | b : a ^ b;
}

template <class T, Comparison C>
Mask compare_lanes(Warp& warp, const Op& op) {
  const Numbers<T, true> a(warp, op, 0), b(warp, op, 1);
  if (op.immediate & kFlushes)
    return ballot([=](unsigned i) { return compare<C>(flush(a[i]), flush(b[i])); });
  return ballot([=](unsigned i) { return compare<C>(a[i], b[i]); });
}

template <class T, Comparison C>
void set_predicates(Warp& warp, const Op& op) {
  const Mask result = compare_lanes<T, C>(warp, op);
  const Mask with = first_condition(warp, op);
  const auto how = static_cast<unsigned>(op.immediate >> kHowBits) & 3;
  const Mask other = combine(how, ~result, with);
  if (op.dst != kNoSlot) set_predicate(warp, op.dst, combine(how, result, with));
  if (op.dst2 != kNoSlot) set_predicate(warp, op.dst2, other);
}

// FSET: a register of all ones, or the number one.
template <class T, Comparison C>
void set_word(Warp& warp, const Op& op) {
  const auto how = static_cast<unsigned>(op.immediate >> kHowBits) & 3;
  const Mask result = combine(how, compare_lanes<T, C>(warp, op), first_condition(warp, op));
  const U32 yes = op.immediate & kBoolean ? one_bits<float> : ~U32{0};
  for_words(warp, op.dst, [=](unsigned i) { return (result >> i & 1) != 0 ? yes : 0; });
}

template <class T, bool word>
Handler comparison_handler(int index) {
  const auto pick = []<Comparison C>() -> Handler {
    if constexpr (word) return set_word<T, C>;
    return set_predicates<T, C>;
  };
  switch (index) {
#define MANYSCALE_COMPARISON(number, name) \
  case number:                             \
    return pick.template operator()<Comparison::name>();
    MANYSCALE_COMPARISON(0, lt)
    MANYSCALE_COMPARISON(1, eq)
    MANYSCALE_COMPARISON(2, le)
    MANYSCALE_COMPARISON(3, gt)
    MANYSCALE_COMPARISON(4, ne)
    MANYSCALE_COMPARISON(5, ge)
    MANYSCALE_COMPARISON(6, num)
    MANYSCALE_COMPARISON(7, nan)
    MANYSCALE_COMPARISON(8, ltu)
    MANYSCALE_COMPARISON(9, equ)
    MANYSCALE_COMPARISON(10, leu)
    MANYSCALE_COMPARISON(11, gtu)
    MANYSCALE_COMPARISON(12, neu)
    MANYSCALE_COMPARISON(13, geu)
#undef MANYSCALE_COMPARISON
    default:
      return nullptr;
  }
}

// DSETP.MIN and .MAX: whether the first operand is the smaller or larger one, where NaN is neither; and
// whether both are NaN.
template <bool larger>
void choose_extreme(Warp& warp, const Op& op) {
  const Numbers<double, true> a(warp, op, 0), b(warp, op, 1);
  const Mask with = first_condition(warp, op);
  const Mask first = ballot([=](unsigned i) {
    const bool beyond = larger ? order_of(a[i]) > order_of(b[i]) : order_of(a[i]) < order_of(b[i]);
    return (beyond && !is_nan(a[i])) || is_nan(b[i]);
  });
  const Mask neither = ballot([=](unsigned i) { return is_nan(a[i]) && is_nan(b[i]); });
  if (op.dst != kNoSlot) set_predicate(warp, op.dst, first & with);
  if (op.dst2 != kNoSlot) set_predicate(warp, op.dst2, neither & with);
}

constexpr unsigned kBooleanBit = 77;  // of FSET: its result is a number

template <class T, bool word>
void decode_comparison(MachineBuilder& builder) {
  constexpr unsigned words = sizeof(T) / 4;
  const int extreme = std::is_same_v<T, double> ? builder.accept_one_of({"MIN", "MAX"}) : -1;
  const int relation = builder.accept_one_of(
      {"LT", "EQ", "LE", "GT", "NE", "GE", "NUM", "NAN", "LTU", "EQU", "LEU", "GTU", "NEU", "GEU"});
  const bool flushes = builder.accept("FTZ");
  const bool boolean = builder.accept("BF") || (word && builder.instruction().words.bit(kBooleanBit));
  const int how = builder.accept_one_of({"AND", "OR", "XOR"});
  const Handler handler = extreme == 0   ? choose_extreme<false>
                          : extreme == 1 ? choose_extreme<true>
                                         : comparison_handler<T, word>(relation);
  if (handler == nullptr) builder.unsupported("no such comparison");
  I64 modifiers = 0;
  const Slot a = builder.source(0, words, &modifiers, 0);
  const Slot b = builder.source(1, words, &modifiers, 1);
  bool negated = false;
  const Slot with = builder.condition(0, negated);
  Op& op = builder.emit(handler, Class::compare);
  if constexpr (word) {
    op.dst = builder.destination();
  } else {
    op.dst = builder.predicate_result(0);
    op.dst2 = builder.predicate_result(1);
  }
  op.src = {a, b, kNoSlot, with};
  op.immediate = modifiers | (flushes ? kFlushes : 0) | (negated ? kPredicateNegated : 0) |
                 I64{std::max(how, 0)} << kHowBits | (boolean ? kBoolean : 0);
}

// --- FSEL: one of two, as the predicate says

void select_number(Warp& warp, const Op& op) {
  const Numbers<float, true> a(warp, op, 0), b(warp, op, 1);
  const Mask first = first_condition(warp, op);
  const bool flushes = (op.immediate & kFlushes) != 0;
  for_numbers<float>(warp, op.dst, [=](unsigned i) {
    const float chosen = (first >> i & 1) != 0 ? a[i] : b[i];
    return flushes ? flush(chosen) : chosen;
  });
}

void decode_fsel(MachineBuilder& builder) {
  const bool flushes = builder.accept("FTZ");
  I64 modifiers = 0;
  const Slot dst = builder.destination();
  const Slot a = builder.source(0, 1, &modifiers, 0);
  const Slot b = builder.source(1, 1, &modifiers, 1);
  bool negated = false;
  const Slot first = builder.condition(0, negated);
  Op& op = builder.emit(select_number, Class::move);
  op.dst = dst;
  op.src = {a, b, kNoSlot, first};
  op.immediate = modifiers | (flushes ? kFlushes : 0) | (negated ? kPredicateNegated : 0);
}

// --- FCHK: whether a division needs the long way, because its quotient or a number on the way to it is not
// normal.

void check_division(Warp& warp, const Op& op) {
  const Numbers<float, true> a(warp, op, 0), b(warp, op, 1);
  const Mask result = ballot([=](unsigned i) {
    const auto x = static_cast<int>(magnitude_bits(a[i]) >> 23);
    const auto y = static_cast<int>(magnitude_bits(b[i]) >> 23);
    // Exponents for which 1 / b, a / b and the rest of the division stay normal.
    const bool plain = y >= 2 && y <= 251 && x >= 1 && x <= 254 && x - y <= 126 && x - y >= -125 && x >= 25;
    return !plain;
  });
  if (op.dst != kNoSlot) set_predicate(warp, op.dst, result);
}

void decode_fchk(MachineBuilder& builder) {
  builder.ignore({"DIVIDE"});
  I64 modifiers = 0;
  const Slot a = builder.source(0, 1, &modifiers, 0);
  const Slot b = builder.source(1, 1, &modifiers, 1);
  Op& op = builder.emit(check_division, Class::special_function);
  op.dst = builder.predicate_result(0);
  op.src = {a, b, kNoSlot, kNoSlot};
  op.immediate = modifiers;
}

// --- MUFU: special functions. Sine and cosine take an angle that is a number of turns times 2π after RRO;
// here it is the angle itself times 1 / 2π, as ptxas computes it.

template <auto f>
void special(Warp& warp, const Op& op) {
  const Numbers<float, true> a(warp, op, 0);
  for_numbers<float>(warp, op.dst, [=](unsigned i) { return f(a[i]); });
}

// The same of a half, which is the lower one of the register or the upper one; the result is the lower one.
template <auto f, class Half>
void special_half(Warp& warp, const Op& op) {
  const Words<false> a(warp, op, 0);
  const unsigned shift = op.count;
  const U32 keep = (op.immediate & absolute_bit(0)) != 0 ? 0x7fff : 0xffff;
  const U32 flip = (op.immediate & negated_bit(0)) != 0 ? 0x8000 : 0;
  for_words(warp, op.dst, [=](unsigned i) {
    const auto bits = static_cast<std::uint16_t>((a[i] >> shift & keep) ^ flip);
    if constexpr (std::is_same_v<Half, F16>)
      return U32{to_f16(f(to_f32(Half{bits}))).bits};
    else
      return U32{to_bf16(f(to_f32(Half{bits}))).bits};
  });
}

constexpr double kTurn = 0x1.921fb54442d18p+2;  // 2π

// The sine of a number of turns.
inline float sine_of_turns(float turns, unsigned quadrant) {
  if (magnitude_bits(turns) >= infinity_bits<float>) return from_bits<float>(canonical_nan_f32);
  const double whole = std::rint(double{turns} * 4);
  const double rest = (double{turns} - whole / 4) * kTurn;
  const auto quarter = static_cast<std::int64_t>(std::fmod(whole, 4.0)) + 4;
  return static_cast<float>(sine(static_cast<U64>(quarter) + quadrant, rest));
}

// Numbers below the smallest normal one count as zero.
constexpr auto kRcp = [](float a) { return flush(rcp_approx(flush(a))); };
constexpr auto kRsq = [](float a) { return rsqrt_approx(flush(a)); };
constexpr auto kSqrt = [](float a) { return sqrt_approx(flush(a)); };
constexpr auto kLg2 = [](float a) { return lg2_approx(flush(a)); };
constexpr auto kEx2 = [](float a) { return flush(ex2_approx(flush(a))); };
constexpr auto kHalfEx2 = [](float a) { return ex2_approx(a); };
constexpr auto kTanh = [](float a) { return tanh_approx(a); };
constexpr auto kSin = [](float a) { return sine_of_turns(flush(a), 0); };
constexpr auto kCos = [](float a) { return sine_of_turns(flush(a), 1); };

// The upper words of f64 numbers.
template <auto f>
void special_upper(Warp& warp, const Op& op) {
  const Words<false> a(warp, op, 0);
  const bool negative = (op.immediate & negated_bit(0)) != 0;
  const bool absolute = (op.immediate & absolute_bit(0)) != 0;
  for_words(warp, op.dst, [=](unsigned i) {
    U32 word = a[i];
    if (absolute) word &= 0x7fffffff;
    if (negative) word ^= 0x80000000;
    return bits_of(f(from_bits<double>(U64{word} << 32))) >> 32;
  });
}

constexpr auto kRcp64 = [](double a) { return rcp_approx_ftz(a); };
constexpr auto kRsq64 = [](double a) { return rsqrt_approx_ftz(a); };

void decode_mufu(MachineBuilder& builder) {
  constexpr Handler kHandlers[] = {special<kRcp>,         special<kRsq>,        special<kSqrt>, special<kLg2>,
                                   special<kEx2>,         special<kTanh>,       special<kSin>,  special<kCos>,
                                   special_upper<kRcp64>, special_upper<kRsq64>};
  const int which =
      builder.accept_one_of({"RCP", "RSQ", "SQRT", "LG2", "EX2", "TANH", "SIN", "COS", "RCP64H", "RSQ64H"});
  if (which < 0) builder.unsupported("no such special function");
  Handler handler = kHandlers[which];
  const int half = builder.accept_one_of({"F16", "BF16"});
  if (half >= 0) {
    if (which == 4)
      handler = half == 0 ? special_half<kHalfEx2, F16> : special_half<kEx2, Bf16>;
    else if (which == 5)
      handler = half == 0 ? special_half<kTanh, F16> : special_half<kTanh, Bf16>;
    else
      builder.unsupported("no such special function of halves");
  }
  I64 modifiers = 0;
  const Slot dst = builder.destination();
  const Slot a = builder.source(0, 1, &modifiers, 0);
  Op& op = builder.emit(handler, Class::special_function);
  op.count = builder.value(0).has(sass::mod("H1")) ? 16 : 0;
  op.dst = dst;
  op.src[0] = a;
  op.immediate = modifiers;
}

constexpr MachineOpcode kOpcodes[] = {
    {"FADD", decode_arithmetic<kSum, float, 2>},
    {"FMUL", decode_arithmetic<kProduct, float, 2>},
    {"FFMA", decode_arithmetic<kFused, float, 3>},
    {"DADD", decode_arithmetic<kSum, double, 2>},
    {"DMUL", decode_arithmetic<kProduct, double, 2>},
    {"DFMA", decode_arithmetic<kFused, double, 3>},
    {"FMNMX", decode_fmnmx},
    {"FSETP", decode_comparison<float, false>},
    {"DSETP", decode_comparison<double, false>},
    {"FSET", decode_comparison<float, true>},
    {"FSEL", decode_fsel},
    {"FCHK", decode_fchk},
    {"MUFU", decode_mufu},
};

}  // namespace

std::span<const MachineOpcode> machine_float_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
