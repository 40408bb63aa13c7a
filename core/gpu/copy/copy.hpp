// SPDX-License-Identifier: Apache-2.0
// A copy between host and device or within the device, and what scheduler, copy engines and the host's link
// say to each other about it.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/port.hpp"
#include "gpu/exec/device_memory.hpp"

namespace manyscale::gpu {

using CommandId = std::uint64_t;

// What is copied where. The values move at the moment at which the copy ends.
struct Copy {
  enum class Kind : std::uint8_t { to_device, to_host, within, fill };

  Kind kind = Kind::to_device;
  DeviceMemory* memory = nullptr;
  std::uint64_t address = 0;  // in the device's memory: the target, or what goes to the host
  std::uint64_t source = 0;   // of a copy within the device
  std::uint64_t bytes = 0;
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

// A page that is to cross the link between host and device.
struct PageMove {
  std::uint64_t page = 0;  // a number that the answer gives back
  std::uint32_t bytes = 0;
  bool to_host = false;
};

struct PageMoved {
  std::uint64_t page = 0;
};

struct PageProtocol {
  static constexpr std::string_view name = "page";
  static constexpr std::array<std::string_view, 2> roles{"engine", "link"};
  using First = PageMove;
  using Second = PageMoved;
};

}  // namespace manyscale::gpu
