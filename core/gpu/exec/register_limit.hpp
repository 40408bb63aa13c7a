// SPDX-License-Identifier: Apache-2.0
// The registers that a thread of a kernel may have, by what its text says of the CTAs that must fit on an SM.
#pragma once
#include <algorithm>
#include <cstdint>

#include "gpu/exec/lanes.hpp"
#include "gpu/ptx/module.hpp"

namespace manyscale::gpu {

inline constexpr std::uint32_t kMostRegisters = 255;

inline std::uint32_t register_limit(const ptx::Function& function) {
  constexpr std::uint32_t kRegistersOfSm = 65536;
  std::uint64_t threads = 1;
  const bool required = function.required_threads[0] != 0;
  for (unsigned i = 0; i < 3; ++i)
    threads *= std::max(1U, required ? function.required_threads[i] : function.maximum_threads[i]);
  std::uint32_t limit = kMostRegisters;
  if (required || function.maximum_threads[0] != 0) {
    const std::uint64_t warps = (std::min<std::uint64_t>(threads, 1024) + kLanes - 1) / kLanes;
    const std::uint64_t ctas = std::max(1U, std::min(function.minimum_ctas, 32U));
    const std::uint64_t each = kRegistersOfSm / (warps * ctas * kLanes) / 8 * 8;
    limit = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(each, 16, kMostRegisters));
  }
  if (function.maximum_registers != 0) limit = std::min(limit, std::max(function.maximum_registers, 16U));
  return limit;
}

}  // namespace manyscale::gpu
