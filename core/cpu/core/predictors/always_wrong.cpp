// SPDX-License-Identifier: Apache-2.0
#include "cpu/core/direction_predictor.hpp"

namespace manyscale::cpu {

namespace {

class AlwaysWrong final : public DirectionPlugin<AlwaysWrong> {
 public:
  explicit AlwaysWrong(const BranchSpec&) {}
  static Prediction outcome(Prediction) { return Prediction::mispredict; }
};

const Registered<AlwaysWrong> registered{"always_wrong", "Every branch and jump is mispredicted."};

}  // namespace

}  // namespace manyscale::cpu
