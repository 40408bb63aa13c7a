// SPDX-License-Identifier: Apache-2.0
// Conversions between formats, and to whole numbers.
#include "gpu/exec/instructions/convert.hpp"
#include "gpu/exec/numerics/float_to_int.hpp"
#include "gpu/exec/numerics/flush.hpp"
#include "gpu/exec/numerics/half.hpp"
#include "gpu/exec/numerics/rounding.hpp"
#include "gpu/exec/sass/builder.hpp"
#include "gpu/exec/sass/conversion.hpp"

namespace manyscale::gpu {
namespace {

using I64 = std::int64_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

constexpr I64 kFlushes = I64{1} << (kFreeBits + 2);
constexpr I64 kNanIsZero = I64{1} << (kFreeBits + 3);
constexpr unsigned kShiftBits = kFreeBits + 8;  // where in its register a source begins

// The bits of a source of type T.
template <class T>
class Source {
 public:
  Source(const Warp& warp, const Op& op)
      : low_(warp.lanes<U32>(op.src[0])),
        high_(sizeof(T) == 8 ? warp.lanes<U32>(next_word(op.src[0])) : nullptr),
        shift_(static_cast<unsigned>(op.immediate >> kShiftBits) & 31),
        negated_((op.immediate & negated_bit(0)) != 0),
        absolute_((op.immediate & absolute_bit(0)) != 0) {}
  T operator[](unsigned i) const {
    using Bits = BitsOf<T>;
    Bits bits;
    if constexpr (sizeof(T) == 8)
      bits = low_[i] | U64{high_[i]} << 32;
    else
      bits = static_cast<Bits>(low_[i] >> shift_);
    constexpr Bits sign = sign_bit<T>;
    if (absolute_) bits &= static_cast<Bits>(~sign);
    if (negated_) bits ^= sign;
    return from_bits<T>(bits);
  }

 private:
  const U32* low_;
  const U32* high_;
  unsigned shift_;
  bool negated_;
  bool absolute_;
};

template <class Int>
class IntegerSource {
 public:
  IntegerSource(const Warp& warp, const Op& op)
      : low_(warp.lanes<U32>(op.src[0])),
        high_(sizeof(Int) == 8 ? warp.lanes<U32>(next_word(op.src[0])) : nullptr),
        shift_(static_cast<unsigned>(op.immediate >> kShiftBits) & 31) {}
  Int operator[](unsigned i) const {
    if constexpr (sizeof(Int) == 8) return static_cast<Int>(low_[i] | U64{high_[i]} << 32);
    return static_cast<Int>(low_[i] >> shift_);
  }

