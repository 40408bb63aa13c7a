// SPDX-License-Identifier: Apache-2.0
#include "cpu/core/direction_predictor.hpp"

namespace manyscale::cpu {

namespace {

class StaticNotTaken final : public DirectionPlugin<StaticNotTaken> {
 public:
  explicit StaticNotTaken(const BranchSpec&) {}
  bool predict_and_train(std::uint64_t, bool, const BranchHistory&) { return false; }
};

const Registered<StaticNotTaken> registered{"static_not_taken", "No conditional branch is taken."};

}  // namespace

}  // namespace manyscale::cpu
