// SPDX-License-Identifier: Apache-2.0
// A table of two-bit saturating counters, as bimodal and gshare predictors have it: taken from 2 on.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace manyscale::cpu {

class SaturatingCounters {
 public:
  // So many, a power of two; all weakly not taken.
  explicit SaturatingCounters(std::int64_t entries) : counters_(static_cast<std::size_t>(entries), 1) {}

  bool predict_and_train(std::uint32_t index, bool taken) {
    std::uint8_t& counter = counters_[index & (counters_.size() - 1)];
    const bool predicted = counter >= 2;
    if (taken && counter < 3) ++counter;
    if (!taken && counter > 0) --counter;
    return predicted;
  }

 private:
  std::vector<std::uint8_t> counters_;
};

}  // namespace manyscale::cpu
