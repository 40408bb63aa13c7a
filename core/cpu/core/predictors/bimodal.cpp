// SPDX-License-Identifier: Apache-2.0
#include "cpu/core/direction_predictor.hpp"
#include "cpu/core/saturating_counters.hpp"

namespace manyscale::cpu {

namespace {

// Two-bit counters by address (Smith, "A study of branch prediction strategies", 1981).
class Bimodal final : public DirectionPlugin<Bimodal> {
 public:
  explicit Bimodal(const BranchSpec& spec) : counters_(spec.base_entries) {}

  bool predict_and_train(std::uint64_t pc, bool taken, const BranchHistory&) {
    return counters_.predict_and_train(static_cast<std::uint32_t>(pc >> 1), taken);
  }

 private:
  SaturatingCounters counters_;
};

const Registered<Bimodal> registered{"bimodal", "Two-bit counters by address."};

}  // namespace

}  // namespace manyscale::cpu
