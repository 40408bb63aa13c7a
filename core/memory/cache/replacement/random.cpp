// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "memory/cache/replacement.hpp"

namespace manyscale::memory {

namespace {

class RandomReplacement final : public ReplacementPolicy {
 public:
  explicit RandomReplacement(const ReplacementShape&) {}

  ReplacementRules rules() const override { return {}; }
  std::uint32_t victim(std::uint32_t, std::span<std::uint32_t>, std::uint64_t movable,
                       Random& random) override {
    auto skip = random.below(static_cast<std::uint64_t>(std::popcount(movable)));
    while (skip-- > 0) movable &= movable - 1;
    return static_cast<std::uint32_t>(std::countr_zero(movable));
  }
};

const Registered<RandomReplacement> registered{"random", "Any line leaves."};

}  // namespace

}  // namespace manyscale::memory
