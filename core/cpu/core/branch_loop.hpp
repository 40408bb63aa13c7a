// SPDX-License-Identifier: Apache-2.0
// Predicts the end of loops that are left after the same number of rounds each time, however many.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace manyscale::cpu {

class LoopPredictor {
 public:
  explicit LoopPredictor(std::int64_t entries) : loops_(static_cast<std::size_t>(entries)) {}

  // The direction, where the loop had the same number of rounds often enough.
  std::optional<bool> predict(std::uint64_t pc) const {
    const Loop& loop = loops_[index(pc)];
    if (loop.pc != pc || loop.confidence < sure) return std::nullopt;
    return loop.round + 1 == loop.rounds ? !loop.body : loop.body;
  }
  // Learns where the branch went; one that was predicted `wrong` takes an entry unless a confident one has
  // it.
  void train(std::uint64_t pc, bool taken, bool wrong) {
    Loop& loop = loops_[index(pc)];
    if (loop.pc != pc) {
      if (!wrong) return;
      if (loop.confidence > 0) {
        --loop.confidence;
        return;
      }
      // It was expected to go on and did not, most likely at the end of a loop.
      loop = {pc, 0, 0, 0, !taken};
      return;
    }
    ++loop.round;
    if (taken == loop.body) {
      if (loop.rounds != 0 && loop.round >= loop.rounds) loop.rounds = loop.confidence = 0;
      if (loop.round >= most_rounds) loop = {};
      return;
    }
    if (loop.round == loop.rounds) {
      if (loop.confidence < sure) ++loop.confidence;
    } else {
      loop.rounds = loop.round;
      loop.confidence = 0;
    }
    loop.round = 0;
  }

 private:
  static constexpr std::uint8_t sure = 3;
  static constexpr std::uint32_t most_rounds = 1 << 20;

  struct Loop {
    std::uint64_t pc = ~std::uint64_t{0};
    std::uint32_t rounds = 0;  // of the last time; 0: not known
    std::uint32_t round = 0;   // of this time
    std::uint8_t confidence = 0;
    bool body = true;  // the direction of all rounds but the last
  };

  std::size_t index(std::uint64_t pc) const { return (pc >> 1 ^ pc >> 9) & (loops_.size() - 1); }

  std::vector<Loop> loops_;
};

}  // namespace manyscale::cpu