 private:
  const U32* low_;
  const U32* high_;
  unsigned shift_;
};

// Writes results of type T: a half in the lower half of the register.
template <class T, class F>
void write_results(Warp& warp, Slot dst, F f) {
  if constexpr (sizeof(T) == 8)
    for_pairs(warp, dst, [=](unsigned i) { return static_cast<U64>(f(i)); });
  else
    for_words(warp, dst, [=](unsigned i) { return static_cast<U32>(f(i)); });
}

template <class T>
auto result_bits(T value) {
  return bits_of(value);
}

// dst = the bits of convert<R>(lane), R being known at run time only; the usual one is vector code.
template <class T, Rounding usual, class F>
void convert_each(Warp& warp, const Op& op, F convert) {
  if (rounding_of(op) == usual) {
    write_results<T>(warp, op.dst, [=](unsigned i) { return convert.template operator()<usual>(i); });
    return;
  }
  std::array<U64, kLanes> results{};
  with_rounding(rounding_of(op), [&]<Rounding R>() {
    for_each_active(warp.mask, [&](unsigned i) { results[i] = convert.template operator()<R>(i); });
  });
  write_results<T>(warp, op.dst, [&](unsigned i) { return results[i]; });
}

template <class T, class Int>
void integer_to_float(Warp& warp, const Op& op) {
  const IntegerSource<Int> from(warp, op);
  convert_each<T, Rounding::rn>(warp, op,
                                [=]<Rounding R>(unsigned i) { return bits_of(from_int<T, R>(from[i])); });
}

template <class Int, class T>
void float_to_integer(Warp& warp, const Op& op) {
  const Source<T> from(warp, op);
  const bool flushes = (op.immediate & kFlushes) != 0;
  const bool nan_is_zero = (op.immediate & kNanIsZero) != 0;
  constexpr Int other = static_cast<Int>(U64{1} << (8 * sizeof(Int) - 1));
  convert_each<Int, Rounding::rz>(warp, op, [=]<Rounding R>(unsigned i) {
    const T value = flushes ? flush(from[i]) : from[i];
    const Int result = to_int<Int, R>(value);
    const Int number = is_nan(value) ? (nan_is_zero ? Int{0} : other) : result;
    // A byte or half fills its register, with its sign.
    using Filled = std::conditional_t<sizeof(Int) == 8, U64, U32>;
    return static_cast<Filled>(number);
  });
}

template <class To, Rounding R, class From>
To to_format(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<To, double>) {
    return to_f64(value);
  } else if constexpr (std::is_same_v<To, float>) {
    if constexpr (std::is_same_v<From, double>)
      return to_f32<R>(value);
    else
      return to_f32(value);
  } else if constexpr (std::is_same_v<To, F16>) {
    return to_f16<R>(value);
  } else {
    return to_bf16<R>(value);
  }
}

template <class To, class From>
void float_to_float(Warp& warp, const Op& op) {
  const Source<From> from(warp, op);
  const bool flushes = (op.immediate & kFlushes) != 0;
  convert_each<To, Rounding::rn>(warp, op, [=]<Rounding R>(unsigned i) {
    From value = from[i];
    if constexpr (std::is_same_v<From, float>)
      if (flushes) value = flush(value);
    To result = to_format<To, R>(value);
    if constexpr (std::is_same_v<To, float>)
      if (flushes) result = flush(result);
    return bits_of(result);
  });
}

template <class T>
void to_whole(Warp& warp, const Op& op) {
  const Source<T> from(warp, op);
  const bool flushes = (op.immediate & kFlushes) != 0;
  convert_each<T, Rounding::rn>(warp, op, [=]<Rounding R>(unsigned i) {
    const T value = flushes ? flush(from[i]) : from[i];
    return bits_of(to_integral<R>(value));
  });
}

// --- Decoding

// Where in its register the source begins: .B1, .H1 and the like.
unsigned accept_part(MachineBuilder& builder, const sass::Operand& operand) {
  const auto shift_of = [](std::string_view word) -> int {
    if (word == "B1") return 8;
    if (word == "B2" || word == "H1" || word == "H1_H1") return 16;
    if (word == "B3") return 24;
    return word == "B0" || word == "H0" || word == "H0_H0" || word.empty() ? 0 : -1;
  };
  int shift = 0;
  for (sass::Modifier suffix : operand.suffix) {
    const int found = shift_of(sass::name_of(suffix));
    if (found < 0) builder.unsupported("a source with ." + std::string(sass::name_of(suffix)));
    shift = std::max(shift, found);
  }
  const int behind = builder.accept_one_of({"B1", "B2", "B3", "H1", "B0", "H0"});
  if (behind == 0) shift = 8;
  if (behind == 1 || behind == 3) shift = 16;
  if (behind == 2) shift = 24;
  return static_cast<unsigned>(shift);
}

void emit_conversion(MachineBuilder& builder, Handler handler, Rounding rounding, unsigned to_words,
                     unsigned from_words, I64 flags) {
  if (handler == nullptr) builder.unsupported("no such conversion");
  I64 modifiers = 0;
  const Slot dst = builder.destination(0, to_words);
  const sass::Operand& operand = builder.value(builder.values() - 1);
  const I64 shift = accept_part(builder, operand);
  const Slot from = builder.source(operand, from_words, &modifiers, 0);
  Op& op = builder.emit(handler, Class::convert);
  op.dst = dst;
  op.src[0] = from;
  op.immediate =
      modifiers | flags | I64{static_cast<unsigned>(rounding)} << kRoundingBits | shift << kShiftBits;
}

struct IntegerType {
  int index = 0;  // S32, U32, S64, U64, S16, U16, S8, U8
  unsigned words() const { return index == 2 || index == 3 ? 2 : 1; }
};

IntegerType accept_integer(MachineBuilder& builder) {
  const int found = builder.accept_one_of({"S32", "U32", "S64", "U64", "S16", "U16", "S8", "U8"});
  return {std::max(found, 0)};
}

// f() with a value of the integer type.
template <class F>
Handler with_type(IntegerType type, F f) {
  switch (type.index) {
    case 1:
      return f(std::uint32_t{});
    case 2:
      return f(std::int64_t{});
    case 3:
      return f(std::uint64_t{});
    case 4:
      return f(std::int16_t{});
    case 5:
      return f(std::uint16_t{});
    case 6:
      return f(std::int8_t{});
    case 7:
      return f(std::uint8_t{});
    default:
      return f(std::int32_t{});
  }
}

template <class F>
Handler with_float(Float format, F f) {
  switch (format) {
    case Float::f16:
      return f(F16{});
    case Float::f64:
      return f(double{});
    case Float::bf16:
      return f(Bf16{});
    default:
      return f(float{});
  }
}

void decode_i2f(MachineBuilder& builder) {
  const auto floats = accept_floats(builder);
  const Float to = floats.empty() ? Float::f32 : floats[0];
  const IntegerType from = accept_integer(builder);
  const Rounding rounding = accept_rounding(builder);
  const Handler handler = with_float(to, [&]<class T>(T) {
    return with_type(from, []<class Int>(Int) -> Handler { return integer_to_float<T, Int>; });
  });
  emit_conversion(builder, handler, rounding, to == Float::f64 ? 2 : 1, from.words(), 0);
}

void decode_f2i(MachineBuilder& builder) {
  const auto floats = accept_floats(builder);
  const Float from = floats.empty() ? Float::f32 : floats[0];
  const IntegerType to = accept_integer(builder);
  const Rounding rounding = accept_rounding(builder);
  I64 flags = builder.accept("FTZ") ? kFlushes : 0;
  if (builder.accept("NTZ")) flags |= kNanIsZero;
  const Handler handler = with_type(to, [&]<class Int>(Int) {
    return with_float(from, []<class T>(T) -> Handler { return float_to_integer<Int, T>; });
  });
  emit_conversion(builder, handler, rounding, to.words(), from == Float::f64 ? 2 : 1, flags);
}

void decode_f2f(MachineBuilder& builder) {
  const auto floats = accept_floats(builder);
  const Float to = floats.empty() ? Float::f32 : floats[0];
  const Float from = floats.size() > 1 ? floats[1] : Float::f32;
  const Rounding rounding = accept_rounding(builder);
  const I64 flags = builder.accept("FTZ") ? kFlushes : 0;
  const Handler handler = with_float(to, [&]<class To>(To) {
    return with_float(from, []<class From>(From) -> Handler { return float_to_float<To, From>; });
  });
  emit_conversion(builder, handler, rounding, to == Float::f64 ? 2 : 1, from == Float::f64 ? 2 : 1, flags);
}

void decode_frnd(MachineBuilder& builder) {
  const auto floats = accept_floats(builder);
  const Float format = floats.empty() ? Float::f32 : floats[0];
  const Rounding rounding = accept_rounding(builder);
  const I64 flags = builder.accept("FTZ") ? kFlushes : 0;
  const unsigned words = format == Float::f64 ? 2 : 1;
  emit_conversion(builder, with_float(format, []<class T>(T) -> Handler { return to_whole<T>; }), rounding,
                  words, words, flags);
}

constexpr MachineOpcode kOpcodes[] = {
    {"I2F", decode_i2f}, {"I2FP", decode_i2f},  {"F2I", decode_f2i},
    {"F2F", decode_f2f}, {"FRND", decode_frnd},

};

}  // namespace

Rounding accept_rounding(MachineBuilder& builder) {
  switch (builder.accept_one_of({"RZ", "RM", "RP", "RN", "TRUNC", "FLOOR", "CEIL", "ROUND"})) {
    case 0:
    case 4:
      return Rounding::rz;
    case 1:
    case 5:
      return Rounding::rm;
    case 2:
    case 6:
      return Rounding::rp;
    default:
      return Rounding::rn;
  }
}

std::vector<Float> accept_floats(MachineBuilder& builder) {
  std::vector<std::pair<unsigned, Float>> found;
  const auto& modifiers = builder.instruction().modifiers;
  for (unsigned i = 0; i < modifiers.size(); ++i) {
    const std::string_view name = sass::name_of(modifiers[i]);
    const auto add = [&](std::string_view wanted, Float format) {
      if (name == wanted && builder.accept(wanted)) found.emplace_back(i, format);
    };
    add("F16", Float::f16);
    add("F32", Float::f32);
    add("F64", Float::f64);
    add("BF16", Float::bf16);
  }
  std::vector<Float> formats;
  for (const auto& [position, format] : found) formats.push_back(format);
  return formats;
}

std::span<const MachineOpcode> machine_convert_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
