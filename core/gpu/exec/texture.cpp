// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/texture.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "gpu/exec/numerics/half.hpp"

namespace manyscale::gpu {

namespace {

constexpr std::array<unsigned, 8> kFormatBytes{1, 2, 4, 1, 2, 4, 2, 4};

unsigned format_bytes(Texture::Format format) {
  return kFormatBytes[static_cast<unsigned>(format)];
}

bool is_float(Texture::Format format) {
  return format == Texture::Format::f16 || format == Texture::Format::f32;
}

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

std::uint32_t float_bits(double value) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

// An integer as a part of the largest of its type. The smallest one is -1 as the one after it is.
double normalize(std::uint32_t bits, Texture::Format format) {
  switch (format) {
    case Texture::Format::u8:
      return bits / 255.0;
    case Texture::Format::u16:
      return bits / 65535.0;
    case Texture::Format::s8:
      return std::max(static_cast<std::int32_t>(bits) / 127.0, -1.0);
    default:
      return std::max(static_cast<std::int32_t>(bits) / 32767.0, -1.0);
  }
}

}  // namespace

unsigned Texture::texel_bytes() const {
  return format_bytes(format) * channels;
}

bool Texture::reads_floats() const {
  return is_float(format) || (normalized_values && format_bytes(format) < 4);
}

std::uint64_t TextureTable::add(const Texture& texture) {
  const auto free = std::find(used_.begin(), used_.end(), false);
  const auto index = static_cast<std::size_t>(free - used_.begin());
  if (free == used_.end()) {
    textures_.push_back(texture);
    used_.push_back(true);
  } else {
    textures_[index] = texture;
    *free = true;
  }
  return index + 1;
}

bool TextureTable::remove(std::uint64_t handle) {
  if (find(handle) == nullptr) return false;
  used_[handle - 1] = false;
  return true;
}

const Texture* TextureTable::find(std::uint64_t handle) const {
  if (handle == 0 || handle > used_.size() || !used_[handle - 1]) return nullptr;
  return &textures_[handle - 1];
}

TextureReader::TextureReader(const Texture& texture, const std::byte* memory, unsigned axes,
                             TextureFootprint& footprint)
    : texture_(texture), memory_(memory), axes_(axes), footprint_(footprint) {
  if (texture.layered || texture.cube) layers_ = texture.extent[axes < 3 ? axes : 2];
  row_bytes_ = texture.pitch != 0 ? texture.pitch : std::uint64_t{texture.extent[0]} * texture.texel_bytes();
  slice_bytes_ = axes == 1 ? row_bytes_ : row_bytes_ * texture.extent[1];
}

// A lane needs so many texels.
void TextureReader::needs_texels(unsigned count) const {
  footprint_.lane_bytes = std::max(footprint_.lane_bytes, count * texture_.texel_bytes());
}

std::uint64_t TextureReader::bytes() const {
  const std::uint64_t slices = axes_ == 3 ? texture_.extent[2] : layers_;
  const std::uint64_t rows = axes_ == 1 ? 1 : texture_.extent[1];
  return (slices - 1) * slice_bytes_ + (rows - 1) * row_bytes_ +
         std::uint64_t{texture_.extent[0]} * texture_.texel_bytes();
}

std::uint32_t TextureReader::clamp_layer(std::uint32_t layer) const {
  // An index beyond the last one is unsigned or negative: the one is clamped up, the other down.
  const auto index = static_cast<std::int32_t>(layer);
  return index < 0 ? 0 : std::min(layer, layers_ - 1);
}

// In texels, from the edge of the first one, within the texture where coordinates repeat.
double TextureReader::position(unsigned axis, float coordinate, std::int32_t offset) const {
  constexpr double kFar = 1e9;
  const double extent = texture_.extent[axis];
  const double x = coordinate == coordinate ? coordinate : 0.0;
  if (!texture_.normalized_coordinates) return std::clamp(x + offset, -kFar, kFar);
  const double texels = std::isinf(x) ? 0.0 : x * extent + offset;
  const double round = std::floor(texels / extent);
  // Far away, coordinates are further apart than texels.
  const double rest = std::clamp(texels - round * extent, 0.0, extent);
  switch (texture_.address[axis]) {
    case Texture::Address::wrap:
      return rest;
    case Texture::Address::mirror:
      return std::fmod(round, 2) != 0 ? extent - rest : rest;
    default:
      return std::clamp(std::isinf(x) ? x : texels, -kFar, kFar);
  }
}

// The index that is read in place of one that may be outside; -1 for the border.
std::int64_t TextureReader::address(unsigned axis, std::int64_t index) const {
  const std::int64_t extent = texture_.extent[axis];
  if (index >= 0 && index < extent) return index;
  if (texture_.linear_memory || texture_.address[axis] == Texture::Address::border) return -1;
  // What repeats has been brought close by position(); with coordinates in texels, it is clamped.
  if (texture_.address[axis] == Texture::Address::wrap && texture_.normalized_coordinates)
    return index < 0 ? extent - 1 : 0;
  return index < 0 ? 0 : extent - 1;
}

TextureReader::TexelPair TextureReader::neighbours(unsigned axis, float coordinate,
                                                   std::int32_t offset) const {
  const double centred = position(axis, coordinate, offset) - 0.5;
  const double first = std::floor(centred);
  const auto index = static_cast<std::int64_t>(first);
  // 9 bits of fixed point, of which 8 are fractional: the weight may be 1.
  const double weight = std::floor((centred - first) * 256 + 0.5) / 256;
  return {{address(axis, index), address(axis, index + 1)}, weight};
}

std::uint32_t TextureReader::component(const std::byte* at) const {
  switch (texture_.format) {
    case Texture::Format::u8:
      return load<std::uint8_t>(at);
    case Texture::Format::u16:
      return load<std::uint16_t>(at);
    case Texture::Format::s8:
      return static_cast<std::uint32_t>(std::int32_t{load<std::int8_t>(at)});
    case Texture::Format::s16:
      return static_cast<std::uint32_t>(std::int32_t{load<std::int16_t>(at)});
    case Texture::Format::f16:
      return std::bit_cast<std::uint32_t>(to_f32(load<F16>(at)));
    default:
      return load<std::uint32_t>(at);
  }
}

Colour TextureReader::texel(const std::array<std::int64_t, 3>& index, std::uint32_t layer) const {
  const bool floats = texture_.reads_floats();
  Colour colour{0, 0, 0, floats ? std::bit_cast<std::uint32_t>(1.0f) : 1};
  bool inside = true;
  for (unsigned axis = 0; axis < axes_; ++axis) inside &= index[axis] >= 0;
  if (!inside) {
    std::fill_n(colour.begin(), texture_.channels, 0u);
    return colour;
  }
  std::uint64_t offset = static_cast<std::uint64_t>(index[0]) * texture_.texel_bytes() + layer * slice_bytes_;
  if (axes_ > 1) offset += static_cast<std::uint64_t>(index[1]) * row_bytes_;
  if (axes_ > 2) offset += static_cast<std::uint64_t>(index[2]) * slice_bytes_;
  const std::uint64_t sector = (texture_.memory + offset) / 32 * 32;
  if (footprint_.sectors.empty() || footprint_.sectors.back() != sector) footprint_.sectors.push_back(sector);
  const unsigned bytes = format_bytes(texture_.format);
  for (unsigned i = 0; i < texture_.channels; ++i) {
    const std::uint32_t bits = component(memory_ + offset + i * bytes);
    colour[i] = floats && !is_float(texture_.format) ? float_bits(normalize(bits, texture_.format)) : bits;
  }
  return colour;
}

Colour TextureReader::fetch(const Indices& indices, const Indices& offsets, std::uint32_t layer) const {
  std::array<std::int64_t, 3> index{};
  for (unsigned axis = 0; axis < axes_; ++axis)
    index[axis] = address(axis, std::int64_t{indices[axis]} + offsets[axis]);
  needs_texels(1);
  return texel(index, clamp_layer(layer));
}

Colour TextureReader::sample(const Coordinates& coordinates, const Indices& offsets,
                             std::uint32_t layer) const {
  layer = clamp_layer(layer);
  std::array<std::int64_t, 3> index{};
  if (texture_.filter == Texture::Filter::point || !texture_.reads_floats()) {
    for (unsigned axis = 0; axis < axes_; ++axis)
      index[axis] = address(
          axis, static_cast<std::int64_t>(std::floor(position(axis, coordinates[axis], offsets[axis]))));
    needs_texels(1);
    return texel(index, layer);
  }
  std::array<TexelPair, 3> pairs;
  for (unsigned axis = 0; axis < axes_; ++axis)
    pairs[axis] = neighbours(axis, coordinates[axis], offsets[axis]);
  std::array<double, 4> sums{};
  Colour colour{};
  needs_texels(1U << axes_);
  for (unsigned corner = 0; corner < 1u << axes_; ++corner) {
    double weight = 1;
    for (unsigned axis = 0; axis < axes_; ++axis) {
      const unsigned side = corner >> axis & 1;
      index[axis] = pairs[axis].index[side];
      weight *= side ? pairs[axis].weight : 1 - pairs[axis].weight;
    }
    if (weight == 0) continue;
    colour = texel(index, layer);
    for (unsigned i = 0; i < 4; ++i) sums[i] += weight * std::bit_cast<float>(colour[i]);
  }
  for (unsigned i = 0; i < texture_.channels; ++i)
    colour[i] = bits_of(canonical(static_cast<float>(sums[i])));
  return colour;
}

Colour TextureReader::gather(const Coordinates& coordinates, const Indices& offsets, std::uint32_t layer,
                             unsigned component) const {
  const TexelPair x = neighbours(0, coordinates[0], offsets[0]),
                  y = neighbours(1, coordinates[1], offsets[1]);
  constexpr std::array<std::array<unsigned, 2>, 4> kOrder{{{0, 1}, {1, 1}, {1, 0}, {0, 0}}};
  Colour colour{};
  needs_texels(4);
  for (unsigned i = 0; i < 4; ++i)
    colour[i] = texel({x.index[kOrder[i][0]], y.index[kOrder[i][1]], 0}, clamp_layer(layer))[component];
  return colour;
}

}  // namespace manyscale::gpu
