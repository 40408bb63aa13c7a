// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#include "abi.hpp"
#include "streams.hpp"

namespace manyscale::cudart {

inline constexpr int kHostDevice = -1;  // cudaCpuDeviceId

// The device of a location, kHostDevice for the host's.
int device_of(MemoryLocation location);
Error prefetch(const void* pointer, std::size_t bytes, int device, Stream* stream, DefaultStream when_null);
// `advice` by the numbers of cudaMemoryAdvise.
Error advise(const void* pointer, std::size_t bytes, unsigned advice, int device);

}  // namespace manyscale::cudart
