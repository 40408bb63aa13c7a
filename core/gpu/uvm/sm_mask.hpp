// SPDX-License-Identifier: Apache-2.0
// Sets of SMs as masks of 64 bits; SMs whose numbers are equal modulo 64 share a bit.
#pragma once
#include <cstdint>

namespace manyscale::gpu {

inline std::uint64_t sm_bit(std::uint32_t sm) {
  return std::uint64_t{1} << sm % 64;
}

}  // namespace manyscale::gpu
