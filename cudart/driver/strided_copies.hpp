// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#include "../abi.hpp"
#include "runtime_calls.hpp"

namespace manyscale::cuda_driver {

// One side of CUDA_MEMCPY3D.
struct CopySide3D {
  std::size_t x, y, z;  // x in bytes
  std::size_t level;    // of a mipmapped array
  int type;             // CUmemorytype
  void* host;
  void* device;
  cudart::Array* array;
  void* reserved;
  std::size_t pitch, height;
};

// CUDA_MEMCPY3D
struct Copy3D {
  CopySide3D source, target;
  std::size_t width, height, depth;  // width in bytes
};

// The same copy as the runtime takes it.
Result to_runtime(const Copy3D& given, cudart::Copy3DParameters& made);

}  // namespace manyscale::cuda_driver
