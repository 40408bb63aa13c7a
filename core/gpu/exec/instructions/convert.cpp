// SPDX-License-Identifier: Apache-2.0
// Conversions. Those that programs use most have handlers of their own; the others go by steps.
#include "gpu/exec/instructions/convert.hpp"

#include <array>
#include <type_traits>

#include "gpu/exec/lanes.hpp"
#include "gpu/exec/numerics/float_to_int.hpp"
#include "gpu/exec/numerics/half.hpp"
#include "gpu/exec/numerics/half_arrays.hpp"
#include "gpu/exec/numerics/rounding.hpp"
#include "gpu/exec/opcodes.hpp"

namespace manyscale::gpu {
namespace {

using ptx::Type;

// --- Handlers of their own --------------------------------------------------------------------------------

template <auto function, class D, class S>
void convert(Warp& warp, const Op& op) {
  map1<D, S>(warp, op, function);
}

template <class D, class S>
constexpr Handler kNearestOfInteger = convert<[](S a) { return from_int<D>(a); }, D, S>;
template <class D, class S, Rounding R>
constexpr Handler kInteger = convert<[](S a) { return to_int<D, R>(a); }, D, S>;
template <class T, Rounding R>
constexpr Handler kWhole = convert<[](T a) { return to_integral<R>(a); }, T, T>;
template <Rounding R>
constexpr Handler kWholeFlushed = convert<[](float a) { return to_integral<R>(flush(a)); }, float, float>;
template <bool Ftz>
constexpr Handler kDouble = convert<[](float a) { return to_f64(flush_if<Ftz>(a)); }, double, float>;
template <bool Ftz>
constexpr Handler kSingle = convert<[](double a) { return flush_if<Ftz>(to_f32(a)); }, float, double>;
constexpr Handler kSingleOfBfloat =
    convert<[](std::uint16_t a) { return to_f32(Bf16{a}); }, float, std::uint16_t>;
constexpr Handler kBfloat = convert<[](float a) { return to_bf16(a).bits; }, std::uint16_t, float>;
constexpr Handler kTensor = convert<[](float a) { return to_tf32(a).bits; }, std::uint32_t, float>;
constexpr Handler kSaturated = convert<[](float a) { return saturate(a); }, float, float>;

void single_of_half(Warp& warp, const Op& op) {
  alignas(64) std::array<float, kLanes> numbers;
  widen(warp.lanes<F16>(op.src[0]), numbers.data(), kLanes);
  for_lanes(warp, warp.lanes<float>(op.dst), [&](unsigned i) { return canonical(numbers[i]); });
}

void half_of_single(Warp& warp, const Op& op) {
  alignas(64) std::array<F16, kLanes> numbers;
  narrow(warp.lanes<float>(op.src[0]), numbers.data(), kLanes);
  for_lanes(warp, warp.lanes<std::uint16_t>(op.dst), [&](unsigned i) { return numbers[i].bits; });
}

// A conversion with a handler of its own, of registers as large as the types.
struct Direct {
  Type to;
  Type from;
  Rounding rounding;
  bool to_whole;
  std::uint16_t flags;
  Handler handler;
};

constexpr Rounding rn = Rounding::rn, rz = Rounding::rz, rm = Rounding::rm, rp = Rounding::rp;

constexpr Direct kDirect[] = {
    {Type::f32, Type::s32, rn, false, 0, kNearestOfInteger<float, std::int32_t>},
    {Type::f32, Type::u32, rn, false, 0, kNearestOfInteger<float, std::uint32_t>},
    {Type::f32, Type::s16, rn, false, 0, kNearestOfInteger<float, std::int16_t>},
    {Type::f32, Type::u16, rn, false, 0, kNearestOfInteger<float, std::uint16_t>},
    {Type::f32, Type::s64, rn, false, 0, kNearestOfInteger<float, std::int64_t>},
    {Type::f32, Type::u64, rn, false, 0, kNearestOfInteger<float, std::uint64_t>},
    {Type::f64, Type::s32, rn, false, 0, kNearestOfInteger<double, std::int32_t>},
    {Type::f64, Type::u32, rn, false, 0, kNearestOfInteger<double, std::uint32_t>},
    {Type::f64, Type::s64, rn, false, 0, kNearestOfInteger<double, std::int64_t>},
    {Type::f64, Type::u64, rn, false, 0, kNearestOfInteger<double, std::uint64_t>},
    {Type::s32, Type::f32, rz, true, 0, kInteger<std::int32_t, float, rz>},
    {Type::s32, Type::f32, rn, true, 0, kInteger<std::int32_t, float, rn>},
    {Type::s32, Type::f32, rm, true, 0, kInteger<std::int32_t, float, rm>},
    {Type::s32, Type::f32, rp, true, 0, kInteger<std::int32_t, float, rp>},
    {Type::u32, Type::f32, rz, true, 0, kInteger<std::uint32_t, float, rz>},
    {Type::u32, Type::f32, rn, true, 0, kInteger<std::uint32_t, float, rn>},
    {Type::s64, Type::f32, rz, true, 0, kInteger<std::int64_t, float, rz>},
    {Type::u64, Type::f32, rz, true, 0, kInteger<std::uint64_t, float, rz>},
    {Type::s32, Type::f64, rz, true, 0, kInteger<std::int32_t, double, rz>},
    {Type::s32, Type::f64, rn, true, 0, kInteger<std::int32_t, double, rn>},
    {Type::s32, Type::f64, rm, true, 0, kInteger<std::int32_t, double, rm>},
    {Type::u32, Type::f64, rz, true, 0, kInteger<std::uint32_t, double, rz>},
    {Type::s64, Type::f64, rz, true, 0, kInteger<std::int64_t, double, rz>},
    {Type::s64, Type::f64, rn, true, 0, kInteger<std::int64_t, double, rn>},
    {Type::u64, Type::f64, rz, true, 0, kInteger<std::uint64_t, double, rz>},
    {Type::f32, Type::f32, rn, true, 0, kWhole<float, rn>},
    {Type::f32, Type::f32, rz, true, 0, kWhole<float, rz>},
    {Type::f32, Type::f32, rm, true, 0, kWhole<float, rm>},
    {Type::f32, Type::f32, rp, true, 0, kWhole<float, rp>},
    {Type::f32, Type::f32, rn, true, kFtz, kWholeFlushed<rn>},
    {Type::f32, Type::f32, rz, true, kFtz, kWholeFlushed<rz>},
    {Type::f32, Type::f32, rm, true, kFtz, kWholeFlushed<rm>},
    {Type::f32, Type::f32, rp, true, kFtz, kWholeFlushed<rp>},
    {Type::f64, Type::f64, rn, true, 0, kWhole<double, rn>},
    {Type::f64, Type::f64, rz, true, 0, kWhole<double, rz>},
    {Type::f64, Type::f64, rm, true, 0, kWhole<double, rm>},
    {Type::f64, Type::f64, rp, true, 0, kWhole<double, rp>},
    {Type::f32, Type::f32, rn, false, kSat, kSaturated},
    {Type::f64, Type::f32, rn, false, 0, kDouble<false>},
    {Type::f64, Type::f32, rn, false, kFtz, kDouble<true>},
    {Type::f32, Type::f64, rn, false, 0, kSingle<false>},
    {Type::f32, Type::f64, rn, false, kFtz, kSingle<true>},
    {Type::f32, Type::f16, rn, false, 0, single_of_half},
    {Type::f32, Type::bf16, rn, false, 0, kSingleOfBfloat},
    {Type::f16, Type::f32, rn, false, 0, half_of_single},
    {Type::bf16, Type::f32, rn, false, 0, kBfloat},
    {Type::tf32, Type::f32, Rounding::rna, false, 0, kTensor},
};

// An integer in a register of type Register, of which the type S counts, as one that fills a register D.
template <class D, class S, class Register>
void resize(Warp& warp, const Op& op) {
  map1<D, Register>(warp, op, [](Register a) { return static_cast<D>(static_cast<S>(a)); });
}

Handler resize_handler(const Conversion& conversion) {
  return with_register(conversion.to_bytes, [&]<class D>(D) {
    return with_register(conversion.from_bytes, [&]<class Register>(Register) {
      return with_integer(conversion.from, [&]<class S>(S) -> Handler {
        // What is cut off anyway needs no extension.
        if constexpr (sizeof(S) >= sizeof(D) || sizeof(S) >= sizeof(Register)) {
          using Whole = std::conditional_t<std::is_signed_v<S>, std::make_signed_t<Register>, Register>;
          return resize<D, std::conditional_t<(sizeof(Register) < sizeof(D)), Whole, Register>, Register>;
        } else {
          return resize<D, S, Register>;
        }
      });
    });
  });
}

Handler handler_of(const Conversion& conversion) {
  const unsigned to_size = ptx::size_of(conversion.to);
  const bool exact = conversion.to_bytes == to_size && conversion.from_bytes == ptx::size_of(conversion.from);
  if (exact) {
    for (const Direct& direct : kDirect) {
      if (direct.to == conversion.to && direct.from == conversion.from &&
          direct.rounding == conversion.rounding && direct.to_whole == conversion.to_whole &&
          direct.flags == conversion.flags) {
        return direct.handler;
      }
    }
  }
  const bool integers = !ptx::is_float(conversion.to) && !ptx::is_float(conversion.from);
  if (integers && conversion.flags == 0 && conversion.to_bytes == to_size) return resize_handler(conversion);
  return convert_by_steps;
}

// --- Decoding ---------------------------------------------------------------------------------------------

bool is_convertible(Type type) {
  switch (type) {
    case Type::u8:
    case Type::u16:
    case Type::u32:
    case Type::u64:
    case Type::s8:
    case Type::s16:
    case Type::s32:
    case Type::s64:
    case Type::f16:
    case Type::bf16:
    case Type::f32:
    case Type::f64:
      return true;
    default:
      return false;
  }
}

// Rounds as the modifiers say, which must be those that the pair of types needs.
void accept_rounding(Builder& builder, Conversion& conversion) {
  const bool from_float = ptx::is_float(conversion.from);
  const bool to_float = ptx::is_float(conversion.to);
  const bool same = conversion.from == conversion.to;
  if (from_float && (!to_float || same)) {
    const int whole = builder.accept_one_of({"rni", "rzi", "rmi", "rpi"});
    if (whole < 0 && !to_float) builder.unsupported("needs .rni, .rzi, .rmi or .rpi");
    conversion.to_whole = whole >= 0;
    if (whole >= 0) conversion.rounding = static_cast<Rounding>(whole);
  } else if (to_float) {
    if (conversion.to == Type::tf32 && builder.accept("rna")) {
      conversion.rounding = Rounding::rna;
      return;
    }
    const int rounding = builder.accept_one_of({"rn", "rz", "rm", "rp"});
    // A wider format holds every number of a narrower one, and f16 and bf16 need no modifier between them.
    const bool optional = from_float && ptx::size_of(conversion.from) <= ptx::size_of(conversion.to) &&
                          conversion.to != Type::tf32;
    if (rounding < 0 && !optional) builder.unsupported("needs .rn, .rz, .rm or .rp");
    if (rounding >= 0) conversion.rounding = static_cast<Rounding>(rounding);
    if (optional && conversion.to != Type::f16 && conversion.to != Type::bf16) conversion.rounding = rn;
  }
}

void accept_limits(Builder& builder, Conversion& conversion) {
  const Type to = conversion.to;
  const Type from = conversion.from;
  if ((to == Type::f32 || from == Type::f32) && builder.accept("ftz")) conversion.flags |= kFtz;
  if (to != Type::bf16 && to != Type::tf32 && builder.accept("sat")) conversion.flags |= kSat;
  if (to == Type::f16 || to == Type::bf16 || to == Type::tf32) {
    if (builder.accept("relu")) conversion.flags |= kRelu;
    if (builder.accept("satfinite")) conversion.flags |= kSatfinite;
  }
  // Left out where they change nothing, so that the usual handler does.
  const bool from_float = ptx::is_float(from);
  if (!ptx::is_float(to) && from_float) conversion.flags &= static_cast<std::uint16_t>(~kSat);
  const bool towards_even_or_zero = conversion.rounding == rn || conversion.rounding == rz;
  const bool small_vanishes = !ptx::is_float(to) || to == Type::f16;
  const bool never_subnormal = !from_float || from == Type::f16;
  if (never_subnormal || (small_vanishes && towards_even_or_zero)) {
    conversion.flags &= static_cast<std::uint16_t>(~kFtz);
  }
}

// The type with which a register of that size is named.
Type bits_type(unsigned bytes) {
  return bytes == 2 ? Type::b16 : bytes == 4 ? Type::b32 : Type::b64;
}

// Bytes of the register of an operand, which may be wider than the type.
std::uint8_t accept_register(const Builder& builder, unsigned index, Type type) {
  const unsigned least = ptx::size_of(type) == 1 ? 2 : ptx::size_of(type);
  const unsigned bytes = builder.register_bytes(builder.operand(index), least);
  if (bytes < ptx::size_of(type) || bytes > 8) {
    builder.unsupported("register " + std::string(builder.operand(index).text) + " cannot hold ." +
                        std::string(ptx::name_of(type)));
  }
  return static_cast<std::uint8_t>(bytes);
}

void decode_cvt(Builder& builder) {
  if (builder.accept("pack")) return decode_pack(builder);
  Conversion conversion;
  conversion.to = builder.type();
  conversion.from = builder.type();
  if (is_packed(conversion.to) || is_packed(conversion.from)) {
    return decode_packed(builder, conversion.to, conversion.from);
  }
  const bool to_tensor = conversion.to == Type::tf32 && conversion.from == Type::f32;
  if (!to_tensor && (!is_convertible(conversion.to) || !is_convertible(conversion.from))) {
    builder.unsupported("not defined for these types");
  }
  builder.expect_operands(2);
  accept_rounding(builder, conversion);
  accept_limits(builder, conversion);
  conversion.to_bytes = accept_register(builder, 0, conversion.to);
  conversion.from_bytes = accept_register(builder, 1, conversion.from);
  const bool wider = conversion.from_bytes > ptx::size_of(conversion.from);
  const Slot dst = builder.destination(0, bits_type(conversion.to_bytes));
  const Slot src = builder.source(1, wider ? bits_type(conversion.from_bytes) : conversion.from);
  Op& op = builder.emit(handler_of(conversion), Class::convert);
  op.dst = dst;
  op.src[0] = src;
  op.immediate = packed(conversion);
}

constexpr Opcode kOpcodes[] = {{"cvt", decode_cvt}};

}  // namespace

std::span<const Opcode> convert_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
