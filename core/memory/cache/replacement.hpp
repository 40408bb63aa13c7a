// SPDX-License-Identifier: Apache-2.0
// Replacement policy of a cache: which line of a set leaves for a new one. A policy is one file in
// replacement/ that registers itself. Each line has a stamp, a number whose meaning is the policy's; the
// cache sets it at each use and fill by the policy's rules, so that the policy itself is asked only for a
// victim.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "engine/random.hpp"
#include "engine/registry.hpp"

namespace manyscale::memory {

// What happens to the stamp of a line.
enum class StampRule : std::uint8_t {
  keep,   // nothing
  clock,  // becomes the number of this use: later ones have larger stamps, free lines 0
  value,  // becomes a fixed value
  call,   // the policy is called
};

struct ReplacementRules {
  StampRule on_use = StampRule::keep;
  std::uint32_t use_value = 0;
  StampRule on_fill = StampRule::keep;
  std::uint32_t fill_value = 0;
  bool lowest_stamp_leaves = false;  // the cache finds the victim itself
};

// The part of a cache that one policy is responsible for.
struct ReplacementShape {
  std::uint32_t sets = 1;
  std::uint32_t ways = 1;
};

class ReplacementPolicy {
 public:
  using PluginInterface = ReplacementPolicy;
  static constexpr std::string_view plugin_kind = "replacement policy";
  using Create = std::unique_ptr<ReplacementPolicy>(const ReplacementShape& shape);

  virtual ~ReplacementPolicy() = default;

  virtual ReplacementRules rules() const = 0;
  // For StampRule::call.
  virtual void used(std::uint32_t /*set*/, std::uint32_t /*way*/) {}
  virtual void filled(std::uint32_t /*set*/, std::uint32_t /*way*/) {}
  // The way to replace: one of those whose bit is set in `movable`, which is not 0. `stamps` are those of the
  // set. Not called where the lowest stamp leaves.
  virtual std::uint32_t victim(std::uint32_t /*set*/, std::span<std::uint32_t> /*stamps*/,
                               std::uint64_t /*movable*/, Random& /*random*/) {
    return 0;
  }
  // Memory that its own state takes.
  virtual std::size_t bytes() const { return 0; }
};

}  // namespace manyscale::memory
