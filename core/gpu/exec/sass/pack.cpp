// SPDX-License-Identifier: Apache-2.0
// Conversions to narrow numbers that share a register, and back.
#include <algorithm>
#include <array>
#include <cmath>

#include "gpu/exec/numerics/fp8.hpp"
#include "gpu/exec/numerics/half.hpp"
#include "gpu/exec/sass/builder.hpp"
#include "gpu/exec/sass/conversion.hpp"

namespace manyscale::gpu {
namespace {

using I64 = std::int64_t;
using U32 = std::uint32_t;

constexpr I64 kRelu = I64{1} << (kFreeBits + 4);

// F2FP: two floats become two halves of a register; the first operand is the upper one.
template <class Half>
void pack_halves(Warp& warp, const Op& op) {
  const Numbers<float, true> a(warp, op, 0), b(warp, op, 1);
  const bool positive = (op.immediate & kRelu) != 0;
  const bool cut = rounding_of(op) == Rounding::rz;
  const auto half = [=](float x) {
    Half result;
    if constexpr (std::is_same_v<Half, F16>)
      result = cut ? to_f16<Rounding::rz>(x) : to_f16(x);
    else
      result = cut ? to_bf16<Rounding::rz>(x) : to_bf16(x);
    return U32{positive ? relu(result).bits : result.bits};
  };
  for_words(warp, op.dst, [=](unsigned i) { return half(a[i]) << 16 | half(b[i]); });
}

// F2FP with .MERGE_C: one float becomes the lower half, the upper one is that of a third operand.
template <class Half>
void merge_half(Warp& warp, const Op& op) {
  std::array<U32, kLanes> above;
  std::copy_n(warp.lanes<U32>(op.src[2]), kLanes, above.begin());
  pack_halves<Half>(warp, op);
  U32* result = warp.lanes<U32>(op.dst);
  for_each_active(warp.mask, [&](unsigned i) { result[i] = (result[i] & 0xffff) | (above[i] & 0xffff0000); });
}

// Two numbers of eight bits become halves, or the other way around beside what a third operand has above.
template <class Byte>
void unpack_bytes(Warp& warp, const Op& op) {
  const Words<false> a(warp, op, 0);
  const bool positive = (op.immediate & kRelu) != 0;
  const unsigned shift = op.count;
  const auto half = [=](U32 byte) {
    const F16 result = to_f16(Byte{static_cast<std::uint8_t>(byte)});
    return U32{positive ? relu(result).bits : result.bits};
  };
  for_words(warp, op.dst, [=](unsigned i) { return half(a[i] >> (shift + 8)) << 16 | half(a[i] >> shift); });
}

template <class Byte, class Number>
Byte to_byte(Number value, bool positive) {
  Byte result;
  if constexpr (std::is_same_v<Byte, E4m3>)
    result = to_e4m3<Overflow::satfinite>(value);
  else
    result = to_e5m2<Overflow::satfinite>(value);
  return positive ? relu(result) : result;
}

template <class Byte>
void pack_float_bytes(Warp& warp, const Op& op) {
  const Numbers<float, true> a(warp, op, 0), b(warp, op, 1);
  const U32* c = warp.lanes<U32>(op.src[2]);
  const bool positive = (op.immediate & kRelu) != 0;
  for_words(warp, op.dst, [=](unsigned i) {
    return U32{to_byte<Byte>(a[i], positive).bits} << 8 | to_byte<Byte>(b[i], positive).bits | c[i] << 16;
  });
}

template <class Byte>
void pack_half_bytes(Warp& warp, const Op& op) {
  const Words<false> a(warp, op, 0);
  const U32* c = warp.lanes<U32>(op.src[2]);
  const bool positive = (op.immediate & kRelu) != 0;
  for_words(warp, op.dst, [=](unsigned i) {
    const F16 upper{static_cast<std::uint16_t>(a[i] >> 16)};
    const F16 lower{static_cast<std::uint16_t>(a[i])};
    return U32{to_byte<Byte>(upper, positive).bits} << 8 | to_byte<Byte>(lower, positive).bits | c[i] << 16;
  });
}

// F2FP.TF32: a float without the lowest bits of its mantissa.
template <Rounding rounding>
void shorten(Warp& warp, const Op& op) {
  const Words<false> a(warp, op, 0);
  const bool positive = (op.immediate & kRelu) != 0;
  for_words(warp, op.dst, [=](unsigned i) {
    const Tf32 result = to_tf32<rounding>(std::bit_cast<float>(a[i]));
    return positive ? relu(result).bits : result.bits;
  });
}

void decode_to_tf32(MachineBuilder& builder) {
  builder.ignore({"F32", "PACK_B"});
  const bool positive = builder.accept("RELU");
  const Rounding rounding = accept_rounding(builder);
  if (rounding != Rounding::rn && rounding != Rounding::rz) builder.unsupported("no such rounding");
  const Slot dst = builder.destination();
  const Slot from = builder.source(0);
  Op& op =
      builder.emit(rounding == Rounding::rz ? shorten<Rounding::rz> : shorten<Rounding::rn>, Class::convert);
  op.dst = dst;
  op.src[0] = from;
  op.immediate = positive ? kRelu : 0;
}

void decode_f2fp(MachineBuilder& builder) {
  if (builder.accept("TF32")) return decode_to_tf32(builder);
  const bool five = builder.accept("E5M2");
  const bool four = builder.accept("E4M3");
  const auto floats = accept_floats(builder);
  builder.ignore({"SATFINITE"});
  const bool positive = builder.accept("RELU");
  const bool merges = builder.accept("MERGE_C");
  const int bytes = builder.accept_one_of({"UNPACK_B", "UNPACK_B_MERGE_C", "PACK_AB_MERGE_C"});
  if (bytes < 0 && !merges && !builder.accept("PACK_AB")) builder.unsupported("only .PACK_AB is known");
  if ((bytes >= 0) != (five || four)) builder.unsupported("no such numbers are packed");
  const Rounding rounding = accept_rounding(builder);
  // Before sm_89 F16 is not printed.
  const Float format = floats.empty() ? Float::f16 : floats[0];
  Handler handler = nullptr;
  if (bytes == 0)
    handler = five ? unpack_bytes<E5m2> : unpack_bytes<E4m3>;
  else if (bytes == 1)
    handler = five ? pack_half_bytes<E5m2> : pack_half_bytes<E4m3>;
  else if (bytes == 2)
    handler = five ? pack_float_bytes<E5m2> : pack_float_bytes<E4m3>;
  else if (format == Float::f16)
    handler = merges ? merge_half<F16> : pack_halves<F16>;
  else if (format == Float::bf16)
    handler = merges ? merge_half<Bf16> : pack_halves<Bf16>;
  if (handler == nullptr || (bytes == 0 && format != Float::f16))
    builder.unsupported("only halves are packed");
  I64 modifiers = 0;
  const Slot dst = builder.destination();
  const bool one = merges || bytes == 0 || bytes == 1;
  const Slot first = builder.source(0, 1, &modifiers, merges ? 1 : 0);
  Slot second = kNoSlot;
  if (!one) second = builder.source(1, 1, &modifiers, 1);
  const unsigned next = one ? 1 : 2;
  const Slot third = builder.values() > next ? builder.source(next) : builder.constant(0);
  Op& op = builder.emit(handler, Class::convert);
  op.dst = dst;
  op.src = {merges ? builder.constant(0) : first, merges ? first : second, third, kNoSlot};
  op.count = builder.value(0).has(sass::mod("H1")) ? 16 : 0;
  op.immediate = modifiers | (positive ? kRelu : 0) | I64{static_cast<unsigned>(rounding)} << kRoundingBits;
}

// I2IP and I2I: integers clamped to fewer bits, two beside one another below a third, or one alone.
struct Clamp {
  std::int32_t least = 0;
  std::int32_t most = 0;
  unsigned bits = 0;

