// SPDX-License-Identifier: Apache-2.0
// Arithmetic of f32 and f64.
#include <array>

#include "gpu/exec/instructions/extremes.hpp"
#include "gpu/exec/instructions/float_lanes.hpp"
#include "gpu/exec/numerics/approximate.hpp"
#include "gpu/exec/numerics/ordering.hpp"
#include "gpu/exec/numerics/rounding.hpp"
#include "gpu/exec/opcodes.hpp"

namespace manyscale::gpu {
namespace {

using ptx::Type;

// --- Arithmetic that is rounded ---------------------------------------------------------------------------

constexpr auto kAdd = []<Rounding R>(auto a, auto b) { return add<R>(a, b); };
constexpr auto kSub = []<Rounding R>(auto a, auto b) { return sub<R>(a, b); };
constexpr auto kMul = []<Rounding R>(auto a, auto b) { return mul<R>(a, b); };
constexpr auto kFma = []<Rounding R>(auto a, auto b, auto c) { return fma<R>(a, b, c); };
constexpr auto kDiv = []<Rounding R>(auto a, auto b) { return div<R>(a, b); };
constexpr auto kRcp = []<Rounding R>(auto a) { return rcp<R>(a); };
constexpr auto kSqrt = []<Rounding R>(auto a) { return sqrt<R>(a); };

// One of these with its rounding.
template <auto operation, Rounding R>
constexpr auto kRounded = [](auto... operands) { return operation.template operator()<R>(operands...); };

// The handlers of an operation; the first two are the usual f32, to nearest without and with `.ftz`.
struct RoundedHandlers {
  unsigned sources;
  Handler nearest;
  Handler nearest_flushed;
  std::array<Handler, 4> f32;
  std::array<Handler, 4> f64;
};

template <auto operation, unsigned count>
constexpr RoundedHandlers kHandlers{
    count,
    apply<kRounded<operation, Rounding::rn>, float, count>,
    apply_flushed<kRounded<operation, Rounding::rn>, float, count>,
    {apply_modified<kRounded<operation, Rounding::rn>, float, count>,
     apply_modified<kRounded<operation, Rounding::rz>, float, count>,
     apply_modified<kRounded<operation, Rounding::rm>, float, count>,
     apply_modified<kRounded<operation, Rounding::rp>, float, count>},
    {apply<kRounded<operation, Rounding::rn>, double, count>,
     apply_singly<kRounded<operation, Rounding::rz>, double, count>,
     apply_singly<kRounded<operation, Rounding::rm>, double, count>,
     apply_singly<kRounded<operation, Rounding::rp>, double, count>},
};

void emit_rounded(Builder& builder, const RoundedHandlers& handlers, Type type, int rounding,
                  bool can_saturate, Class kind) {
  if (type == Type::f64) {
    emit_alike(builder, handlers.f64[rounding], kind == Class::fp32 ? Class::fp64 : kind, type,
               handlers.sources);
    return;
  }
  const bool flushes = builder.accept("ftz");
  const bool saturates = can_saturate && builder.accept("sat");
  const Handler handler = rounding != 0 || saturates ? handlers.f32[rounding]
                          : flushes                  ? handlers.nearest_flushed
                                                     : handlers.nearest;
  Op& op = emit_alike(builder, handler, kind, type, handlers.sources);
  op.flags = static_cast<std::uint8_t>((flushes ? kFtz : 0) | (saturates ? kSat : 0));
}

int accept_rounding(Builder& builder) {
  return builder.accept_one_of({"rn", "rz", "rm", "rp"});
}

// Sums and products round to nearest if nothing else is said.
template <auto operation, unsigned count>
void decode_arithmetic(Builder& builder) {
  const Type type = builder.type();
  const int rounding = accept_rounding(builder);
  emit_rounded(builder, kHandlers<operation, count>, type, rounding < 0 ? 0 : rounding, true, Class::fp32);
}

// Two f32 in a register of 64 bits (sm_100).
template <auto operation, unsigned count>
void decode_pair(Builder& builder) {
  static constexpr std::array<Handler, 4> kOfPairs{
      apply_modified<kRounded<operation, Rounding::rn>, float, count, 2 * kLanes>,
      apply_modified<kRounded<operation, Rounding::rz>, float, count, 2 * kLanes>,
      apply_modified<kRounded<operation, Rounding::rm>, float, count, 2 * kLanes>,
      apply_modified<kRounded<operation, Rounding::rp>, float, count, 2 * kLanes>};
  const Type type = builder.type();
  const int rounding = accept_rounding(builder);
  const bool flushes = builder.accept("ftz");
  Op& op = emit_alike(builder, kOfPairs[rounding < 0 ? 0 : static_cast<unsigned>(rounding)], Class::fp32,
                      type, count);
  op.flags = flushes ? kFtz : std::uint8_t{0};
}

// --- Approximations ---------------------------------------------------------------------------------------

constexpr auto kRcpApprox = [](float a) { return rcp_approx(a); };
constexpr auto kSqrtApprox = [](float a) { return sqrt_approx(a); };
constexpr auto kRsqrtApprox = [](float a) { return rsqrt_approx(a); };
constexpr auto kRsqrtApproxDouble = [](double a) { return rsqrt_approx(a); };
constexpr auto kRcpGross = [](double a) { return rcp_approx_ftz(a); };
constexpr auto kRsqrtGross = [](double a) { return rsqrt_approx_ftz(a); };
constexpr auto kDivApprox = [](float a, float b) { return div_approx(a, b); };
constexpr auto kDivFull = [](float a, float b) { return div_full(a, b); };
constexpr auto kLg2 = [](float a) { return lg2_approx(a); };
constexpr auto kEx2 = [](float a) { return ex2_approx(a); };
constexpr auto kTanh = [](float a) { return tanh_approx(a); };
constexpr auto kSinSmall = [](float a) { return sin_small(a); };
constexpr auto kSin = [](float a) { return sin_approx(a); };
constexpr auto kCosSmall = [](float a) { return cos_small(a); };
constexpr auto kCos = [](float a) { return cos_approx(a); };

// Emits an approximation of f32, with or without `.ftz`.
template <auto function, unsigned count>
void emit_approximate(Builder& builder, Type type) {
  if (type != Type::f32) builder.unsupported("not defined for this type");
  const Handler handler =
      builder.accept("ftz") ? apply_flushed<function, float, count> : apply<function, float, count>;
  emit_alike(builder, handler, Class::special_function, type, count);
}

template <auto function>
void decode_approximate(Builder& builder) {
  const Type type = builder.type();
  if (!builder.accept("approx")) builder.unsupported("needs .approx");
  emit_approximate<function, 1>(builder, type);
}

// A function of angles: at once if all are small, as they are in most programs, and else one by one.
template <auto of_small, auto of_any, bool Ftz>
void apply_angle(Warp& warp, const Op& op) {
  const float* a = warp.lanes<float>(op.src[0]);
  const Mask large = ballot([=](unsigned i) { return magnitude_bits(a[i]) >= bits_of(small_angle); });
  if ((large & warp.mask) == 0) {
    map1<float, float>(warp, op, [](float x) { return flush_if<Ftz>(of_small(flush_if<Ftz>(x))); });
  } else {
    float* const result = warp.lanes<float>(op.dst);
    for_each_active(warp.mask, [=](unsigned i) { result[i] = flush_if<Ftz>(of_any(flush_if<Ftz>(a[i]))); });
  }
}

template <auto of_small, auto of_any>
void decode_angle(Builder& builder) {
  const Type type = builder.type();
  if (type != Type::f32) builder.unsupported("not defined for this type");
  if (!builder.accept("approx")) builder.unsupported("needs .approx");
  const Handler handler =
      builder.accept("ftz") ? apply_angle<of_small, of_any, true> : apply_angle<of_small, of_any, false>;
  emit_alike(builder, handler, Class::special_function, type, 1);
}

void decode_tanh(Builder& builder) {
  const Type type = builder.type();
  if (!builder.accept("approx")) builder.unsupported("needs .approx");
  if (type != Type::f32) builder.unsupported("not defined for this type");
  emit_alike(builder, apply<kTanh, float, 1>, Class::special_function, type, 1);
}

// Emits one of the approximations of f64 that see and give an upper word only.
template <auto function>
void emit_gross(Builder& builder, Type type) {
  if (!builder.accept("ftz")) builder.unsupported("needs .ftz");
  emit_alike(builder, apply<function, double, 1>, Class::special_function, type, 1);
}

void emit_with_needed_rounding(Builder& builder, const RoundedHandlers& handlers, Type type) {
  const int rounding = accept_rounding(builder);
  if (rounding < 0) builder.unsupported("needs .rn, .rz, .rm, .rp or .approx");
  emit_rounded(builder, handlers, type, rounding, false, Class::special_function);
}

void decode_div(Builder& builder) {
  const Type type = builder.type();
  if (builder.accept("approx")) return emit_approximate<kDivApprox, 2>(builder, type);
  if (builder.accept("full")) return emit_approximate<kDivFull, 2>(builder, type);
  emit_with_needed_rounding(builder, kHandlers<kDiv, 2>, type);
}

void decode_rcp(Builder& builder) {
  const Type type = builder.type();
  if (!builder.accept("approx")) return emit_with_needed_rounding(builder, kHandlers<kRcp, 1>, type);
  if (type == Type::f64) return emit_gross<kRcpGross>(builder, type);
  emit_approximate<kRcpApprox, 1>(builder, type);
}

void decode_sqrt(Builder& builder) {
  const Type type = builder.type();
  if (!builder.accept("approx")) return emit_with_needed_rounding(builder, kHandlers<kSqrt, 1>, type);
  emit_approximate<kSqrtApprox, 1>(builder, type);
}

void decode_rsqrt(Builder& builder) {
  const Type type = builder.type();
  if (!builder.accept("approx")) builder.unsupported("needs .approx");
  if (type == Type::f32) return emit_approximate<kRsqrtApprox, 1>(builder, type);
  const Handler handler =
      builder.accept("ftz") ? apply<kRsqrtGross, double, 1> : apply<kRsqrtApproxDouble, double, 1>;
  emit_alike(builder, handler, Class::special_function, type, 1);
}

// --- Signs and order --------------------------------------------------------------------------------------

constexpr auto kAbs = [](auto a) { return abs(a); };
constexpr auto kNeg = [](auto a) { return neg(a); };
constexpr auto kCopysign = [](auto sign, auto magnitude) { return copysign(sign, magnitude); };

// Emits a function that is the same for both types; only f32 has `.ftz`.
template <auto function, unsigned count>
void emit_for_both(Builder& builder, Type type) {
  if (type == Type::f64) {
    emit_alike(builder, apply<function, double, count>, Class::fp64, type, count);
    return;
  }
  const Handler handler =
      builder.accept("ftz") ? apply_flushed<function, float, count> : apply<function, float, count>;
  emit_alike(builder, handler, Class::fp32, type, count);
}

template <auto function>
void decode_sign(Builder& builder) {
  emit_for_both<function, 1>(builder, builder.type());
}

void decode_copysign(Builder& builder) {
  const Type type = builder.type();
  const bool is_double = type == Type::f64;
  emit_alike(builder, is_double ? apply<kCopysign, double, 2> : apply<kCopysign, float, 2>,
             is_double ? Class::fp64 : Class::fp32, type, 2);
}

template <bool larger>
void decode_extreme(Builder& builder) {
  const Type type = builder.type();
  if (type == Type::f64) return emit_for_both<kExtreme<larger, Nan::ignored>, 2>(builder, type);
  const bool flushes = builder.accept("ftz");
  const Handler handler = with_extreme<larger>(builder, [flushes]<auto function>() -> Handler {
    return flushes ? apply_flushed<function, float, 2> : apply<function, float, 2>;
  });
  emit_alike(builder, handler, Class::fp32, type, 2);
}

// --- Properties -------------------------------------------------------------------------------------------

template <auto property, class T>
void test(Warp& warp, const Op& op) {
  const T* a = warp.lanes<T>(op.src[0]);
  set_predicate(warp, op.dst, ballot([=](unsigned i) { return property(a[i]); }));
}

// A property that `testp` looks for, and its handlers for f32 and f64.
struct Property {
  std::string_view name;
  Handler f32;
  Handler f64;
};

template <auto property>
constexpr Property named(std::string_view name) {
  return {name, test<property, float>, test<property, double>};
}

template <class T>
constexpr BitsOf<T> kSmallestNormal = infinity_bits<T> & (~infinity_bits<T> + 1);

constexpr auto kFinite = []<class T>(T a) { return magnitude_bits(a) < infinity_bits<T>; };
constexpr auto kInfinite = []<class T>(T a) { return magnitude_bits(a) == infinity_bits<T>; };
constexpr auto kNumber = [](auto a) { return !is_nan(a); };
constexpr auto kNotANumber = [](auto a) { return is_nan(a); };
constexpr auto kSubnormal = []<class T>(T a) {
  return (magnitude_bits(a) != 0) & (magnitude_bits(a) < kSmallestNormal<T>);
};
// Zero is normal here.
constexpr auto kNormal = [](auto a) { return kFinite(a) & !kSubnormal(a); };

constexpr Property kProperties[] = {
    named<kFinite>("finite"),         named<kInfinite>("infinite"), named<kNumber>("number"),
    named<kNotANumber>("notanumber"), named<kNormal>("normal"),     named<kSubnormal>("subnormal"),
};

void decode_testp(Builder& builder) {
  builder.expect_operands(2);
  const Type type = builder.type();
  for (const Property& property : kProperties) {
    if (!builder.accept(property.name)) continue;
    const Slot dst = builder.predicate_destination(builder.operand(0));
    const Slot a = builder.source(1, type);
    Op& op = builder.emit(type == Type::f64 ? property.f64 : property.f32, Class::compare);
    op.dst = dst;
    op.src[0] = a;
    return;
  }
  builder.unsupported("needs a property such as .finite");
}

constexpr Opcode kOpcodes[] = {
    {"add", decode_pair<kAdd, 2>, Operates::on_pairs},
    {"sub", decode_pair<kSub, 2>, Operates::on_pairs},
    {"mul", decode_pair<kMul, 2>, Operates::on_pairs},
    {"fma", decode_pair<kFma, 3>, Operates::on_pairs},
    {"add", decode_arithmetic<kAdd, 2>, Operates::on_floats},
    {"sub", decode_arithmetic<kSub, 2>, Operates::on_floats},
    {"mul", decode_arithmetic<kMul, 2>, Operates::on_floats},
    {"fma", decode_arithmetic<kFma, 3>, Operates::on_floats},
    {"mad", decode_arithmetic<kFma, 3>, Operates::on_floats},
    {"div", decode_div, Operates::on_floats},
    {"rcp", decode_rcp, Operates::on_floats},
    {"sqrt", decode_sqrt, Operates::on_floats},
    {"rsqrt", decode_rsqrt, Operates::on_floats},
    {"abs", decode_sign<kAbs>, Operates::on_floats},
    {"neg", decode_sign<kNeg>, Operates::on_floats},
    {"copysign", decode_copysign, Operates::on_floats},
    {"min", decode_extreme<false>, Operates::on_floats},
    {"max", decode_extreme<true>, Operates::on_floats},
    {"testp", decode_testp, Operates::on_floats},
    {"sin", decode_angle<kSinSmall, kSin>, Operates::on_floats},
    {"cos", decode_angle<kCosSmall, kCos>, Operates::on_floats},
    {"lg2", decode_approximate<kLg2>, Operates::on_floats},
    {"ex2", decode_approximate<kEx2>, Operates::on_floats},
    {"tanh", decode_tanh, Operates::on_floats},
};

}  // namespace

std::span<const Opcode> float_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
