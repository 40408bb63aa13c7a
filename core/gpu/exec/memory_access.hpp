// SPDX-License-Identifier: Apache-2.0
// From the addresses of a warp's lanes to host memory: every access of a kernel goes through here and is
// checked.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "gpu/exec/op.hpp"
#include "gpu/exec/warp.hpp"
#include "gpu/ptx/types.hpp"

namespace manyscale::gpu {

class Builder;

// Op::flags of instructions with an address: how it is written, and in which space.
inline constexpr std::uint8_t kNarrowBase = 1;  // the base register has 32 bits
inline constexpr std::uint8_t kInFrame = 2;     // the address is an offset in the function's frame
inline constexpr unsigned kSpaceShift = 2;
inline constexpr std::uint8_t kSassAddress = 0x20;  // the address is one of SASS
constexpr ptx::Space space_of(const Op& op) {
  return static_cast<ptx::Space>(op.flags >> kSpaceShift & 7);
}

// What an access does, for checks.
enum class Does : std::uint8_t { load, store, atomic };

// Where active lanes' data lie: origin + offsets[lane]. Lanes that are not active have a valid offset too.
struct Located {
  std::uintptr_t origin = 0;
  const std::uint64_t* offsets = nullptr;
  bool contiguous = false;  // lane i at offsets[0] + i * bytes
  bool uniform = false;     // all lanes at one address
  bool in_halves = false;   // the first 16 lanes are contiguous, and so are the others

  std::byte* at(unsigned lane) const { return reinterpret_cast<std::byte*>(origin + offsets[lane]); }
};

// Sets the base, offset and flags of an instruction's address operand; to be called before emit().
struct AddressFields {
  Slot base = kNoSlot;
  std::int64_t offset = 0;
  std::uint8_t flags = 0;
  void apply(Op& op) const {
    op.src[0] = base;
    op.immediate = offset;
    op.flags |= flags;
  }
};
AddressFields decode_address(Builder& builder, unsigned operand, ptx::Space space);
// Takes the state space among the modifiers (.global, .shared::cta, …).
ptx::Space decode_space(Builder& builder);

// Computes the addresses of an instruction that has them in src[0] and immediate, checks them for the active
// lanes (there must be one) and finds the memory behind them. `bytes` is what each lane touches and its
// alignment.
Located locate(Warp& warp, const Op& op, unsigned bytes, Does does);

// The same for addresses that were computed otherwise, for some lanes. `alignment` defaults to `bytes`.
struct LanePointers {
  std::array<std::byte*, kLanes> at{};
};
void resolve(Warp& warp, const Op& op, ptx::Space space, const std::uint64_t* addresses, Mask lanes,
             unsigned bytes, bool writes, LanePointers& pointers);

// addresses[lane] = base[lane] + offset, for all lanes. The base has 64-bit lanes; kNoSlot: none.
void compute_addresses(Warp& warp, Slot base, std::int64_t offset, std::uint64_t* addresses);

// Bytes of one lane's generic address, one by one.
void read_bytes(Warp& warp, unsigned lane, std::uint64_t address, void* to, std::size_t bytes);
// A string of the device's memory, up to its zero, for messages and printf.
std::string read_string(Warp& warp, unsigned lane, std::uint64_t address, std::size_t limit);

}  // namespace manyscale::gpu
