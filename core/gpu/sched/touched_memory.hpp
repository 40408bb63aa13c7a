// SPDX-License-Identifier: Apache-2.0
// Which memory commands may touch, as far as their arguments tell.
#pragma once
#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "gpu/exec/device.hpp"
#include "gpu/sched/command.hpp"

namespace manyscale::gpu {

// Says whether commands of different streams may touch the same memory: then what they read and write depends
// on the order of time, which only a simulation on one thread keeps. A kernel may touch every allocation that
// one of its parameters points into, and the variables of its module. Leaves out pointers that a kernel finds
// in memory, and that events may keep two commands apart.
class TouchedMemory {
 public:
  using Range = DeviceMemory::Range;

  void add_kernel(CommandId id, std::uint32_t stream, const DeviceMemory& memory, LoadedModule& module,
                  std::span<const std::byte> parameters);
  void add_copy(CommandId id, std::uint32_t stream, const Copy& copy);
  void remove(CommandId id) { touched_.erase(id); }
  bool shared_between_streams() const;

 private:
  struct Touched {
    std::uint32_t stream;
    std::vector<Range> ranges;
  };
  std::unordered_map<CommandId, Touched> touched_;
  std::unordered_map<LoadedModule*, std::vector<Range>> variables_;  // of modules
};

}  // namespace manyscale::gpu
