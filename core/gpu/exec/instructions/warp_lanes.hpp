// SPDX-License-Identifier: Apache-2.0
// How the lanes of a warp exchange values: shuffles, matches and reductions.
#pragma once
#include <algorithm>
#include <array>

#include "gpu/exec/lanes.hpp"

namespace manyscale::gpu::warp_lanes {

using U32 = std::uint32_t;

// The same value for all active lanes.
template <class T>
void broadcast(Warp& warp, Slot slot, T value) {
  for_lanes(warp, warp.lanes<T>(slot), [=](unsigned) { return value; });
}

enum class Shuffle { up, down, bfly, idx };

// c holds the last lane that can be read (the first one of .up) and, in bits 8 to 12, which bits of the lane
// number divide the warp into segments. The ISA does not say what is read from a lane that does not take
// part; here it is zero, since programs that run well on GPUs add up what they read from such lanes.
template <Shuffle mode>
void shfl(Warp& warp, const Op& op) {
  const U32* b = warp.lanes<U32>(op.src[1]);
  const U32* c = warp.lanes<U32>(op.src[2]);
  alignas(32) std::array<U32, kLanes> values;
  std::copy_n(warp.lanes<U32>(op.src[0]), kLanes, values.begin());
  alignas(32) std::array<U32, kLanes> sources;
  alignas(32) std::array<U32, kLanes> readable;
  for (unsigned i = 0; i < kLanes; ++i) {
    const U32 segment = (c[i] >> 8) & 31;
    const U32 first = i & segment;
    const U32 bound = first | (c[i] & ~segment & 31);
    const U32 distance = b[i] & 31;
    U32 source = 0;
    if constexpr (mode == Shuffle::up) source = i - distance;
    if constexpr (mode == Shuffle::down) source = i + distance;
    if constexpr (mode == Shuffle::bfly) source = i ^ distance;
    if constexpr (mode == Shuffle::idx) source = first | (distance & ~segment);
    const bool in_range = mode == Shuffle::up
                              ? static_cast<std::int32_t>(source) >= static_cast<std::int32_t>(bound)
                              : source <= bound;
    sources[i] = in_range ? source : i;
    readable[i] = in_range;
  }
  if (op.dst2 != kNoSlot) set_predicate(warp, op.dst2, ballot([&](unsigned i) { return readable[i] != 0; }));
  if (warp.mask != kAllLanes)
    for (unsigned i = 0; i < kLanes; ++i) values[i] = warp.mask >> i & 1 ? values[i] : 0;
  for_lanes(warp, warp.lanes<U32>(op.dst), [&](unsigned i) { return values[sources[i]]; });
}

// Active lanes that have this value.
template <class T>
Mask equal_lanes(const Warp& warp, const T* values, T value) {
  return ballot([=](unsigned i) { return values[i] == value; }) & warp.mask;
}

template <class T>
void match_any_of(Warp& warp, const Op& op, const T* values) {
  alignas(32) std::array<U32, kLanes> groups{};
  for (Mask left = warp.mask; left != 0;) {
    const Mask group = equal_lanes(warp, values, values[__builtin_ctz(left)]);
    for_each_active(group, [&](unsigned i) { groups[i] = group; });
    left &= ~group;
  }
  for_lanes(warp, warp.lanes<U32>(op.dst), [&](unsigned i) { return groups[i]; });
}

template <class T>
void match_all_of(Warp& warp, const Op& op, const T* values) {
  if (warp.mask == 0) return;
  const bool all = equal_lanes(warp, values, values[__builtin_ctz(warp.mask)]) == warp.mask;
  broadcast<U32>(warp, op.dst, all ? warp.mask : 0);
  if (op.dst2 != kNoSlot) set_predicate(warp, op.dst2, all ? kAllLanes : 0);
}

struct Sum {
  U32 operator()(U32 a, U32 b) const { return a + b; }
};
struct Both {
  U32 operator()(U32 a, U32 b) const { return a & b; }
};
struct Either {
  U32 operator()(U32 a, U32 b) const { return a | b; }
};
struct Odd {
  U32 operator()(U32 a, U32 b) const { return a ^ b; }
};
template <class T>
struct Smaller {
  T operator()(T a, T b) const { return std::min(a, b); }
};
template <class T>
struct Larger {
  T operator()(T a, T b) const { return std::max(a, b); }
};

// Folds the values of all active lanes, which may be in any order.
template <class T, class F>
void redux(Warp& warp, const Op& op) {
  if (warp.mask == 0) return;
  const T* values = warp.lanes<T>(op.src[0]);
  T result = values[__builtin_ctz(warp.mask)];
  for_each_active(warp.mask & (warp.mask - 1), [&](unsigned i) { result = F{}(result, values[i]); });
  broadcast(warp, op.dst, result);
}

}  // namespace manyscale::gpu::warp_lanes
