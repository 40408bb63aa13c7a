// SPDX-License-Identifier: Apache-2.0
// Read-modify-write of memory by the lanes of a warp, in their order.
#pragma once
#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include "gpu/exec/address_space.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/memory_access.hpp"
#include "gpu/exec/numerics/flush.hpp"
#include "gpu/exec/numerics/half_arithmetic.hpp"
#include "gpu/exec/numerics/ordering.hpp"

namespace manyscale::gpu::atomic_lanes {

using ptx::Space;

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
inline bool is_concurrent(Warp& warp, const Op& op) {
  return warp.worker().shares_memory && space_of(op) != Space::shared;
}

// Sums of f32 in global memory flush subnormal numbers, those in shared memory do not.
inline bool flushes(const Warp& warp, const Op& op, unsigned lane) {
  if (space_of(op) != Space::generic) return space_of(op) != Space::shared;
  return !in_window(warp.access->addresses[lane], kSharedWindow);
}

// How an operand of T lies in a register: one lane after the other.
template <class T>
struct Straight {
  T* lanes = nullptr;
  Straight(const Warp& warp, Slot slot) : lanes(slot == kNoSlot ? nullptr : warp.lanes<T>(slot)) {}
  T get(unsigned lane) const { return lanes[lane]; }
  void set(unsigned lane, T value) const { lanes[lane] = value; }
  explicit operator bool() const { return lanes != nullptr; }
};

// src[1] and src[2]: the operands b and c. Without dst, the old value is not wanted.
template <class F, template <class> class Register = Straight>
void update(Warp& warp, const Op& op) {
  using T = typename F::Value;
  const Located located = locate(warp, op, sizeof(T), Does::atomic);
  const bool concurrent = is_concurrent(warp, op);
  const Register<T> b(warp, op.src[1]);
  const Register<T> c(warp, op.src[2] == kNoSlot ? op.src[1] : op.src[2]);
  const Register<T> result(warp, op.dst);
  if (op.dst2 != kNoSlot) set_predicate(warp, op.dst2, kAllLanes);  // it was done
  if (located.uniform) {
    // One access for all lanes. The register of the result may be that of an operand, and a failed attempt
    // must not touch it.
    std::array<T, kLanes> before;
    const bool flush = flushes(warp, op, static_cast<unsigned>(std::countr_zero(warp.mask)));
    modify<T>(located.at(0), concurrent, [&](T value) {
      const auto one = [&](unsigned lane) {
        before[lane] = value;
        value = F::apply(value, b.get(lane), c.get(lane), flush);
      };
      if (warp.mask == kAllLanes)
        for (unsigned lane = 0; lane < kLanes; ++lane) one(lane);
      else
        for_each_active(warp.mask, one);
      return value;
    });
    if (result) for_each_active(warp.mask, [&](unsigned lane) { result.set(lane, before[lane]); });
    return;
  }
  for_each_active(warp.mask, [&](unsigned lane) {
    const bool flush = flushes(warp, op, lane);
    const T old = modify<T>(located.at(lane), concurrent,
                            [&](T value) { return F::apply(value, b.get(lane), c.get(lane), flush); });
    if (result) result.set(lane, old);
  });
}

}  // namespace manyscale::gpu::atomic_lanes
