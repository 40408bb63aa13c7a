// SPDX-License-Identifier: Apache-2.0
// mma and wmma: which multiplications exist, and their operands.
#include <algorithm>
#include <string>
#include <vector>

#include "gpu/exec/instructions/matrix_load.hpp"
#include "gpu/exec/instructions/tensor_multiply.hpp"
#include "gpu/exec/opcodes.hpp"

namespace manyscale::gpu {
namespace {

using ptx::Operand;
using ptx::Type;

bool is_integer(Type type) {
  return type == Type::s8 || type == Type::u8 || type == Type::s4 || type == Type::u4 || type == Type::b1;
}

// Whether products of a type are summed in another.
bool accumulates_in(Type input, Type type) {
  if (is_integer(input)) return type == Type::s32;
  if (input == Type::f64) return type == Type::f64;
  if (input == Type::bf16 || input == Type::tf32) return type == Type::f32;
  return type == Type::f16 || type == Type::f32;
}

// Types from D to C; wmma of f16 names those of D and C only.
void read_types(Builder& builder, Multiplication& kind) {
  std::vector<Type> types;
  for (Type type = builder.type(); type != Type::none; type = builder.type()) types.push_back(type);
  if (types.size() == 2) types = {types[0], Type::f16, Type::f16, types[1]};
  if (types.size() != 4) builder.unsupported("it should name the types of D, A, B and C");
  kind.d = types[0];
  kind.a = types[1];
  kind.b = types[2];
  kind.c = types[3];
}

void decode_multiply(Builder& builder, bool is_wmma) {
  builder.expect_operands(4);
  builder.ignore({"sync", "aligned", "mma"});
  Multiplication kind;
  kind.shape = accept_shape(builder);
  const auto layouts = accept_layouts(builder, 2);
  read_types(builder, kind);
  const int rounding = kind.a == Type::f64 ? builder.accept_one_of({"rn", "rz", "rm", "rp"}) : 0;
  const Handler handler = find_multiplication(kind, is_wmma, static_cast<Rounding>(std::max(0, rounding)));
  if (handler == nullptr)
    builder.unsupported("there is no such multiplication of ." + std::string(ptx::name_of(kind.a)) +
                        " and ." + std::string(ptx::name_of(kind.b)));
  if (!accumulates_in(kind.a, kind.c) || !accumulates_in(kind.a, kind.d))
    builder.unsupported("." + std::string(ptx::name_of(kind.a)) + " is not accumulated in ." +
                        std::string(ptx::name_of(kind.d)));
  if (!is_wmma && !kind.quad_pairs() &&
      (layouts[0] != MatrixLayout::row || layouts[1] != MatrixLayout::column))
    builder.unsupported("this shape takes A by rows and B by columns");

  std::uint8_t flags = 0;
  if (layouts[0] == MatrixLayout::row) flags |= kRowMajorA;
  if (layouts[1] == MatrixLayout::row) flags |= kRowMajorB;
  const bool can_saturate = (is_integer(kind.a) && kind.a != Type::b1) || (is_wmma && kind.a == Type::f16);
  if (can_saturate && builder.accept("satfinite")) flags |= kSaturate;
  if (kind.a == Type::b1) {
    const int operation = builder.accept_one_of({"xor", "and"});
    if (operation < 0 || !builder.accept("popc"))
      builder.unsupported("bits are multiplied by .xor.popc or .and.popc");
    if (operation == 1) flags |= kAnd;
  }

  const unsigned a = kind.registers(kind.fragment(Role::a)), b = kind.registers(kind.fragment(Role::b));
  const unsigned c = kind.registers(kind.fragment(Role::c)), d = kind.registers(kind.result());
  const unsigned repeated = is_wmma && kind.a == Type::f16 ? kWmmaHalfRegisters : 0;
  const auto from_a = fragment_sources(builder, builder.operand(1), kind.a, std::max(a, repeated));
  const auto from_b = fragment_sources(builder, builder.operand(2), kind.b, std::max(b, repeated));
  const auto from_c = fragment_sources(builder, builder.operand(3), kind.c, c);
  std::vector<Slot> slots = fragment_destinations(builder, builder.operand(0), kind.d, d);
  slots.insert(slots.end(), from_a.begin(), from_a.begin() + a);
  slots.insert(slots.end(), from_b.begin(), from_b.begin() + b);
  slots.insert(slots.end(), from_c.begin(), from_c.end());
  const std::uint32_t list = builder.list(slots);
  Op& op = builder.emit(handler, Class::tensor);
  op.aux = list;
  op.count = static_cast<std::uint8_t>(slots.size());
  op.immediate = std::bit_cast<std::int64_t>(kind);
  op.flags = flags;
}

void decode_mma(Builder& builder) {
  decode_multiply(builder, false);
}

void decode_wmma(Builder& builder) {
  const auto modifiers = builder.modifiers();
  const std::string_view action = modifiers.empty() ? std::string_view{} : modifiers[0];
  if (action == "load")
    decode_wmma_load(builder);
  else if (action == "store")
    decode_wmma_store(builder);
  else
    decode_multiply(builder, true);
}

constexpr Opcode kOpcodes[] = {
    {"mma", decode_mma},           {"wmma", decode_wmma},           {"ldmatrix", decode_ldmatrix},
    {"stmatrix", decode_stmatrix}, {"movmatrix", decode_movmatrix},
};

}  // namespace

std::span<const Opcode> tensor_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
