// SPDX-License-Identifier: Apache-2.0
#include "memory/cache/replacement.hpp"

namespace manyscale::memory {

namespace {

// Stamps are times of the last use.
class Lru final : public ReplacementPolicy {
 public:
  explicit Lru(const ReplacementShape&) {}

  ReplacementRules rules() const override {
    return {.on_use = StampRule::clock, .on_fill = StampRule::clock, .lowest_stamp_leaves = true};
  }
};

const Registered<Lru> registered{"lru", "The least recently used line leaves."};

}  // namespace

}  // namespace manyscale::memory
