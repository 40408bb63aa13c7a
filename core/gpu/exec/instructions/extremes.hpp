// SPDX-License-Identifier: Apache-2.0
// The variants of `min` and `max` of floating-point numbers.
#pragma once
#include "gpu/exec/builder.hpp"
#include "gpu/exec/numerics/ordering.hpp"

namespace manyscale::gpu {

template <bool larger, Nan N>
inline constexpr auto kExtreme = [](auto a, auto b) { return larger ? max<N>(a, b) : min<N>(a, b); };

template <bool larger, Nan N>
inline constexpr auto kExtremeXorsign =
    [](auto a, auto b) { return larger ? max_xorsign_abs<N>(a, b) : min_xorsign_abs<N>(a, b); };

// A call of choose<function>() with the function that the modifiers `.NaN` and `.xorsign.abs` ask for.
template <bool larger, class F>
Handler with_extreme(Builder& builder, F choose) {
  const bool propagates = builder.accept("NaN");
  const bool xorsign = builder.accept("xorsign");
  if (xorsign && !builder.accept("abs")) builder.unsupported(".xorsign needs .abs");
  if (propagates) {
    return xorsign ? choose.template operator()<kExtremeXorsign<larger, Nan::propagated>>()
                   : choose.template operator()<kExtreme<larger, Nan::propagated>>();
  }
  return xorsign ? choose.template operator()<kExtremeXorsign<larger, Nan::ignored>>()
                 : choose.template operator()<kExtreme<larger, Nan::ignored>>();
}

}  // namespace manyscale::gpu
