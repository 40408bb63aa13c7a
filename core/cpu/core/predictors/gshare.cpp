// SPDX-License-Identifier: Apache-2.0
#include "cpu/core/direction_predictor.hpp"
#include "cpu/core/saturating_counters.hpp"

namespace manyscale::cpu {

namespace {

// Two-bit counters by address xor global history (McFarling, "Combining branch predictors", 1993).
class Gshare final : public DirectionPlugin<Gshare> {
 public:
  explicit Gshare(const BranchSpec& spec)
      : counters_(spec.base_entries), mask_((1u << spec.gshare_history) - 1) {}

  bool predict_and_train(std::uint64_t pc, bool taken, const BranchHistory&) {
    const bool predicted =
        counters_.predict_and_train(static_cast<std::uint32_t>(pc >> 1) ^ (directions_ & mask_), taken);
    directions_ = directions_ << 1 | std::uint32_t{taken};
    return predicted;
  }

 private:
  SaturatingCounters counters_;
  std::uint32_t mask_;
  std::uint32_t directions_ = 0;  // of the latest conditional branches
};

const Registered<Gshare> registered{"gshare", "Two-bit counters by address xor global history."};

}  // namespace

}  // namespace manyscale::cpu
