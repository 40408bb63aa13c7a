// SPDX-License-Identifier: Apache-2.0
#include "cpu/core/direction_predictor.hpp"

namespace manyscale::cpu {

namespace {

class Perfect final : public DirectionPlugin<Perfect> {
 public:
  explicit Perfect(const BranchSpec&) {}
  static Prediction outcome(Prediction) { return Prediction::correct; }
};

const Registered<Perfect> registered{"perfect", "An oracle: directions and targets are always correct."};

}  // namespace

}  // namespace manyscale::cpu
