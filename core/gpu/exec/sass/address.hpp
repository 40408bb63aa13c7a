// SPDX-License-Identifier: Apache-2.0
// Addresses as SASS writes them: a register of 32 or 64 bits, shifted, a uniform register and an
// offset.
#pragma once
#include <bit>
#include <cstdint>

#include "gpu/exec/op.hpp"

namespace manyscale::gpu {

class Warp;

// How an address stands in Op::immediate; the base is in src[0], the uniform register in src[3].
struct MachineAddress {
  std::int32_t offset = 0;
  bool base_is_pair = false;
  bool is_unsigned = false;  // a base of 32 bits is extended by zeros
  bool wraps = false;        // the address and the uniform register have 32 bits, not 64
  std::uint8_t shift = 0;
};
static_assert(sizeof(MachineAddress) == 8);

constexpr std::int64_t packed(const MachineAddress& address) {
  return std::bit_cast<std::int64_t>(address);
}

// Computes the addresses of all lanes.
void machine_addresses(const Warp& warp, const Op& op, std::uint64_t* addresses);

}  // namespace manyscale::gpu