  U32 operator()(U32 word) const {
    const auto value = static_cast<std::int32_t>(word);
    return static_cast<U32>(value < least ? least : value > most ? most : value);
  }
  U32 field(U32 word) const { return (*this)(word) & ((U32{1} << bits) - 1); }
};

Clamp clamp_of(const Op& op) {
  const bool is_signed = op.bytes != 0;
  const unsigned bits = op.count;
  const std::int32_t most = (1 << (bits - (is_signed ? 1 : 0))) - 1;
  return {is_signed ? -most - 1 : 0, most, bits};
}

void pack_integers(Warp& warp, const Op& op) {
  const Words<false> a(warp, op, 0), b(warp, op, 1), c(warp, op, 2);
  const Clamp clamp = clamp_of(op);
  const unsigned above = 2 * clamp.bits;
  for_words(warp, op.dst, [=](unsigned i) {
    const U32 rest = above < 32 ? c[i] << above : 0;
    return clamp.field(a[i]) << clamp.bits | clamp.field(b[i]) | rest;
  });
}

void clamp_integer(Warp& warp, const Op& op) {
  const Words<false> a(warp, op, 0);
  const Clamp clamp = clamp_of(op);
  for_words(warp, op.dst, [=](unsigned i) { return clamp(a[i]); });
}

void accept_clamp(MachineBuilder& builder, std::uint8_t& bits, std::uint8_t& is_signed) {
  const int which = builder.accept_one_of({"U8", "S8", "U16", "S16", "U2", "S2", "U4", "S4"});
  constexpr std::array<std::uint8_t, 4> kBits = {8, 16, 2, 4};
  if (which < 0) builder.unsupported("no such integer");
  bits = kBits[static_cast<unsigned>(which) / 2];
  is_signed = static_cast<std::uint8_t>(which % 2);
  builder.ignore({"S32", "SAT"});
}

void decode_i2ip(MachineBuilder& builder) {
  std::uint8_t bits = 0;
  std::uint8_t is_signed = 0;
  accept_clamp(builder, bits, is_signed);
  const Slot dst = builder.destination();
  const Slot a = builder.source(0);
  const Slot b = builder.source(1);
  const Slot c = builder.source(2);
  Op& op = builder.emit(pack_integers, Class::convert);
  op.dst = dst;
  op.src = {a, b, c, kNoSlot};
  op.count = bits;
  op.bytes = is_signed;
}

void decode_i2i(MachineBuilder& builder) {
  std::uint8_t bits = 0;
  std::uint8_t is_signed = 0;
  accept_clamp(builder, bits, is_signed);
  const Slot dst = builder.destination();
  const Slot a = builder.source(0);
  Op& op = builder.emit(clamp_integer, Class::convert);
  op.dst = dst;
  op.src[0] = a;
  op.count = bits;
  op.bytes = is_signed;
}

// F2IP: two floats become bytes, clamped, below the lower half of a third operand.
void pack_rounded_bytes(Warp& warp, const Op& op) {
  const Numbers<float, false> a(warp, op, 0), b(warp, op, 1);
  const U32* c = warp.lanes<U32>(op.src[2]);
  const bool is_signed = op.bytes != 0;
  const float least = is_signed ? -128.0F : 0.0F;
  const float most = is_signed ? 127.0F : 255.0F;
  const Rounding rounding = rounding_of(op);
  const auto byte = [=](float x) {
    if (x != x) return U32{0};
    const float whole = rounding == Rounding::rz   ? std::trunc(x)
                        : rounding == Rounding::rm ? std::floor(x)
                        : rounding == Rounding::rp ? std::ceil(x)
                                                   : std::nearbyint(x);
    return static_cast<U32>(static_cast<std::int32_t>(std::clamp(whole, least, most))) & 0xff;
  };
  for_words(warp, op.dst, [=](unsigned i) { return byte(a[i]) << 8 | byte(b[i]) | c[i] << 16; });
}

void decode_f2ip(MachineBuilder& builder) {
  const bool is_signed = builder.accept("S8");
  builder.ignore({"U8", "F32", "NTZ"});
  const Rounding rounding = accept_rounding(builder);
  const Slot dst = builder.destination();
  const Slot a = builder.source(0);
  const Slot b = builder.source(1);
  const Slot c = builder.source(2);
  Op& op = builder.emit(pack_rounded_bytes, Class::convert);
  op.dst = dst;
  op.src = {a, b, c, kNoSlot};
  op.bytes = is_signed ? 1 : 0;
  op.immediate = I64{static_cast<unsigned>(rounding)} << kRoundingBits;
}

constexpr MachineOpcode kOpcodes[] = {
    {"F2FP", decode_f2fp}, {"I2IP", decode_i2ip}, {"I2I", decode_i2i}, {"F2IP", decode_f2ip}};

}  // namespace

std::span<const MachineOpcode> machine_pack_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
