// SPDX-License-Identifier: Apache-2.0
// A copy between host and device or within the device, and the protocol between the scheduler and the copy
// engines.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/port.hpp"
#include "gpu/exec/device_memory.hpp"

namespace manyscale::gpu {

using CommandId = std::uint64_t;

// How the bytes of a copy lie: in rows that follow each other, or have gaps between them.
struct CopyShape {
  std::uint64_t width = 0;  // bytes of a row; 0: all bytes are one
  std::uint64_t rows = 1;   // of a slice
  std::uint64_t slices = 1;
  std::array<std::uint64_t, 2> pitch{};        // from row to row: at the address, and at the source or pinned
  std::array<std::uint64_t, 2> slice_pitch{};  // from slice to slice, likewise

  // From the first byte to behind the last, on one of the two sides.
  std::uint64_t extent(unsigned side, std::uint64_t bytes) const {
    return width == 0 ? bytes : (slices - 1) * slice_pitch[side] + (rows - 1) * pitch[side] + width;
  }
};

enum class CopyKind : std::uint8_t { to_device, to_host, within, fill };

// What is copied where. The values move at the moment at which the copy ends.
struct Copy {
  CopyKind kind = CopyKind::to_device;
  DeviceMemory* memory = nullptr;
  std::uint64_t address = 0;  // in the device's memory: the target, or what goes to the host
  std::uint64_t source = 0;   // of a copy within the device
  std::uint64_t bytes = 0;    // in all
  std::uint64_t pinned =
      0;  // the host's side, where that lies in the same address space; else it is in `host`
  CopyShape shape;
  std::vector<std::byte> host;  // what comes from the host or has gone there; the pattern that memory is
                                // filled with
};

struct CopyStart {
  CommandId command = 0;
};

struct CopyEnd {
  CommandId command = 0;
};

struct CopyProtocol {
  static constexpr std::string_view name = "copy";
  static constexpr std::array<std::string_view, 2> roles{"scheduler", "engine"};
  using First = CopyStart;
  using Second = CopyEnd;
};

}  // namespace manyscale::gpu
