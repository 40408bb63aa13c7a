// SPDX-License-Identifier: Apache-2.0
// What a program says about how it will use managed memory, as with cudaMemAdvise.
#pragma once
#include <cstdint>

namespace manyscale::gpu {

enum class Advice : std::uint8_t {
  read_mostly,  // reading makes copies; a write leaves one of them
  not_read_mostly,
  prefer_device,  // evicted after all others
  prefer_host,    // the device reads and writes it where it is
  prefer_none,
  accessed_by_device,  // mapped for the device wherever it is: no faults, no migration
  not_accessed_by_device,
  accessed_by_host,  // noted; the host cannot reach the device's memory, so its pages still come back
  not_accessed_by_host,
};

}  // namespace manyscale::gpu
