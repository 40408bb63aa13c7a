// SPDX-License-Identifier: Apache-2.0
// CUDA arrays: rows of elements in device memory, padded to a pitch, for textures and surfaces.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "abi.hpp"
#include "operations.hpp"

namespace manyscale::cudart {

struct Array {
  ChannelFormat format{};
  Extent extent{};  // in elements; height and depth 0 as the program gave them
  unsigned flags = 0;
  std::uint64_t address = 0;
  std::uint64_t pitch = 0;
  std::uint64_t slice = 0;
  bool level = false;  // of a mipmapped array, which owns the memory

  std::size_t element_bytes() const;
  std::size_t rows() const { return extent.height == 0 ? 1 : extent.height; }
  std::size_t slices() const { return extent.depth == 0 ? 1 : extent.depth; }
  bool layered() const { return (flags & 1) != 0; }
  bool cube() const { return (flags & 4) != 0; }
};

struct MipmappedArray {
  std::vector<Array> levels;
};

Array* find_array(const Array* handle);
MipmappedArray* find_mipmapped_array(const MipmappedArray* handle);

// A part of an array as a side of a copy; x in bytes. A null pointer if it is not inside.
Region region_of(const Array& array, std::size_t x_bytes, std::size_t y, std::size_t z);

}  // namespace manyscale::cudart
