// SPDX-License-Identifier: Apache-2.0
// Advice of a program on managed memory, as of cudaMemAdvise.
#pragma once
#include <cstdint>

namespace manyscale::gpu {

enum class Advice : std::uint8_t {
  read_mostly,  // read duplication; a write leaves one copy
  not_read_mostly,
  prefer_device,  // evicted last
  prefer_host,    // remote accesses of the device
  prefer_none,
  accessed_by_device,  // mapped for the device wherever it is: no page faults, no migration
  not_accessed_by_device,
  accessed_by_host,  // no effect: the host cannot access the device's memory, so pages still migrate
  not_accessed_by_host,
};

}  // namespace manyscale::gpu
