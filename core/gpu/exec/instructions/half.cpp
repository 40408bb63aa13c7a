// SPDX-License-Identifier: Apache-2.0
// Arithmetic of f16 and bf16, one or two in a register.
#include <array>

#include "gpu/exec/instructions/extremes.hpp"
#include "gpu/exec/instructions/float_lanes.hpp"
#include "gpu/exec/numerics/approximate.hpp"
#include "gpu/exec/numerics/half_arithmetic.hpp"
#include "gpu/exec/numerics/half_arrays.hpp"
#include "gpu/exec/numerics/ordering.hpp"
#include "gpu/exec/opcodes.hpp"

namespace manyscale::gpu {
namespace {

using ptx::Type;

bool is_f16(Type type) {
  return type == Type::f16 || type == Type::f16x2;
}

// A function of f32 whose result, rounded to nearest, is that of halves.
template <auto function, class T, unsigned count, unsigned total>
void apply_widened(Warp& warp, const Op& op) {
  const Operands<T, count, total> operands(warp, op);
  alignas(64) std::array<std::array<float, total>, count> wide;
  for (unsigned k = 0; k < count; ++k) widen(operands[k], wide[k].data(), total);
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    for (unsigned i = 0; i < total; ++i) wide[0][i] = function(wide[k][i]...);
  }(std::make_index_sequence<count>{});
  alignas(64) std::array<T, total> results;
  narrow(wide[0].data(), results.data(), total);
  write_modified(warp, op, results);
}

// The handlers of a function of halves, by type.
struct Handlers {
  Handler f16;
  Handler f16x2;
  Handler bf16;
  Handler bf16x2;
};

template <auto function, unsigned count>
constexpr Handlers kOfHalves{
    apply_modified<function, F16, count, kLanes>, apply_modified<function, F16, count, 2 * kLanes>,
    apply_modified<function, Bf16, count, kLanes>, apply_modified<function, Bf16, count, 2 * kLanes>};

template <auto function, unsigned count>
constexpr Handlers kOfFloats{
    apply_widened<function, F16, count, kLanes>, apply_widened<function, F16, count, 2 * kLanes>,
    apply_widened<function, Bf16, count, kLanes>, apply_widened<function, Bf16, count, 2 * kLanes>};

Handler select_handler(const Builder& builder, Type type, const Handlers& handlers) {
  switch (type) {
    case Type::f16:
      return handlers.f16;
    case Type::f16x2:
      return handlers.f16x2;
    case Type::bf16:
      return handlers.bf16;
    case Type::bf16x2:
      return handlers.bf16x2;
    default:
      builder.unsupported("not defined for this type");
  }
}

// The flag of a modifier that may be there.
std::uint8_t accept_flag(Builder& builder, bool allowed, std::string_view modifier, std::uint8_t flag) {
  return allowed && builder.accept(modifier) ? flag : std::uint8_t{0};
}

// Sums and products of halves may be rounded to f32 in between (see half_arithmetic.hpp).
constexpr auto kAdd = [](float a, float b) { return a + b; };
constexpr auto kSub = [](float a, float b) { return a - b; };
constexpr auto kMul = [](float a, float b) { return a * b; };
constexpr auto kFmaF16 = [](float a, float b, float c) { return odd_fma(a, b, c); };
constexpr auto kFmaBf16 = [](Bf16 a, Bf16 b, Bf16 c) { return fma(a, b, c); };

constexpr Handlers kFma{apply_widened<kFmaF16, F16, 3, kLanes>, apply_widened<kFmaF16, F16, 3, 2 * kLanes>,
                        apply_modified<kFmaBf16, Bf16, 3, kLanes>,
                        apply_modified<kFmaBf16, Bf16, 3, 2 * kLanes>};

// Rounds to nearest, whether it says so or not.
void emit_arithmetic(Builder& builder, const Handlers& handlers, unsigned sources) {
  const Type type = builder.type();
  builder.ignore({"rn"});
  std::uint8_t flags = accept_flag(builder, is_f16(type), "ftz", kFtz);
  flags |= accept_flag(builder, is_f16(type), "sat", kSat);
  if (!(flags & kSat)) flags |= accept_flag(builder, sources == 3, "relu", kRelu);
  emit_alike(builder, select_handler(builder, type, handlers), Class::fp16, type, sources).flags = flags;
}

template <auto function>
void decode_arithmetic(Builder& builder) {
  emit_arithmetic(builder, kOfFloats<function, 2>, 2);
}

void decode_fma(Builder& builder) {
  emit_arithmetic(builder, kFma, 3);
}

constexpr auto kNeg = [](auto a) { return neg(a); };
constexpr auto kAbs = [](auto a) { return abs(a); };

template <auto function>
void decode_sign(Builder& builder) {
  const Type type = builder.type();
  const std::uint8_t flags = accept_flag(builder, is_f16(type), "ftz", kFtz);
  emit_alike(builder, select_handler(builder, type, kOfHalves<function, 1>), Class::fp16, type, 1).flags =
      flags;
}

template <bool larger>
void decode_extreme(Builder& builder) {
  const Type type = builder.type();
  const std::uint8_t flags = accept_flag(builder, is_f16(type), "ftz", kFtz);
  const Handler handler = with_extreme<larger>(
      builder, [&]<auto function>() { return select_handler(builder, type, kOfHalves<function, 2>); });
  emit_alike(builder, handler, Class::fp16, type, 2).flags = flags;
}

constexpr auto kEx2 = [](auto a) { return ex2_approx(a); };
constexpr auto kTanh = [](auto a) { return tanh_approx(a); };

void decode_ex2(Builder& builder) {
  const Type type = builder.type();
  if (!builder.accept("approx")) builder.unsupported("needs .approx");
  const std::uint8_t flags = accept_flag(builder, !is_f16(type), "ftz", kFtz);
  if (!is_f16(type) && flags == 0) builder.unsupported("needs .ftz");
  emit_alike(builder, select_handler(builder, type, kOfHalves<kEx2, 1>), Class::special_function, type, 1)
      .flags = flags;
}

void decode_tanh(Builder& builder) {
  const Type type = builder.type();
  if (!builder.accept("approx")) builder.unsupported("needs .approx");
  emit_alike(builder, select_handler(builder, type, kOfHalves<kTanh, 1>), Class::special_function, type, 1);
}

constexpr Opcode kOpcodes[] = {
    {"add", decode_arithmetic<kAdd>, Operates::on_halves},
    {"sub", decode_arithmetic<kSub>, Operates::on_halves},
    {"mul", decode_arithmetic<kMul>, Operates::on_halves},
    {"fma", decode_fma, Operates::on_halves},
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
