// SPDX-License-Identifier: Apache-2.0
// The 49-bit address space of a device. Its memory begins at an address that a host program can map too, but
// where neither its loader nor its allocator puts anything, so that a program and a device can share one
// pointer and yet the host's own memory is never taken for the device's. The windows are where generic
// addresses of shared, local and parameter memory lie: no host pointer reaches them.
#pragma once
#include <cstdint>

namespace manyscale::gpu {

inline constexpr std::uint64_t kAddressBits = 49;
inline constexpr std::uint64_t kHeapBase = std::uint64_t{1} << 45;
inline constexpr std::uint64_t kWindows = (std::uint64_t{1} << 48) + (std::uint64_t{1} << 47);
inline constexpr std::uint64_t kWindowBytes = std::uint64_t{1} << 32;
inline constexpr std::uint64_t kSharedWindow = kWindows;
inline constexpr std::uint64_t kLocalWindow = kWindows + 1 * kWindowBytes;
inline constexpr std::uint64_t kParameterWindow = kWindows + 2 * kWindowBytes;
inline constexpr std::uint64_t kCodeWindow = kWindows + 3 * kWindowBytes;  // function f of a module: + 16 * f
inline constexpr std::uint64_t kFunctionStride = 16;

constexpr bool in_window(std::uint64_t address, std::uint64_t window) {
  return address - window < kWindowBytes;
}

}  // namespace manyscale::gpu
