// SPDX-License-Identifier: Apache-2.0
// Arrays as the driver describes them.
#pragma once
#include <cstddef>

#include "../abi.hpp"
#include "runtime_calls.hpp"

namespace manyscale::cuda_driver {

// The numbers of CUarray_format.
enum class ArrayFormat : int {
  unsigned_8 = 1,
  unsigned_16 = 2,
  unsigned_32 = 3,
  signed_8 = 8,
  signed_16 = 9,
  signed_32 = 10,
  half = 16,
  single = 32,
};

// The runtime's format of elements; false if there is none.
bool to_channels(ArrayFormat format, unsigned channels, cudart::ChannelFormat& made);
void from_channels(const cudart::ChannelFormat& given, ArrayFormat& format, unsigned& channels);
// The bytes of an element of an array; 0 if there is no such array.
std::size_t element_bytes(cudart::Array* array);

}  // namespace manyscale::cuda_driver
