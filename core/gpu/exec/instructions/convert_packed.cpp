// SPDX-License-Identifier: Apache-2.0
// Conversions to and from two numbers in one register; of two sources the first becomes the upper half.
#include <array>

#include "gpu/exec/instructions/convert.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/numerics/fp8.hpp"
#include "gpu/exec/numerics/half.hpp"
#include "gpu/exec/numerics/half_arrays.hpp"

namespace manyscale::gpu {
namespace {

using ptx::Type;

template <class Word, class T>
constexpr Word joined(T high, T low) {
  return static_cast<Word>(static_cast<Word>(high.bits) << (8 * sizeof(T)) | low.bits);
}

// Two f32 to f16 or bf16.
template <class T, auto to_half>
void pack_halves(Warp& warp, const Op& op) {
  const float* high = warp.lanes<float>(op.src[0]);
  const float* low = warp.lanes<float>(op.src[1]);
  std::uint32_t* const result = warp.lanes<std::uint32_t>(op.dst);
  if (op.flags & kRelu) {
    for_lanes(warp, result, [=](unsigned i) {
      return joined<std::uint32_t>(relu(to_half(high[i])), relu(to_half(low[i])));
    });
  } else {
    for_lanes(warp, result,
              [=](unsigned i) { return joined<std::uint32_t>(to_half(high[i]), to_half(low[i])); });
  }
}

// The usual case of it.
void pack_nearest_f16(Warp& warp, const Op& op) {
  if (op.flags != 0) return pack_halves<F16, [](float a) { return to_f16(a); }>(warp, op);
  alignas(64) std::array<F16, kLanes> high;
  alignas(64) std::array<F16, kLanes> low;
  narrow(warp.lanes<float>(op.src[0]), high.data(), kLanes);
  narrow(warp.lanes<float>(op.src[1]), low.data(), kLanes);
  for_lanes(warp, warp.lanes<std::uint32_t>(op.dst),
            [&](unsigned i) { return joined<std::uint32_t>(high[i], low[i]); });
}

template <Rounding R, Overflow O>
constexpr Handler kPackF16 = pack_halves<F16, [](float a) { return to_f16<R, O>(a); }>;
template <Rounding R, Overflow O>
constexpr Handler kPackBf16 = pack_halves<Bf16, [](float a) { return to_bf16<R, O>(a); }>;

constexpr Overflow kIeee = Overflow::ieee, kFinite = Overflow::satfinite;

// [.rz][.satfinite]
constexpr Handler kPacksF16[2][2] = {{pack_nearest_f16, kPackF16<Rounding::rn, kFinite>},
                                     {kPackF16<Rounding::rz, kIeee>, kPackF16<Rounding::rz, kFinite>}};
constexpr Handler kPacksBf16[2][2] = {{kPackBf16<Rounding::rn, kIeee>, kPackBf16<Rounding::rn, kFinite>},
                                      {kPackBf16<Rounding::rz, kIeee>, kPackBf16<Rounding::rz, kFinite>}};

constexpr auto kToE4m3 = [](auto a) { return to_e4m3(a); };
constexpr auto kToE5m2 = [](auto a) { return to_e5m2(a); };

template <class T>
T relu_if(bool wanted, T value) {
  return wanted ? relu(value) : value;
}

// Two f32 to a format of 8 bits.
template <auto to_byte>
void pack_bytes(Warp& warp, const Op& op) {
  const bool positive = op.flags & kRelu;
  map2<std::uint16_t, float, float>(warp, op, [positive](float high, float low) {
    return joined<std::uint16_t>(relu_if(positive, to_byte(high)), relu_if(positive, to_byte(low)));
  });
}

// f16x2 to a format of 8 bits.
template <auto to_byte>
void narrow_halves(Warp& warp, const Op& op) {
  const bool positive = op.flags & kRelu;
  map1<std::uint16_t, std::uint32_t>(warp, op, [positive](std::uint32_t a) {
    const F16 high{static_cast<std::uint16_t>(a >> 16)};
    const F16 low{static_cast<std::uint16_t>(a)};
    return joined<std::uint16_t>(relu_if(positive, to_byte(high)), relu_if(positive, to_byte(low)));
  });
}

// A format of 8 bits to f16x2.
template <class Byte>
void widen_bytes(Warp& warp, const Op& op) {
  const bool positive = op.flags & kRelu;
  map1<std::uint32_t, std::uint16_t>(warp, op, [positive](std::uint16_t a) {
    const F16 high = to_f16(Byte{static_cast<std::uint8_t>(a >> 8)});
    const F16 low = to_f16(Byte{static_cast<std::uint8_t>(a)});
    return joined<std::uint32_t>(relu_if(positive, high), relu_if(positive, low));
  });
}

void emit_packed(Builder& builder, Handler handler, Type to, Type from, unsigned sources) {
  builder.expect_operands(1 + sources);
  const bool relu = builder.accept("relu");
  const Slot dst = builder.destination(0, to);
  const Slot a = builder.source(1, from);
  const Slot b = sources == 2 ? builder.source(2, from) : kNoSlot;
  Op& op = builder.emit(handler, Class::convert);
  op.dst = dst;
  op.src = {a, b, kNoSlot, kNoSlot};
  op.flags = relu ? kRelu : 0;
}

// --- cvt.pack ---------------------------------------------------------------------------------------------

// Two integers limited to a range, in the lowest bits, and the bits of a third above them.
void pack_integers(Warp& warp, const Op& op) {
  const unsigned bits = op.count;
  const auto most = static_cast<std::int32_t>(op.immediate);
  const std::int32_t least = op.flags != 0 ? -most - 1 : 0;
  const std::uint32_t mask = (std::uint32_t{1} << bits) - 1;
  // The bits above two numbers of 16 bits: there are none.
  const unsigned above = bits == 16 ? 31 : 2 * bits;
  const std::uint32_t keep = bits == 16 ? 0 : ~std::uint32_t{0};
  const std::int32_t* a = warp.lanes<std::int32_t>(op.src[0]);
  const std::int32_t* b = warp.lanes<std::int32_t>(op.src[1]);
  const std::uint32_t* c = warp.lanes<std::uint32_t>(op.src[2]);
  const auto limited = [=](std::int32_t value) {
    const std::int32_t raised = value < least ? least : value;
    return static_cast<std::uint32_t>(raised > most ? most : raised) & mask;
  };
  for_lanes(warp, warp.lanes<std::uint32_t>(op.dst),
            [=](unsigned i) { return ((c[i] & keep) << above) | (limited(a[i]) << bits) | limited(b[i]); });
}

struct PackedInteger {
  std::string_view name;
  unsigned bits;
  bool is_signed;
};

constexpr PackedInteger kPackedIntegers[] = {
    {"u16", 16, false}, {"s16", 16, true}, {"u8", 8, false}, {"s8", 8, true},
    {"u4", 4, false},   {"s4", 4, true},   {"u2", 2, false}, {"s2", 2, true},
};

}  // namespace

bool is_packed(Type type) {
  return type == Type::f16x2 || type == Type::bf16x2 || type == Type::e4m3x2 || type == Type::e5m2x2;
}

void decode_packed(Builder& builder, Type to, Type from) {
  const int rounding = builder.accept_one_of({"rn", "rz"});
  if (rounding < 0) builder.unsupported("needs .rn or .rz");
  const bool to_bytes = to == Type::e4m3x2 || to == Type::e5m2x2;
  const bool finite = builder.accept("satfinite");
  if (to_bytes && (!finite || rounding != 0)) builder.unsupported("needs .rn and .satfinite");
  const bool is_e4m3 = to == Type::e4m3x2 || from == Type::e4m3x2;
  if ((to == Type::f16x2 || to == Type::bf16x2) && from == Type::f32) {
    const auto& handlers = to == Type::f16x2 ? kPacksF16 : kPacksBf16;
    return emit_packed(builder, handlers[rounding][finite], to, from, 2);
  }
  if (to_bytes && from == Type::f32) {
    return emit_packed(builder, is_e4m3 ? pack_bytes<kToE4m3> : pack_bytes<kToE5m2>, to, from, 2);
  }
  if (to_bytes && from == Type::f16x2) {
    return emit_packed(builder, is_e4m3 ? narrow_halves<kToE4m3> : narrow_halves<kToE5m2>, to, from, 1);
  }
  if (to == Type::f16x2 && (from == Type::e4m3x2 || from == Type::e5m2x2) && rounding == 0 && !finite) {
    return emit_packed(builder, is_e4m3 ? widen_bytes<E4m3> : widen_bytes<E5m2>, to, from, 1);
  }
  builder.unsupported("not defined for these types");
}

void decode_pack(Builder& builder) {
  if (!builder.accept("sat")) builder.unsupported("needs .sat");
  for (const PackedInteger& type : kPackedIntegers) {
    if (!builder.accept(type.name)) continue;
    if (!builder.accept("s32")) builder.unsupported("not defined for these types");
    const bool has_third = type.bits < 16;
    if (has_third && !builder.accept("b32")) builder.unsupported("needs .b32");
    builder.expect_operands(has_third ? 4 : 3);
    const Slot dst = builder.destination(0, Type::b32);
    const Slot a = builder.source(1, Type::s32);
    const Slot b = builder.source(2, Type::s32);
    const Slot c = has_third ? builder.source(3, Type::b32) : a;
    Op& op = builder.emit(pack_integers, Class::convert);
    op.dst = dst;
    op.src = {a, b, c, kNoSlot};
    op.count = static_cast<std::uint8_t>(type.bits);
    op.flags = type.is_signed;
    op.immediate = (std::int64_t{1} << (type.bits - type.is_signed)) - 1;
    return;
  }
  builder.unsupported("not defined for these types");
}

}  // namespace manyscale::gpu
