// SPDX-License-Identifier: Apache-2.0
// Warp scheduler of a sub-core: decides which of its eligible warps issues. A policy is a plug-in, one file
// of warp_scheduler/ or of a library from outside. It is asked when an SM is built and when a warp becomes
// resident, never at an issue, unless it has a rank of its own.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>

#include "engine/registry.hpp"

namespace manyscale::gpu {

class WarpScheduler {
 public:
  using PluginInterface = WarpScheduler;
  static constexpr std::string_view plugin_kind = "warp scheduler";
  using Create = std::unique_ptr<WarpScheduler>();

  // A warp that could issue.
  struct Eligible {
    std::uint32_t warp = 0;      // its slot of the SM
    std::uint32_t last = 0;      // the slot that issued last in this sub-core
    std::uint32_t warps = 0;     // slots of the SM
    std::uint64_t priority = 0;  // that it was given
    bool yields = false;         // its last instruction lets other warps go first
  };
  using Rank = std::uint64_t (*)(const Eligible&);

  virtual ~WarpScheduler() = default;
  // Greedy: the warp that issued last goes first, unless its last instruction yields.
  virtual bool greedy() const { return false; }
  // Round robin: warps take turns by their slots, whatever their priority.
  virtual bool round_robin() const { return false; }
  // Priority of a warp, at least 1 and less than the largest number, from how many became resident before it.
  // The eligible warp with the highest issues; of equals the one in the first slot.
  virtual std::uint64_t priority(std::uint64_t age) const { return age + 1; }
  // Rank that replaces all of the above; null: none. It is called for each eligible warp at each
  // issue.
  virtual Rank rank() const { return nullptr; }
};

}  // namespace manyscale::gpu
