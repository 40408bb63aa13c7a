// SPDX-License-Identifier: Apache-2.0
// What the instructions of textures and of surfaces share: their geometries and operands.
#pragma once
#include <array>
#include <string_view>
#include <vector>

#include "gpu/exec/builder.hpp"
#include "gpu/exec/texture.hpp"
#include "gpu/exec/warp.hpp"

namespace manyscale::gpu {

// How a texture is addressed: by one to three coordinates, and by the number of a layer that precedes them.
enum class Geometry : std::uint8_t { one, two, three, layers_of_one, layers_of_two, cube, layers_of_cubes };

struct GeometryInfo {
  std::string_view name;
  unsigned coordinates;
  unsigned axes;  // within a layer
  bool layered;
  bool cube;
};

inline constexpr std::array<GeometryInfo, 7> kGeometries{{{"1d", 1, 1, false, false},
                                                          {"2d", 2, 2, false, false},
                                                          {"3d", 3, 3, false, false},
                                                          {"a1d", 1, 1, true, false},
                                                          {"a2d", 2, 2, true, false},
                                                          {"cube", 3, 2, false, true},
                                                          {"acube", 3, 2, true, true}}};

inline const GeometryInfo& info_of(Geometry geometry) {
  return kGeometries[static_cast<unsigned>(geometry)];
}

// The texture or surface with this handle; a fault of the lane if there is none.
const Texture& find_texture(const Warp& warp, std::uint64_t handle, unsigned lane);
// A fault of the lane unless the texture has the geometry that the instruction names.
void check_geometry(const Texture& texture, const GeometryInfo& geometry, unsigned lane);

// What one lane reads of a texture.
struct TexturePoint {
  Geometry geometry = Geometry::one;
  bool by_index = false;  // integers, not filtered
  bool gathers = false;   // one component of four texels
  std::uint8_t component = 0;
  std::uint32_t layer = 0;
  std::array<float, 3> coordinates{};
  std::array<std::int32_t, 3> indices{};
  std::array<std::int32_t, 3> offsets{};
};
// Its colour. SASS has no textures of one dimension that are filtered: they are of two, and so are
// read as if they had one.
Colour read_point(Warp& warp, std::uint64_t handle, TexturePoint point, unsigned lane);

// The slot of the handle in an operand [handle, {coordinates}].
Slot handle_of(Builder& builder, const ptx::Operand& operand);
// Slots of the first `count` of {a, b, …}; a single one may stand without braces, further ones mean nothing.
void add_vector(Builder& builder, const ptx::Operand& operand, unsigned count, ptx::Type first,
                ptx::Type others, std::vector<Slot>& slots);

}  // namespace manyscale::gpu
