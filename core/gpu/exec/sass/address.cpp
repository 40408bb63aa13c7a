// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/sass/address.hpp"

#include "gpu/exec/sass/lanes.hpp"

namespace manyscale::gpu {

namespace {

// Addresses of 32 bits.
void narrow_addresses(const Warp& warp, const Op& op, MachineAddress fields, std::uint64_t* addresses) {
  const auto offset = static_cast<std::uint32_t>(fields.offset);
  if (op.src[0] == kNoSlot) {
    for (unsigned i = 0; i < kLanes; ++i) addresses[i] = offset;
  } else {
    const auto* base = warp.lanes<std::uint32_t>(op.src[0]);
    const unsigned shift = fields.shift;
    for (unsigned i = 0; i < kLanes; ++i)
      addresses[i] = static_cast<std::uint32_t>((base[i] << shift) + offset);
  }
  if (op.src[3] == kNoSlot) return;
  const auto* uniform = warp.lanes<std::uint32_t>(op.src[3]);
  for (unsigned i = 0; i < kLanes; ++i) addresses[i] = static_cast<std::uint32_t>(addresses[i] + uniform[i]);
}

}  // namespace

void machine_addresses(const Warp& warp, const Op& op, std::uint64_t* addresses) {
  const auto fields = std::bit_cast<MachineAddress>(op.immediate);
  if (fields.wraps) return narrow_addresses(warp, op, fields, addresses);
  const auto offset = static_cast<std::uint64_t>(std::int64_t{fields.offset});
  if (op.src[0] == kNoSlot) {
    for (unsigned i = 0; i < kLanes; ++i) addresses[i] = offset;
  } else if (fields.base_is_pair) {
    const Pairs base(warp, op.src[0]);
    for (unsigned i = 0; i < kLanes; ++i) addresses[i] = base[i] + offset;
  } else {
    const auto* base = warp.lanes<std::uint32_t>(op.src[0]);
    const unsigned shift = fields.shift;
    if (fields.is_unsigned) {
      for (unsigned i = 0; i < kLanes; ++i) addresses[i] = (std::uint64_t{base[i]} << shift) + offset;
    } else {
      for (unsigned i = 0; i < kLanes; ++i)
        addresses[i] =
            (static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(base[i])}) << shift) + offset;
    }
  }
  if (op.src[3] == kNoSlot) return;
  const Pairs uniform(warp, op.src[3]);
  for (unsigned i = 0; i < kLanes; ++i) addresses[i] += uniform[i];
}

}  // namespace manyscale::gpu
