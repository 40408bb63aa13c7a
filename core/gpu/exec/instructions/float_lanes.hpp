// SPDX-License-Identifier: Apache-2.0
// Functions of numbers applied to the lanes of a warp, with `.ftz` and `.sat`.
#pragma once
#include <array>
#include <cstddef>
#include <utility>

#include "gpu/exec/lanes.hpp"
#include "gpu/exec/numerics/flush.hpp"

namespace manyscale::gpu {

// Flags of an operation whose handler looks at them.
inline constexpr std::uint8_t kFlushes = 1;
inline constexpr std::uint8_t kSaturates = 2;
inline constexpr std::uint8_t kRelu = 4;

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

// The function with modifiers that are looked up in the flags: one instance for all of them, in more steps.
template <auto function, class T, unsigned count>
void apply_modified(Warp& warp, const Op& op) {
  alignas(64) std::array<std::array<T, kLanes>, count> operands;
  for (unsigned k = 0; k < count; ++k) {
    const T* source = warp.lanes<T>(op.src[k]);
    if (op.flags & kFlushes) {
      for (unsigned i = 0; i < kLanes; ++i) operands[k][i] = flush(source[i]);
    } else {
      for (unsigned i = 0; i < kLanes; ++i) operands[k][i] = source[i];
    }
  }
  alignas(64) std::array<T, kLanes> results;
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    for (unsigned i = 0; i < kLanes; ++i) results[i] = function(operands[k][i]...);
  }(std::make_index_sequence<count>{});
  if (op.flags & kFlushes) {
    for (T& result : results) result = flush(result);
  }
  if (op.flags & kSaturates) {
    for (T& result : results) result = saturate(result);
  }
  for_lanes(warp, warp.lanes<T>(op.dst), [&](unsigned i) { return results[i]; });
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

}  // namespace manyscale::gpu
