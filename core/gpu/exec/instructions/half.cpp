// SPDX-License-Identifier: Apache-2.0
// Arithmetic of f16 and bf16, one or two in a register.
#include <array>

#include "gpu/exec/instructions/extremes.hpp"
#include "gpu/exec/instructions/float_lanes.hpp"
#include "gpu/exec/numerics/approximate.hpp"
#include "gpu/exec/numerics/half_arithmetic.hpp"
#include "gpu/exec/numerics/ordering.hpp"
#include "gpu/exec/opcodes.hpp"

namespace manyscale::gpu {
namespace {

using ptx::Type;

bool is_f16(Type type) {
  return type == Type::f16 || type == Type::f16x2;
}

// The handler of a function of halves.
template <auto function, unsigned count>
Handler handler_of(const Builder& builder, Type type) {
  switch (type) {
    case Type::f16:
      return apply_modified<function, F16, count, 1>;
    case Type::f16x2:
      return apply_modified<function, F16, count, 2>;
    case Type::bf16:
      return apply_modified<function, Bf16, count, 1>;
    case Type::bf16x2:
      return apply_modified<function, Bf16, count, 2>;
    default:
      builder.unsupported("not defined for this type");
  }
}

// The flag of a modifier that may be there.
std::uint8_t accept_flag(Builder& builder, bool allowed, std::string_view modifier, std::uint8_t flag) {
  return allowed && builder.accept(modifier) ? flag : std::uint8_t{0};
}

constexpr auto kAdd = [](auto a, auto b) { return add(a, b); };
constexpr auto kSub = [](auto a, auto b) { return sub(a, b); };
constexpr auto kMul = [](auto a, auto b) { return mul(a, b); };
constexpr auto kFma = [](auto a, auto b, auto c) { return fma(a, b, c); };

// Rounds to nearest, whether it says so or not.
template <auto function, unsigned count>
void decode_arithmetic(Builder& builder) {
  const Type type = builder.type();
  builder.ignore({"rn"});
  std::uint8_t flags = accept_flag(builder, is_f16(type), "ftz", kFtz);
  flags |= accept_flag(builder, is_f16(type), "sat", kSat);
  if (flags < kSat) flags |= accept_flag(builder, count == 3, "relu", kRelu);
  emit_alike(builder, handler_of<function, count>(builder, type), Class::fp16, type, count).flags = flags;
}

constexpr auto kNeg = [](auto a) { return neg(a); };
constexpr auto kAbs = [](auto a) { return abs(a); };

template <auto function>
void decode_sign(Builder& builder) {
  const Type type = builder.type();
  const std::uint8_t flags = accept_flag(builder, is_f16(type), "ftz", kFtz);
  emit_alike(builder, handler_of<function, 1>(builder, type), Class::fp16, type, 1).flags = flags;
}

template <bool larger>
void decode_extreme(Builder& builder) {
  const Type type = builder.type();
  const std::uint8_t flags = accept_flag(builder, is_f16(type), "ftz", kFtz);
  const Handler handler =
      with_extreme<larger>(builder, [&]<auto function>() { return handler_of<function, 2>(builder, type); });
  emit_alike(builder, handler, Class::fp16, type, 2).flags = flags;
}

constexpr auto kEx2 = [](auto a) { return ex2_approx(a); };
constexpr auto kTanh = [](auto a) { return tanh_approx(a); };

void decode_ex2(Builder& builder) {
  const Type type = builder.type();
  if (!builder.accept("approx")) builder.unsupported("needs .approx");
  const std::uint8_t flags = accept_flag(builder, !is_f16(type), "ftz", kFtz);
  if (!is_f16(type) && flags == 0) builder.unsupported("needs .ftz");
  emit_alike(builder, handler_of<kEx2, 1>(builder, type), Class::special_function, type, 1).flags = flags;
}

void decode_tanh(Builder& builder) {
  const Type type = builder.type();
  if (!builder.accept("approx")) builder.unsupported("needs .approx");
  emit_alike(builder, handler_of<kTanh, 1>(builder, type), Class::special_function, type, 1);
}

constexpr Opcode kOpcodes[] = {
    {"add", decode_arithmetic<kAdd, 2>, Operates::on_halves},
    {"sub", decode_arithmetic<kSub, 2>, Operates::on_halves},
    {"mul", decode_arithmetic<kMul, 2>, Operates::on_halves},
    {"fma", decode_arithmetic<kFma, 3>, Operates::on_halves},
    {"neg", decode_sign<kNeg>, Operates::on_halves},
    {"abs", decode_sign<kAbs>, Operates::on_halves},
    {"min", decode_extreme<false>, Operates::on_halves},
    {"max", decode_extreme<true>, Operates::on_halves},
    {"ex2", decode_ex2, Operates::on_halves},
    {"tanh", decode_tanh, Operates::on_halves},
};

}  // namespace

std::span<const Opcode> half_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
