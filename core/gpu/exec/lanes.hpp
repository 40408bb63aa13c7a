// SPDX-License-Identifier: Apache-2.0
// Loops over the lanes of a warp, in the form that the compiler turns into vector instructions. Results are
// written for active lanes only. Operands either are the same registers or do not overlap, so no lane depends
// on another.
#pragma once
#include "gpu/exec/warp.hpp"

namespace manyscale::gpu {

// True for lanes in the mask, in the form that the compiler turns into a vector's selection rather than a
// branch.
inline bool lane_active(Mask mask, unsigned lane) {
  return (mask & (Mask{1} << lane)) != 0;
}

// result[lane] = f(lane) for the active lanes.
template <class T, class F>
inline void for_lanes(Warp& warp, T* result, F f) {
  const Mask mask = warp.mask;
  if (mask == kAllLanes) {
#pragma GCC ivdep
    for (unsigned lane = 0; lane < kLanes; ++lane) result[lane] = f(lane);
  } else {
#pragma GCC ivdep
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const T value = f(lane);
      const T previous = result[lane];
      // Written out: through a function it would become a branch for each lane.
      result[lane] = (mask & (Mask{1} << lane)) != 0 ? value : previous;
    }
  }
}

// The same for operations that are slow, or that must not be tried on inactive lanes' values.
template <class F>
inline void for_each_active(Mask mask, F f) {
  for (; mask != 0; mask &= mask - 1) f(static_cast<unsigned>(__builtin_ctz(mask)));
}

template <class D, class A, class F>
inline void map1(Warp& warp, const Op& op, F f) {
  const A* a = warp.lanes<A>(op.src[0]);
  for_lanes(warp, warp.lanes<D>(op.dst), [=](unsigned i) { return static_cast<D>(f(a[i])); });
}

template <class D, class A, class B, class F>
inline void map2(Warp& warp, const Op& op, F f) {
  const A* a = warp.lanes<A>(op.src[0]);
  const B* b = warp.lanes<B>(op.src[1]);
  for_lanes(warp, warp.lanes<D>(op.dst), [=](unsigned i) { return static_cast<D>(f(a[i], b[i])); });
}

template <class D, class A, class B, class C, class F>
inline void map3(Warp& warp, const Op& op, F f) {
  const A* a = warp.lanes<A>(op.src[0]);
  const B* b = warp.lanes<B>(op.src[1]);
  const C* c = warp.lanes<C>(op.src[2]);
  for_lanes(warp, warp.lanes<D>(op.dst), [=](unsigned i) { return static_cast<D>(f(a[i], b[i], c[i])); });
}

// A mask of the lanes for which f(lane) holds; inactive lanes are computed too and mean nothing.
template <class F>
inline Mask ballot(F f) {
  Mask result = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) result |= f(lane) ? Mask{1} << lane : 0;
  return result;
}

// Writes a predicate for the active lanes.
inline void set_predicate(Warp& warp, Slot slot, Mask value) {
  Mask& predicate = warp.predicate(slot);
  predicate = (predicate & ~warp.mask) | (value & warp.mask);
}

}  // namespace manyscale::gpu
