// SPDX-License-Identifier: Apache-2.0
// Functions of numbers applied to the lanes of a warp, with modifiers such as `.ftz` and `.sat`.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "gpu/exec/builder.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/numerics/flush.hpp"
#include "gpu/exec/numerics/half.hpp"

namespace manyscale::gpu {

// Modifiers, as flags of an operation whose handler looks at them.
inline constexpr std::uint8_t kFtz = 1;
inline constexpr std::uint8_t kSat = 2;
inline constexpr std::uint8_t kRelu = 4;
inline constexpr std::uint8_t kSatfinite = 8;

// f(a), f(a, b) or f(a, b, c) of lanes of type T.
template <class T, unsigned count, class F>
inline void map_lanes(Warp& warp, const Op& op, F f) {
  if constexpr (count == 1) {
    map1<T, T>(warp, op, f);
  } else if constexpr (count == 2) {
    map2<T, T, T>(warp, op, f);
  } else {
    map3<T, T, T, T>(warp, op, f);
  }
}

// The function as it is.
template <auto function, class T, unsigned count>
void apply(Warp& warp, const Op& op) {
  map_lanes<T, count>(warp, op, [](auto... operands) { return function(operands...); });
}

// The function with `.ftz`.
template <auto function, class T, unsigned count>
void apply_flushed(Warp& warp, const Op& op) {
  map_lanes<T, count>(warp, op, [](auto... operands) { return flush(function(flush(operands)...)); });
}

// The numbers of the sources, flushed if the flags say so. A lane holds one number, or two.
template <class T, unsigned count, unsigned total>
class Operands {
 public:
  Operands(const Warp& warp, const Op& op) {
    for (unsigned k = 0; k < count; ++k) {
      numbers_[k] = warp.lanes<T>(op.src[k]);
      if (!(op.flags & kFtz)) continue;
      for (unsigned i = 0; i < total; ++i) flushed_[k][i] = flush(numbers_[k][i]);
      numbers_[k] = flushed_[k].data();
    }
  }
  const T* operator[](std::size_t k) const { return numbers_[k]; }

 private:
  std::array<const T*, count> numbers_;
  alignas(64) std::array<std::array<T, total>, count> flushed_;
};

// Writes results with what the flags say.
template <class T, std::size_t total>
void write_modified(Warp& warp, const Op& op, std::array<T, total>& results) {
  if (op.flags & kFtz) {
    for (T& result : results) result = flush(result);
  }
  if (op.flags & kSat) {
    for (T& result : results) result = saturate(result);
  }
  if constexpr (sizeof(T) == 2) {
    if (op.flags & kRelu) {
      for (T& result : results) result = relu(result);
    }
  }
  using Pair = std::conditional_t<sizeof(T) == 2, std::uint32_t, std::uint64_t>;
  using Word = std::conditional_t<total != kLanes, Pair, BitsOf<T>>;
  const auto words = std::bit_cast<std::array<Word, kLanes>>(results);
  for_lanes(warp, warp.lanes<Word>(op.dst), [&](unsigned i) { return words[i]; });
}

// The function with modifiers that are looked up in the flags: one instance for all of them, in more steps.
template <auto function, class T, unsigned count, unsigned total = kLanes>
void apply_modified(Warp& warp, const Op& op) {
  const Operands<T, count, total> operands(warp, op);
  alignas(64) std::array<T, total> results;
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    for (unsigned i = 0; i < total; ++i) results[i] = function(operands[k][i]...);
  }(std::make_index_sequence<count>{});
  write_modified(warp, op, results);
}

// The function of active lanes only, for those that are computed one by one.
template <auto function, class T, unsigned count>
void apply_singly(Warp& warp, const Op& op) {
  T* const result = warp.lanes<T>(op.dst);
  std::array<const T*, count> operands;
  for (unsigned k = 0; k < count; ++k) operands[k] = warp.lanes<T>(op.src[k]);
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    for_each_active(warp.mask, [&](unsigned i) { result[i] = function(operands[k][i]...); });
  }(std::make_index_sequence<count>{});
}

// Emits an operation whose operands are all of one type.
inline Op& emit_alike(Builder& builder, Handler handler, Class kind, ptx::Type type, unsigned sources) {
  builder.expect_operands(1 + sources);
  const Slot dst = builder.destination(0, type);
  std::array<Slot, 4> slots{kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  for (unsigned i = 0; i < sources; ++i) slots[i] = builder.source(i + 1, type);
  Op& op = builder.emit(handler, kind);
  op.dst = dst;
  op.src = slots;
  return op;
}

}  // namespace manyscale::gpu
