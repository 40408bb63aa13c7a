// SPDX-License-Identifier: Apache-2.0
// Where elements of surfaces lie: what the instructions of PTX and of SASS share.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "gpu/exec/instructions/texture_access.hpp"

namespace manyscale::gpu {

// What happens outside of the surface: the kernel is stopped, the nearest element is taken, or zeros are read
// and nothing is written.
enum class Outside : std::uint8_t { trap, clamp, zero };

// An element of a surface: its coordinates (the first one in bytes), a layer, and its size.
struct SurfaceElement {
  Geometry geometry = Geometry::one;
  Outside outside = Outside::trap;
  std::uint32_t bytes = 4;
  std::array<std::int32_t, 3> coordinates{};
  std::int32_t layer = 0;
};

// Its address in memory; null if it is outside and nothing is to be done. A fault of the lane where that is
// one. The warp's access gets the lane and its address.
std::byte* surface_address(Warp& warp, const Texture& surface, const SurfaceElement& element, unsigned lane);

}  // namespace manyscale::gpu
