// SPDX-License-Identifier: Apache-2.0
// Texture objects: arrays that are read by coordinates, with addressing and filtering done by the hardware.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace manyscale::gpu {

struct Texture {
  enum class Address : std::uint8_t { wrap, clamp, mirror, border };
  enum class Filter : std::uint8_t { point, linear };
  enum class Format : std::uint8_t { u8, u16, u32, s8, s16, s32, f16, f32 };
  std::uint64_t memory = 0;  // address of texel (0, 0, 0) on the device
  std::uint64_t bytes = 0;   // of all texels
  Format format = Format::f32;
  std::uint8_t channels = 1;  // 1, 2 or 4
  std::uint8_t dimensions = 1;
  bool layered = false;  // the last extent counts layers
  bool cube = false;     // six layers
  bool normalized_coordinates = false;
  bool normalized_values = false;                // integers read as 0..1 or -1..1
  bool linear_memory = false;                    // a buffer: fetched by index, out of range reads zero
  std::array<std::uint32_t, 3> extent{1, 1, 1};  // texels in x, y, z
  std::uint64_t pitch = 0;                       // bytes from row to row; 0: rows follow each other
  std::array<Address, 3> address{Address::clamp, Address::clamp, Address::clamp};
  Filter filter = Filter::point;

  unsigned texel_bytes() const;
  // Whether what is read is a floating-point number.
  bool reads_floats() const;
};

// Textures of a device by handle; handle 0 is none.
class TextureTable {
 public:
  std::uint64_t add(const Texture& texture);
  bool remove(std::uint64_t handle);
  const Texture* find(std::uint64_t handle) const;

 private:
  std::vector<Texture> textures_;
  std::vector<bool> used_;
};

// The four components of a texel, as bits of an f32 or of a 32-bit integer. Those that the texture does not
// have are 0, 0 and 1.
using Colour = std::array<std::uint32_t, 4>;

// What a texture instruction reads of memory, as a texture unit sees it. Leaves out: the tiles of CUDA
// arrays, whose rows lie one after the other here.
struct TextureFootprint {
  std::vector<std::uint64_t>
      sectors;              // addresses of sectors of 32 B, in the order of lanes; some more than once
  unsigned lane_bytes = 0;  // of the texels that the lane with most of them needs

  void clear() {
    sectors.clear();
    lane_bytes = 0;
  }
};

// Reads one texture as texture units do: in one to three dimensions, within a layer if there are layers. The
// rules are those of the chapter "Texture Fetching" of the CUDA programming guide, with weights of 8
// fractional bits.
class TextureReader {
 public:
  // `memory` is the host's copy of the texels; `axes` are the dimensions within a layer. What is read is
  // added to the footprint.
  TextureReader(const Texture& texture, const std::byte* memory, unsigned axes, TextureFootprint& footprint);

  using Coordinates = std::array<float, 3>;
  using Indices = std::array<std::int32_t, 3>;

  // The texel with these indices.
  Colour fetch(const Indices& indices, const Indices& offsets, std::uint32_t layer) const;
  // What is at these coordinates, filtered if the texture is.
  Colour sample(const Coordinates& coordinates, const Indices& offsets, std::uint32_t layer) const;
  // One component of the four texels that would be filtered, counter-clockwise from (x, y + 1).
  Colour gather(const Coordinates& coordinates, const Indices& offsets, std::uint32_t layer,
                unsigned component) const;

  std::uint32_t layers() const { return layers_; }
  // Bytes of the texels' memory that can be read.
  std::uint64_t bytes() const;

 private:
  // Where an axis is read: two neighbours, of which one may be outside of the texture, and the weight of the
  // second.
  struct TexelPair {
    std::array<std::int64_t, 2> index{};  // negative: the border
    double weight = 0;
  };
  double position(unsigned axis, float coordinate, std::int32_t offset) const;
  std::int64_t address(unsigned axis, std::int64_t index) const;
  TexelPair neighbours(unsigned axis, float coordinate, std::int32_t offset) const;
  std::uint32_t clamp_layer(std::uint32_t layer) const;
  // A component of a texel: of floating-point numbers the value, of integers the bits.
  Colour texel(const std::array<std::int64_t, 3>& index, std::uint32_t layer) const;
  std::uint32_t component(const std::byte* at) const;
  void needs_texels(unsigned count) const;

  const Texture& texture_;
  const std::byte* memory_;
  unsigned axes_;
  TextureFootprint& footprint_;
  std::uint32_t layers_ = 1;
  std::uint64_t row_bytes_ = 0;
  std::uint64_t slice_bytes_ = 0;  // from z to z, or from layer to layer
};

}  // namespace manyscale::gpu
