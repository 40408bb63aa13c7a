// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <stdexcept>
#include <string>
#include <vector>

#include "memory/cache/replacement.hpp"

namespace manyscale::memory {

namespace {

// A binary tree over the ways of each set; the bit of a node points away from the half that was used last.
class TreePlru final : public ReplacementPolicy {
 public:
  explicit TreePlru(const ReplacementShape& shape) : ways_(shape.ways) {
    if (!std::has_single_bit(ways_))
      throw std::invalid_argument("ways: tree-plru needs a power of two, not " + std::to_string(ways_));
    trees_.assign(shape.sets, 0);
  }

  ReplacementRules rules() const override { return {.on_use = StampRule::call, .on_fill = StampRule::call}; }
  void used(std::uint32_t set, std::uint32_t way) override {
    std::uint64_t& tree = trees_[set];
    std::uint32_t node = 1;
    for (std::uint32_t half = ways_ / 2; half > 0; half /= 2) {
      const bool right = (way & half) != 0;
      tree = right ? tree & ~(std::uint64_t{1} << node) : tree | std::uint64_t{1} << node;
      node = 2 * node + (right ? 1 : 0);
    }
  }
  void filled(std::uint32_t set, std::uint32_t way) override { used(set, way); }
  std::uint32_t victim(std::uint32_t set, std::span<std::uint32_t>, std::uint64_t movable, Random&) override {
    const std::uint64_t tree = trees_[set];
    std::uint32_t node = 1;
    std::uint32_t way = 0;
    for (std::uint32_t half = ways_ / 2; half > 0; half /= 2) {
      const bool right = (tree >> node & 1) != 0;
      if (right) way += half;
      node = 2 * node + (right ? 1 : 0);
    }
    return (movable >> way & 1) != 0 ? way : static_cast<std::uint32_t>(std::countr_zero(movable));
  }
  std::size_t bytes() const override { return trees_.capacity() * sizeof(std::uint64_t); }

 private:
  std::uint32_t ways_;
  std::vector<std::uint64_t> trees_;  // a bit per inner node, by set
};

const Registered<TreePlru> registered{"tree-plru",
                                      "The line that a tree of bits takes for the oldest leaves."};

}  // namespace

}  // namespace manyscale::memory
