// SPDX-License-Identifier: Apache-2.0
// Read-modify-write of memory: atom, and red, which is atom without a result. Lanes take effect in their
// order.
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <vector>

#include "gpu/exec/address_space.hpp"
#include "gpu/exec/instructions/atomic_lanes.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/memory_access.hpp"
#include "gpu/exec/opcodes.hpp"

namespace manyscale::gpu {
namespace {

using namespace atomic_lanes;

using ptx::Operand;
using ptx::OperandKind;
using ptx::Space;
using ptx::Type;

// Several neighbours at once, each of them atomic by itself. The list has the operands and then, if they are
// wanted, the results.
template <class F>
void update_vector(Warp& warp, const Op& op) {
  using T = typename F::Value;
  const unsigned count = op.count;
  const Located located = locate(warp, op, static_cast<unsigned>(sizeof(T)) * count, Does::atomic);
  const bool concurrent = is_concurrent(warp, op);
  for_each_active(warp.mask, [&](unsigned lane) {
    std::array<T, 8> values{};  // a result may be written where another element's operand is
    const bool flush = flushes(warp, op, lane);
    for (unsigned i = 0; i < count; ++i) {
      const T b = warp.lanes<T>(warp.listed(op, i))[lane];
      values[i] = modify<T>(located.at(lane) + i * sizeof(T), concurrent,
                            [&](T value) { return F::apply(value, b, T{}, flush); });
    }
    if (op.dst2 == kNoSlot) return;
    for (unsigned i = 0; i < count; ++i) warp.lanes<T>(warp.listed(op, count + i))[lane] = values[i];
  });
}

// --- Decoding
// --------------------------------------------------------------------------------------------------

enum Operation : std::uint8_t { kAdd, kMin, kMax, kInc, kDec, kExch, kCas, kAnd, kOr, kXor };

struct Atomic {
  Operation operation;
  Type type;
  Handler scalar;  // null: there are only vectors of it
  Handler vector;
  bool commutes;  // the order of several does not show in memory
};

template <class F>
constexpr Atomic scalar(Operation operation, Type type, bool commutes) {
  return {operation, type, update<F>, nullptr, commutes};
}
template <class F>
constexpr Atomic half_add(Type type) {
  return {kAdd, type, update<F>, update_vector<F>, false};
}
template <class F>
constexpr Atomic half_choice(Operation operation, Type type) {
  return {operation, type, nullptr, update_vector<F>, true};
}

using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

constexpr Atomic kAtomics[] = {
    scalar<Add<U32>>(kAdd, Type::u32, true),
    scalar<Add<U32>>(kAdd, Type::s32, true),
    scalar<Add<U64>>(kAdd, Type::u64, true),
    scalar<Add<U64>>(kAdd, Type::s64, true),
    scalar<Minimum<U32>>(kMin, Type::u32, true),
    scalar<Minimum<std::int32_t>>(kMin, Type::s32, true),
    scalar<Minimum<U64>>(kMin, Type::u64, true),
    scalar<Minimum<std::int64_t>>(kMin, Type::s64, true),
    scalar<Maximum<U32>>(kMax, Type::u32, true),
    scalar<Maximum<std::int32_t>>(kMax, Type::s32, true),
    scalar<Maximum<U64>>(kMax, Type::u64, true),
    scalar<Maximum<std::int64_t>>(kMax, Type::s64, true),
    scalar<And<U32>>(kAnd, Type::b32, true),
    scalar<And<U64>>(kAnd, Type::b64, true),
    scalar<Or<U32>>(kOr, Type::b32, true),
    scalar<Or<U64>>(kOr, Type::b64, true),
    scalar<Xor<U32>>(kXor, Type::b32, true),
    scalar<Xor<U64>>(kXor, Type::b64, true),
    scalar<Increment>(kInc, Type::u32, false),
    scalar<Decrement>(kDec, Type::u32, false),
    scalar<Exchange<U32>>(kExch, Type::b32, false),
    scalar<Exchange<U64>>(kExch, Type::b64, false),
    scalar<Exchange<Wide>>(kExch, Type::b128, false),
    scalar<CompareAndSwap<U16>>(kCas, Type::b16, false),
    scalar<CompareAndSwap<U32>>(kCas, Type::b32, false),
    scalar<CompareAndSwap<U64>>(kCas, Type::b64, false),
    scalar<CompareAndSwap<Wide>>(kCas, Type::b128, false),
    {kAdd, Type::f32, update<AddF32>, update_vector<AddF32>, false},
    scalar<AddF64>(kAdd, Type::f64, false),
    half_add<Half<F16, U16, HalfAdd>>(Type::f16),
    half_add<Half<F16, U32, HalfAdd>>(Type::f16x2),
    half_add<Half<Bf16, U16, HalfAdd>>(Type::bf16),
    half_add<Half<Bf16, U32, HalfAdd>>(Type::bf16x2),
    half_choice<Half<F16, U16, HalfMinimum>>(kMin, Type::f16),
    half_choice<Half<F16, U32, HalfMinimum>>(kMin, Type::f16x2),
    half_choice<Half<Bf16, U16, HalfMinimum>>(kMin, Type::bf16),
    half_choice<Half<Bf16, U32, HalfMinimum>>(kMin, Type::bf16x2),
    half_choice<Half<F16, U16, HalfMaximum>>(kMax, Type::f16),
    half_choice<Half<F16, U32, HalfMaximum>>(kMax, Type::f16x2),
    half_choice<Half<Bf16, U16, HalfMaximum>>(kMax, Type::bf16),
    half_choice<Half<Bf16, U32, HalfMaximum>>(kMax, Type::bf16x2),
};

const Atomic& find_atomic(Builder& builder, unsigned elements) {
  const int operation =
      builder.accept_one_of({"add", "min", "max", "inc", "dec", "exch", "cas", "and", "or", "xor"});
  if (operation < 0) builder.unsupported("it does not say what to do");
  const Type type = builder.type();
  for (const Atomic& atomic : kAtomics) {
    const Handler handler = elements > 1 ? atomic.vector : atomic.scalar;
    if (atomic.operation == operation && atomic.type == type && handler != nullptr) return atomic;
  }
  builder.unsupported("there is no such atomic operation on ." + std::string(ptx::name_of(type)));
}

unsigned decode_elements(Builder& builder) {
  constexpr unsigned kElements[] = {1, 2, 4, 8};
  return kElements[builder.accept_one_of({"v2", "v4", "v8"}) + 1];
}

// The values of a vector operand.
std::span<const Operand> elements_of(Builder& builder, unsigned index, unsigned elements) {
  const Operand& operand = builder.operand(index);
  if (operand.kind != OperandKind::vector || operand.count != elements)
    builder.unsupported("operand '" + std::string(operand.text) + "' is not a vector of " +
                        std::to_string(elements));
  return builder.children(operand);
}

Space decode_atomic_space(Builder& builder) {
  // Without clusters, the shared memory of the cluster is that of the CTA.
  const Space space = builder.accept("shared::cluster") ? Space::shared : decode_space(builder);
  if (space != Space::generic && space != Space::global && space != Space::shared)
    builder.unsupported("there are no atomic operations on this state space");
  return space;
}

void decode_atomic(Builder& builder, bool returns) {
  builder.ignore({"relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys", "noftz"});
  const bool hinted = builder.accept("L2::cache_hint");  // a policy operand follows
  const Space space = decode_atomic_space(builder);
  const unsigned elements = decode_elements(builder);
  const Atomic& atomic = find_atomic(builder, elements);
  const bool swaps = atomic.operation == kCas;
  if (!returns && (swaps || atomic.operation == kExch)) builder.unsupported("red has no such operation");
  const unsigned first = returns ? 1 : 0;  // the address
  const unsigned operands = first + (swaps ? 3 : 2);
  builder.expect_operands(operands, operands + (hinted ? 1 : 0));

  const AddressFields address = decode_address(builder, first, space);
  Slot b = kNoSlot;
  Slot c = kNoSlot;
  Slot dst = kNoSlot;
  std::vector<Slot> listed;
  if (elements > 1) {
    for (const Operand& value : elements_of(builder, first + 1, elements))
      listed.push_back(builder.source(value, atomic.type));
    if (returns)
      for (const Operand& value : elements_of(builder, 0, elements))
        listed.push_back(builder.destination(value, atomic.type));
  } else {
    b = builder.source(first + 1, atomic.type);
    c = swaps ? builder.source(first + 2, atomic.type) : b;
    if (returns) dst = builder.destination(0, atomic.type);
  }
  const std::uint32_t list = listed.empty() ? 0 : builder.list(listed);
  // A warp that goes round an atomic operation may wait for a lock.
  Op& op = builder.emit(elements > 1 ? atomic.vector : atomic.scalar, Class::atomic,
                        returns ? Flow::yield : Flow::next);
  address.apply(op);
  op.dst = dst;
  op.dst2 = elements > 1 && returns ? listed[elements] : kNoSlot;
  op.src[1] = b;
  op.src[2] = c;
  op.aux = list;
  op.bytes = static_cast<std::uint8_t>(ptx::size_of(atomic.type));
  op.count = static_cast<std::uint8_t>(elements);
  if (space_of(op) == Space::shared) return;
  if (!atomic.commutes)
    op.flags |= kOrdered;
  else if (returns)
    op.flags |= kOrderedIfRead;
}

void decode_atom(Builder& builder) {
  decode_atomic(builder, true);
}

void decode_red(Builder& builder) {
  if (builder.accept("async")) builder.unsupported("red.async needs clusters, which are not modelled");
  decode_atomic(builder, false);
}

constexpr Opcode kOpcodes[] = {
    {"atom", decode_atom},
    {"red", decode_red},
};

}  // namespace

std::span<const Opcode> atomic_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
