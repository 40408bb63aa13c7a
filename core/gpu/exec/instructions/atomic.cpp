// SPDX-License-Identifier: Apache-2.0
// Read-modify-write of memory: atom, and red, which is atom without a result. Lanes take effect in their
// order.
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <vector>

#include "gpu/exec/address_space.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/memory_access.hpp"
#include "gpu/exec/numerics/flush.hpp"
#include "gpu/exec/numerics/half_arithmetic.hpp"
#include "gpu/exec/numerics/ordering.hpp"
#include "gpu/exec/opcodes.hpp"

namespace manyscale::gpu {
namespace {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

struct Wide {  // 128 bits
  std::uint64_t low;
  std::uint64_t high;
  bool operator==(const Wide&) const = default;
};

// --- What becomes of a value
// ----------------------------------------------------------------------------------- Each has the type of
// the bits in memory, and apply(old, b, c, flushes): what is there afterwards.

template <class T>
struct Add {
  using Value = T;
  static T apply(T old, T b, T, bool) { return static_cast<T>(old + b); }
};
// T says how to compare.
template <class T>
struct Minimum {
  using Value = std::make_unsigned_t<T>;
  static Value apply(Value old, Value b, Value, bool) {
    return static_cast<T>(b) < static_cast<T>(old) ? b : old;
  }
};
template <class T>
struct Maximum {
  using Value = std::make_unsigned_t<T>;
  static Value apply(Value old, Value b, Value, bool) {
    return static_cast<T>(b) > static_cast<T>(old) ? b : old;
  }
};
template <class T>
struct And {
  using Value = T;
  static T apply(T old, T b, T, bool) { return old & b; }
};
template <class T>
struct Or {
  using Value = T;
  static T apply(T old, T b, T, bool) { return old | b; }
};
template <class T>
struct Xor {
  using Value = T;
  static T apply(T old, T b, T, bool) { return old ^ b; }
};
template <class T>
struct Exchange {
  using Value = T;
  static T apply(T, T b, T, bool) { return b; }
};
template <class T>
struct CompareAndSwap {
  using Value = T;
  static T apply(T old, T b, T c, bool) { return old == b ? c : old; }
};
struct Increment {
  using Value = std::uint32_t;
  static Value apply(Value old, Value b, Value, bool) { return old >= b ? 0 : old + 1; }
};
struct Decrement {
  using Value = std::uint32_t;
  static Value apply(Value old, Value b, Value, bool) { return old == 0 || old > b ? b : old - 1; }
};
struct AddF32 {
  using Value = std::uint32_t;
  static Value apply(Value old, Value b, Value, bool flushes) {
    const auto x = from_bits<float>(old);
    const auto y = from_bits<float>(b);
    return bits_of(canonical(flushes ? flush(flush(x) + flush(y)) : x + y));
  }
};
struct AddF64 {
  using Value = std::uint64_t;
  static Value apply(Value old, Value b, Value, bool) {
    const auto x = from_bits<double>(old);
    const auto y = from_bits<double>(b);
    return bits_of(propagate(x + y, x, y));
  }
};

struct HalfAdd {
  template <class H>
  static H of(H a, H b) {
    return add(a, b);
  }
};
struct HalfMinimum {
  template <class H>
  static H of(H a, H b) {
    return min(a, b);
  }
};
struct HalfMaximum {
  template <class H>
  static H of(H a, H b) {
    return max(a, b);
  }
};
// H is F16 or Bf16; T holds one of them or two.
template <class H, class T, class F>
struct Half {
  using Value = T;
  static T apply(T old, T b, T, bool) {
    T result = 0;
    for (unsigned shift = 0; shift < 8 * sizeof(T); shift += 16) {
      const H part =
          F::of(H{static_cast<std::uint16_t>(old >> shift)}, H{static_cast<std::uint16_t>(b >> shift)});
      result = static_cast<T>(result | static_cast<T>(part.bits) << shift);
    }
    return result;
  }
};

// --- How it is done
// --------------------------------------------------------------------------------------------

// Replaces a value by f(value), even if other host threads do so at the same time; returns what was there.
template <class T, class F>
T modify(std::byte* at, bool concurrent, F f) {
  if constexpr (sizeof(T) <= 8) {
    if (concurrent) {
      const std::atomic_ref<T> memory(*reinterpret_cast<T*>(at));
      T old = memory.load(std::memory_order_relaxed);
      while (!memory.compare_exchange_weak(old, f(old), std::memory_order_relaxed)) {
      }
      return old;
    }
  }
  T old;
  std::memcpy(&old, at, sizeof old);
  const T replaced = f(old);
  std::memcpy(at, &replaced, sizeof replaced);
  return old;
}

// Other host threads can get at the memory. What order they come in shows only in results that nobody reads,
// or the program would not be run by several.
bool is_concurrent(Warp& warp, const Op& op) {
  return warp.worker().shares_memory && space_of(op) != Space::shared;
}

// Sums of f32 in global memory know no subnormal numbers, those in shared memory do.
bool flushes(const Warp& warp, const Op& op, unsigned lane) {
  if (space_of(op) != Space::generic) return space_of(op) != Space::shared;
  return !in_window(warp.access.addresses[lane], kSharedWindow);
}

// src[1] and src[2]: the operands b and c. Without dst, the old value is not wanted.
template <class F>
void update(Warp& warp, const Op& op) {
  using T = typename F::Value;
  const Located located = locate(warp, op, sizeof(T), Does::atomic);
  const bool concurrent = is_concurrent(warp, op);
  const T* b = warp.lanes<T>(op.src[1]);
  const T* c = warp.lanes<T>(op.src[2]);
  T* result = op.dst == kNoSlot ? nullptr : warp.lanes<T>(op.dst);
  if (located.uniform) {
    // One access for all lanes. The register of the result may be that of an operand, and a failed attempt
    // must not touch it.
    std::array<T, kLanes> before;
    const bool flush = flushes(warp, op, static_cast<unsigned>(std::countr_zero(warp.mask)));
    modify<T>(located.at(0), concurrent, [&](T value) {
      const auto one = [&](unsigned lane) {
        before[lane] = value;
        value = F::apply(value, b[lane], c[lane], flush);
      };
      if (warp.mask == kAllLanes)
        for (unsigned lane = 0; lane < kLanes; ++lane) one(lane);
      else
        for_each_active(warp.mask, one);
      return value;
    });
    if (result != nullptr) for_each_active(warp.mask, [&](unsigned lane) { result[lane] = before[lane]; });
    return;
  }
  for_each_active(warp.mask, [&](unsigned lane) {
    const bool flush = flushes(warp, op, lane);
    const T old = modify<T>(located.at(lane), concurrent,
                            [&](T value) { return F::apply(value, b[lane], c[lane], flush); });
    if (result != nullptr) result[lane] = old;
  });
}

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
  if (operand.kind != Operand::Kind::vector || operand.count != elements)
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
