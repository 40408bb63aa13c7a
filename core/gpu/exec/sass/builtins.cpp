// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/sass/builtins.hpp"

#include <array>
#include <bit>

#include "gpu/exec/address_space.hpp"
#include "gpu/exec/builtins.hpp"
#include "gpu/exec/fault.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/sass/registers.hpp"

namespace manyscale::gpu {
namespace {

// The upper half of the code window: no module has that much code.
constexpr std::uint64_t kFirst = kCodeWindow + kWindowBytes / 2;
constexpr unsigned kFirstArgument = 4;

std::uint32_t& word(Warp& warp, unsigned index, unsigned lane) {
  return warp.lanes<std::uint32_t>(general_register(kFirstArgument + index))[lane];
}

std::uint64_t pair(Warp& warp, unsigned index, unsigned lane) {
  return word(warp, index, lane) | std::uint64_t{word(warp, index + 1, lane)} << 32;
}

void print(Warp& warp, unsigned lane) {
  const int printed = builtins::print(warp, lane, pair(warp, 0, lane), pair(warp, 2, lane));
  word(warp, 0, lane) = static_cast<std::uint32_t>(printed);
}

void allocate(Warp& warp, unsigned lane) {
  const std::uint64_t address = builtins::allocate(warp, pair(warp, 0, lane));
  word(warp, 0, lane) = static_cast<std::uint32_t>(address);
  word(warp, 1, lane) = static_cast<std::uint32_t>(address >> 32);
}

void free_memory(Warp& warp, unsigned lane) {
  builtins::free_memory(warp, lane, pair(warp, 0, lane));
}

void assertion_failed(Warp& warp, unsigned lane) {
  builtins::assertion_failed(
      warp, lane, {pair(warp, 0, lane), pair(warp, 2, lane), word(warp, 4, lane), pair(warp, 6, lane)});
}

struct Builtin {
  std::string_view name;
  void (*call)(Warp&, unsigned);
};

constexpr std::array kBuiltins{
    Builtin{"vprintf", print},
    Builtin{"malloc", allocate},
    Builtin{"free", free_memory},
    Builtin{"__assertfail", assertion_failed},
    Builtin{"__assert_fail", assertion_failed},
};

}  // namespace

std::optional<std::uint64_t> builtin_address(std::string_view name) {
  for (std::size_t i = 0; i < kBuiltins.size(); ++i)
    if (kBuiltins[i].name == name) return kFirst + i * kFunctionStride;
  return std::nullopt;
}

bool is_builtin(std::uint64_t address) {
  return address - kFirst < kBuiltins.size() * kFunctionStride && address % kFunctionStride == 0;
}

void call_builtin(Warp& warp, const Op&, std::uint64_t address) {
  const Builtin& builtin = kBuiltins[(address - kFirst) / kFunctionStride];
  for_each_active(warp.mask, [&](unsigned lane) { builtin.call(warp, lane); });
}

}  // namespace manyscale::gpu
