// SPDX-License-Identifier: Apache-2.0
// Any conversion, as steps over all lanes: read the source, widen it to 64 bits, convert, adjust, write. Each
// step is chosen at run time, so that there are as many pieces of code as types, not pairs of types.
#include <array>
#include <limits>

#include "gpu/exec/instructions/convert.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/numerics/float_to_int.hpp"
#include "gpu/exec/numerics/flush.hpp"
#include "gpu/exec/numerics/half.hpp"
#include "gpu/exec/numerics/rounding.hpp"

namespace manyscale::gpu {
namespace {

using ptx::Type;

using Words = std::array<std::uint64_t, kLanes>;  // bits, or integers extended to 64 bits
using Numbers = std::array<double, kLanes>;

// The lowest bits of a word, extended by zeros or by the sign.
std::uint64_t extended(std::uint64_t word, unsigned bits, bool is_signed) {
  const unsigned shift = 64 - bits;
  const std::uint64_t aligned = word << shift;
  return is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(aligned) >> shift)
                   : aligned >> shift;
}

void extend(Words& words, Type type) {
  const unsigned bits = 8 * ptx::size_of(type);
  const bool is_signed = ptx::is_signed(type) && !ptx::is_float(type);
  for (std::uint64_t& word : words) word = extended(word, bits, is_signed);
}

void read(const Warp& warp, Slot slot, unsigned bytes, Words& words) {
  with_register(bytes, [&]<class Register>(Register) {
    const Register* source = warp.lanes<Register>(slot);
    for (unsigned i = 0; i < kLanes; ++i) words[i] = source[i];
  });
}

void write(Warp& warp, Slot slot, unsigned bytes, const Words& words) {
  with_register(bytes, [&]<class Register>(Register) {
    for_lanes(warp, warp.lanes<Register>(slot), [&](unsigned i) { return static_cast<Register>(words[i]); });
  });
}

// Every number of a smaller format is one of f64.
void decode_numbers(const Words& words, Type type, bool flushes, Numbers& numbers) {
  const auto each = [&](auto decode_one) {
    for (unsigned i = 0; i < kLanes; ++i) numbers[i] = decode_one(words[i]);
  };
  switch (type) {
    case Type::f16:
      return each([](std::uint64_t word) { return to_f64(F16{static_cast<std::uint16_t>(word)}); });
    case Type::bf16:
      return each([](std::uint64_t word) { return to_f64(Bf16{static_cast<std::uint16_t>(word)}); });
    case Type::f32:
      return each([flushes](std::uint64_t word) {
        const float number = from_bits<float>(static_cast<std::uint32_t>(word));
        return to_f64(flushes ? flush(number) : number);
      });
    default:
      return each([](std::uint64_t word) { return from_bits<double>(word); });
  }
}

void round_to_whole(Numbers& numbers, Rounding rounding) {
  with_rounding(rounding, [&]<Rounding R>() {
    for (double& number : numbers) number = to_integral<R>(number);
  });
}

template <class T>
T adjusted(T value, unsigned flags) {
  if constexpr (std::is_same_v<T, float>) {
    if (flags & kFtz) value = flush(value);
  } else if constexpr (!std::is_same_v<T, double>) {
    if (flags & kRelu) value = relu(value);
  }
  if constexpr (!std::is_same_v<T, Tf32>) {
    if (flags & kSat) value = saturate(value);
  }
  return value;
}

// words[i] = the bits of convert(i), with what the flags ask for.
template <class F>
void encode_each(Words& words, unsigned flags, F convert) {
  for (unsigned i = 0; i < kLanes; ++i) words[i] = adjusted(convert(i), flags).bits;
}

template <class T, class F>
void encode_floats(Words& words, unsigned flags, F convert) {
  for (unsigned i = 0; i < kLanes; ++i) words[i] = bits_of(adjusted(T{convert(i)}, flags));
}

template <Rounding R>
void encode_numbers(const Numbers& numbers, Type type, unsigned flags, Words& words) {
  const bool finite = flags & kSatfinite;
  switch (type) {
    case Type::f16:
      return finite ? encode_each(words, flags,
                                  [&](unsigned i) { return to_f16<R, Overflow::satfinite>(numbers[i]); })
                    : encode_each(words, flags, [&](unsigned i) { return to_f16<R>(numbers[i]); });
    case Type::bf16:
      return finite ? encode_each(words, flags,
                                  [&](unsigned i) { return to_bf16<R, Overflow::satfinite>(numbers[i]); })
                    : encode_each(words, flags, [&](unsigned i) { return to_bf16<R>(numbers[i]); });
    case Type::f32:
      return encode_floats<float>(words, flags, [&](unsigned i) { return to_f32<R>(numbers[i]); });
    default:
      return encode_floats<double>(words, flags, [&](unsigned i) { return numbers[i]; });
  }
}

// Numbers that come from f32, to tf32, the one format with a rounding of its own.
template <Rounding R>
void encode_tf32(const Numbers& numbers, unsigned flags, Words& words) {
  const bool finite = flags & kSatfinite;
  encode_each(words, flags, [&](unsigned i) {
    const auto number = static_cast<float>(numbers[i]);
    return finite ? to_tf32<R, Overflow::satfinite>(number) : to_tf32<R>(number);
  });
}

template <Rounding R, class Int>
void encode_integers(const Words& integers, Type type, unsigned flags, Words& words) {
  const auto value = [&](unsigned i) { return static_cast<Int>(integers[i]); };
  switch (type) {
    case Type::f16:
      return encode_each(words, flags, [&](unsigned i) { return from_int<F16, R>(value(i)); });
    case Type::bf16:
      return encode_each(words, flags, [&](unsigned i) { return from_int<Bf16, R>(value(i)); });
    case Type::f32:
      return encode_floats<float>(words, flags, [&](unsigned i) { return from_int<float, R>(value(i)); });
    default:
      return encode_floats<double>(words, flags, [&](unsigned i) { return from_int<double, R>(value(i)); });
  }
}

void to_integers(const Numbers& numbers, Type type, bool nan_is_zero, Words& words) {
  with_integer(type, [&]<class Int>(Int) {
    for (unsigned i = 0; i < kLanes; ++i) {
      const double number = nan_is_zero && is_nan(numbers[i]) ? 0.0 : numbers[i];
      words[i] = static_cast<std::uint64_t>(to_int<Int, Rounding::rz>(number));
    }
  });
}

// `.sat` between integers: extended words limited to the range of a type.
void limit(Words& words, Type to, bool from_signed) {
  const unsigned bits = 8 * ptx::size_of(to);
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() >> (64 - bits + ptx::is_signed(to));
  if (!from_signed) {
    for (std::uint64_t& word : words) word = word > most ? most : word;
    return;
  }
  // The largest u64 is beyond any signed integer.
  const auto highest = static_cast<std::int64_t>(most >> (to == Type::u64));
  const std::int64_t lowest = ptx::is_signed(to) ? -highest - 1 : 0;
  for (std::uint64_t& word : words) {
    const auto value = static_cast<std::int64_t>(word);
    word = static_cast<std::uint64_t>(value > highest ? highest : value < lowest ? lowest : value);
  }
}

void convert_numbers(const Conversion& conversion, const Words& source, Words& result) {
  const Type to = conversion.to;
  const Type from = conversion.from;
  Numbers numbers;
  decode_numbers(source, from, conversion.flags & kFtz, numbers);
  if (conversion.to_whole) round_to_whole(numbers, conversion.rounding);
  if (!ptx::is_float(to)) {
    const bool wide = from == Type::f64 || ptx::size_of(to) == 8;
    return to_integers(numbers, to, !wide, result);
  }
  if (to == Type::tf32 && conversion.rounding == Rounding::rna) {
    return encode_tf32<Rounding::rna>(numbers, conversion.flags, result);
  }
  with_rounding(conversion.rounding, [&]<Rounding R>() {
    if (to == Type::tf32) return encode_tf32<R>(numbers, conversion.flags, result);
    encode_numbers<R>(numbers, to, conversion.flags, result);
  });
}

void convert_integers(const Conversion& conversion, Words& source, Words& result) {
  extend(source, conversion.from);
  if (!ptx::is_float(conversion.to)) {
    result = source;
    if (conversion.flags & kSat) limit(result, conversion.to, ptx::is_signed(conversion.from));
    return;
  }
  with_rounding(conversion.rounding, [&]<Rounding R>() {
    if (conversion.from == Type::u64) {
      encode_integers<R, std::uint64_t>(source, conversion.to, conversion.flags, result);
    } else {
      encode_integers<R, std::int64_t>(source, conversion.to, conversion.flags, result);
    }
  });
}

}  // namespace

void convert_by_steps(Warp& warp, const Op& op) {
  const Conversion conversion = unpacked(op.immediate);
  alignas(64) Words source;
  alignas(64) Words result;
  read(warp, op.src[0], conversion.from_bytes, source);
  if (ptx::is_float(conversion.from)) {
    convert_numbers(conversion, source, result);
  } else {
    convert_integers(conversion, source, result);
  }
  extend(result, conversion.to);
  write(warp, op.dst, conversion.to_bytes, result);
}

}  // namespace manyscale::gpu
