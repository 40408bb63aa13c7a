// SPDX-License-Identifier: Apache-2.0
#include "cpu/core/direction_predictor.hpp"

namespace manyscale::cpu {

namespace {

class Recorded final : public DirectionPlugin<Recorded> {
 public:
  explicit Recorded(const BranchSpec&) {}
  static Prediction outcome(const Record& record) {
    if (record.has(Trait::mispredicted)) return Prediction::mispredict;
    return record.is_misfetch() ? Prediction::misfetch : Prediction::correct;
  }
};

const Registered<Recorded> registered{"recorded", "The outcome that a trace has recorded for each branch."};

}  // namespace

}  // namespace manyscale::cpu
