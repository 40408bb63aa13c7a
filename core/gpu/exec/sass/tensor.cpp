// SPDX-License-Identifier: Apache-2.0
// Tensor cores: the same multiplications that PTX has, in the same registers, and moves of matrices.
#include <algorithm>
#include <cstring>

#include "gpu/exec/instructions/matrix_load.hpp"
#include "gpu/exec/instructions/tensor_multiply.hpp"
#include "gpu/exec/memory_access.hpp"
#include "gpu/exec/sass/builder.hpp"
#include "gpu/exec/sass/decoder.hpp"

namespace manyscale::gpu {
namespace {

using ptx::Type;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

struct NamedShape {
  std::string_view name;
  MatrixShape shape;
};

constexpr NamedShape kShapes[] = {
    {"884", {8, 8, 4}},     {"1688", {16, 8, 8}},     {"16816", {16, 8, 16}},   {"1684", {16, 8, 4}},
    {"8816", {8, 8, 16}},   {"16832", {16, 8, 32}},   {"8832", {8, 8, 32}},     {"16864", {16, 8, 64}},
    {"88128", {8, 8, 128}}, {"168128", {16, 8, 128}}, {"168256", {16, 8, 256}}, {"8x8x4", {8, 8, 4}},
    {"16x8x4", {16, 8, 4}}, {"16x8x8", {16, 8, 8}},   {"16x8x16", {16, 8, 16}},
};

MatrixShape accept_shape(MachineBuilder& builder) {
  for (const NamedShape& entry : kShapes)
    if (builder.accept(entry.name)) return entry.shape;
  builder.unsupported("no such shape");
}

struct NamedType {
  std::string_view name;
  Type type;
};

constexpr NamedType kTypes[] = {
    {"F32", Type::f32}, {"F16", Type::f16}, {"BF16", Type::bf16}, {"TF32", Type::tf32}, {"U8", Type::u8},
    {"S8", Type::s8},   {"U4", Type::u4},   {"S4", Type::s4},     {"E4M3", Type::e4m3}, {"E5M2", Type::e5m2},
};

// The next type among the modifiers, in their order.
Type accept_type(MachineBuilder& builder) {
  for (sass::Modifier modifier : builder.instruction().modifiers)
    for (const NamedType& entry : kTypes)
      if (sass::name_of(modifier) == entry.name && builder.accept(entry.name)) return entry.type;
  return Type::none;
}

void add_words(std::vector<Slot>& slots, Slot first, unsigned count) {
  for (unsigned i = 0; i < count; ++i) slots.push_back(next_word(first, i));
}

Op& emit_multiplication(MachineBuilder& builder, const Multiplication& kind, Handler handler) {
  if (handler == nullptr) builder.unsupported("there is no such multiplication");
  std::vector<Slot> slots;
  const unsigned d = kind.registers(kind.result());
  const unsigned a = kind.registers(kind.fragment(Role::a));
  const unsigned b = kind.registers(kind.fragment(Role::b));
  const unsigned c = kind.registers(kind.fragment(Role::c));
  add_words(slots, builder.destination(0, d), d);
  add_words(slots, builder.source(0, a), a);
  add_words(slots, builder.source(1, b), b);
  add_words(slots, builder.source(2, c), c);
  Op& op = builder.emit(handler, Class::tensor);
  op.aux = builder.list(slots);
  op.count = static_cast<std::uint8_t>(slots.size());
  op.immediate = std::bit_cast<std::int64_t>(kind);
  return op;
}

bool has_suffix(const sass::Operand& operand, std::string_view wanted) {
  return std::ranges::any_of(operand.suffix,
                             [&](sass::Modifier suffix) { return sass::name_of(suffix) == wanted; });
}

// HMMA.884 (sm_70): four steps make one multiplication of PTX, each two words of the result; two do with f16.
constexpr unsigned kStepShift = 4;

void multiply_step(Warp& warp, const Op& op) {
  const auto kind = std::bit_cast<Multiplication>(op.immediate);
  const unsigned count = kind.d == Type::f16 ? 4 : 8;
  const unsigned step = op.flags >> kStepShift & 3;
  // The whole result, of which this step writes its part. Its accumulators are those of the step.
  const Slot* listed = warp.code().slots.data() + op.aux;
  const Slot scratch = listed[0];
  const Slot result = listed[count];
  for (unsigned k = 0; k < 2; ++k)
    std::memcpy(warp.lanes<U32>(next_word(scratch, count + 2 * step + k)),
                warp.lanes<U32>(next_word(listed[count + 1], k)), kPlaneBytes);
  Op whole = op;
  whole.aux = op.aux + count + 2;
  whole.flags = op.flags & (kRowMajorA | kRowMajorB);
  find_multiplication(kind, false, Rounding::rn)(warp, whole);
  for (unsigned k = 0; k < 2; ++k)
    std::memcpy(warp.lanes<U32>(next_word(result, k)), warp.lanes<U32>(next_word(scratch, 2 * step + k)),
                kPlaneBytes);
}

void decode_hmma_steps(MachineBuilder& builder, Multiplication kind) {
  const int step = builder.accept_one_of({"STEP0", "STEP1", "STEP2", "STEP3"});
  if (step < 0) builder.unsupported("it does not say which step it is");
  kind.a = kind.b = Type::f16;
  if (kind.c == Type::none) kind.c = kind.d;
  const unsigned count = kind.d == Type::f16 ? 4 : 8;
  if (kind.c != kind.d) builder.unsupported("sums of another type than the result");
  const Slot scratch = builder.decoder().layout().discard();
  // First the scratch registers, the result and the sums of this step; then the lists of the multiplication.
  std::vector<Slot> slots(count, scratch);
  slots.push_back(builder.destination(0, 2));
  slots.push_back(builder.source(2, 2));
  add_words(slots, scratch, count);
  add_words(slots, builder.source(0, 2), 2);
  add_words(slots, builder.source(1, 2), 2);
  add_words(slots, next_word(scratch, count), count);
  Op& op = builder.emit(multiply_step, Class::tensor);
  op.aux = builder.list(slots);
  op.count = static_cast<std::uint8_t>(slots.size());
  op.immediate = std::bit_cast<std::int64_t>(kind);
  op.flags = static_cast<std::uint8_t>((has_suffix(builder.value(0), "ROW") ? kRowMajorA : 0) |
                                       (has_suffix(builder.value(1), "ROW") ? kRowMajorB : 0) |
                                       static_cast<unsigned>(step) << kStepShift);
}

// The uniform predicate that sm_86 and later name: kernels made for sm_80, which has none, have any bits
// there and give the same results on both.
void ignore_condition(MachineBuilder& builder) {
  bool negated = false;
  if (builder.conditions() > 0) builder.condition(0, negated);
}

void decode_hmma(MachineBuilder& builder) {
  if (builder.accept("SP")) builder.unsupported("sparse matrices");
  Multiplication kind;
  kind.shape = accept_shape(builder);
  kind.d = accept_type(builder);
  kind.c = kind.d;
  const Type input = accept_type(builder);
  if (kind.shape == MatrixShape{8, 8, 4}) {
    if (input == Type::f32 || input == Type::f16) kind.c = input;
    return decode_hmma_steps(builder, kind);
  }
  kind.a = kind.b = input == Type::none || input == Type::f32 ? Type::f16 : input;
  ignore_condition(builder);
  emit_multiplication(builder, kind, find_multiplication(kind, false, Rounding::rn));
}

void decode_qmma(MachineBuilder& builder) {
  if (builder.accept("SP")) builder.unsupported("sparse matrices");
  Multiplication kind;
  kind.shape = accept_shape(builder);
  kind.d = kind.c = accept_type(builder);
  kind.a = accept_type(builder);
  kind.b = accept_type(builder);
  ignore_condition(builder);
  emit_multiplication(builder, kind, find_multiplication(kind, false, Rounding::rn));
}

void decode_imma(MachineBuilder& builder) {
  if (builder.accept("SP")) builder.unsupported("sparse matrices");
  Multiplication kind;
  kind.shape = accept_shape(builder);
  kind.a = accept_type(builder);
  kind.b = accept_type(builder);
  kind.c = kind.d = Type::s32;
  const bool saturates = builder.accept("SAT");
  Op& op = emit_multiplication(builder, kind, find_multiplication(kind, false, Rounding::rn));
  if (saturates) op.flags |= kSaturate;
}

void decode_bmma(MachineBuilder& builder) {
  Multiplication kind;
  kind.shape = accept_shape(builder);
  kind.a = kind.b = Type::b1;
  kind.c = kind.d = Type::s32;
  const bool both = builder.accept("AND");
  builder.ignore({"XOR", "POPC"});
  Op& op = emit_multiplication(builder, kind, find_multiplication(kind, false, Rounding::rn));
  if (both) op.flags |= kAnd;
}

// DMMA: doubles lie in pairs of registers; for the multiplication they are put together. A bit of the flags
// for each of A, B and C says that it is negated.
void multiply_doubles(Warp& warp, const Op& op) {
  const auto kind = std::bit_cast<Multiplication>(op.immediate);
  const unsigned d = kind.registers(kind.result());
  const unsigned a = kind.registers(kind.fragment(Role::a));
  const unsigned total = op.count;
  const Slot* listed = warp.code().slots.data() + op.aux;
  // Behind the list of pairs is that of the doubles.
  const Slot* doubles = listed + total;
  for (unsigned i = d; i < total; ++i) {
    auto* to = warp.lanes<U64>(doubles[i]);
    const Pairs from(warp, listed[i]);
    const unsigned role = i < d + a ? 0 : i < total - d ? 1 : 2;
    const U64 sign = op.flags >> role & 1 ? U64{1} << 63 : 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) to[lane] = from[lane] ^ sign;
  }
  Op whole = op;
  whole.aux = op.aux + total;
  whole.flags = 0;
  find_multiplication(kind, false, Rounding::rn)(warp, whole);
  for (unsigned i = 0; i < d; ++i) {
    const auto* from = warp.lanes<U64>(doubles[i]);
    for_pairs(warp, listed[i], [=](unsigned lane) { return from[lane]; });
  }
}

void decode_dmma(MachineBuilder& builder) {
  Multiplication kind;
  kind.shape = accept_shape(builder);
  kind.a = kind.b = kind.c = kind.d = Type::f64;
  if (find_multiplication(kind, false, Rounding::rn) == nullptr)
    builder.unsupported("there is no such multiplication");
  std::vector<Slot> slots;
  const auto add_pairs = [&](Slot first, unsigned count) {
    for (unsigned i = 0; i < count; ++i) slots.push_back(next_word(first, 2 * i));
  };
  const unsigned d = kind.registers(kind.result());
  const unsigned a = kind.registers(kind.fragment(Role::a));
  const unsigned b = kind.registers(kind.fragment(Role::b));
  add_pairs(builder.destination(0, 2 * d), d);
  std::int64_t modifiers = 0;
  add_pairs(builder.source(0, 2 * a, &modifiers, 0), a);
  add_pairs(builder.source(1, 2 * b, &modifiers, 1), b);
  add_pairs(builder.source(2, 2 * d, &modifiers, 2), d);
  const std::int64_t negated = modifiers & (negated_bit(0) | negated_bit(1) | negated_bit(2));
  if (modifiers != negated) builder.unsupported("magnitudes of doubles");
  const auto total = static_cast<unsigned>(slots.size());
  if (2 * total > RegisterLayout::kDiscardWords) builder.unsupported("a matrix that is too large");
  for (unsigned i = 0; i < total; ++i)
    slots.push_back(next_word(builder.decoder().layout().discard(), 2 * i));
  Op& op = builder.emit(multiply_doubles, Class::tensor);
  op.flags = static_cast<std::uint8_t>(negated);
  op.aux = builder.list(slots);
  op.count = static_cast<std::uint8_t>(total);
  op.immediate = std::bit_cast<std::int64_t>(kind);
}

// --- Matrices of 8 x 8 halves

void decode_rows(MachineBuilder& builder, bool loads) {
  const bool transposed = builder.accept("MT88");
  builder.ignore({"16", "M88"});
  const unsigned count = builder.accept("4") ? 4 : builder.accept("2") ? 2 : 1;
  builder.ignore({"1"});
  const sass::Operand* address = builder.find(sass::OperandKind::address);
  if (address == nullptr) builder.unsupported("no address is named");
  std::vector<Slot> slots;
  add_words(slots, loads ? builder.destination(0, count) : builder.source(builder.values() - 1, count),
            count);
  Op& op = builder.emit(row_access(loads, transposed), loads ? Class::load : Class::store);
  builder.address(op, *address, ptx::Space::shared);
  op.aux = builder.list(slots);
  op.count = static_cast<std::uint8_t>(count);
  op.bytes = kMatrixRowBytes;
}

void decode_ldsm(MachineBuilder& builder) {
  decode_rows(builder, true);
}

void decode_stsm(MachineBuilder& builder) {
  decode_rows(builder, false);
}

void decode_movm(MachineBuilder& builder) {
  if (!builder.accept("MT88")) builder.unsupported("only .MT88 is known");
  builder.ignore({"16"});
  const Slot dst = builder.destination();
  const Slot from = builder.source(0);
  Op& op = builder.emit(transpose_register, Class::warp);
  op.dst = dst;
  op.src[0] = from;
}

constexpr MachineOpcode kOpcodes[] = {
    {"HMMA", decode_hmma}, {"IMMA", decode_imma}, {"BMMA", decode_bmma}, {"DMMA", decode_dmma},
    {"QMMA", decode_qmma}, {"LDSM", decode_ldsm}, {"STSM", decode_stsm}, {"MOVM", decode_movm},
};

}  // namespace

std::span<const MachineOpcode> machine_tensor_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
