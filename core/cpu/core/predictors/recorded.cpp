// SPDX-License-Identifier: Apache-2.0
#include "cpu/core/direction_predictor.hpp"

namespace manyscale::cpu {

namespace {

class Recorded final : public DirectionPlugin<Recorded> {
 public:
  explicit Recorded(const BranchSpec&) {}
  static Prediction outcome(Prediction recorded) { return recorded; }
};

const Registered<Recorded> registered{"recorded", "The outcome that a trace has recorded for each branch."};

}  // namespace

}  // namespace manyscale::cpu
