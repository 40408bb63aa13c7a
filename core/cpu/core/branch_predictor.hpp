// SPDX-License-Identifier: Apache-2.0
// The branch predictor of a core: a direction predictor, a loop predictor, the branch target buffer, the
// return stack and a predictor of indirect targets. It sees the branches that were executed, in program
// order, and learns at once what each did. Leaves out the wrong path, and the delay between prediction and
// training.
#pragma once
#include <cstdint>
#include <memory>

#include "cpu/core/branch_history.hpp"
#include "cpu/core/branch_loop.hpp"
#include "cpu/core/branch_spec.hpp"
#include "cpu/core/branch_target.hpp"
#include "cpu/core/direction_predictor.hpp"
#include "cpu/stream/record.hpp"

namespace manyscale::cpu {

class BranchPredictor {
 public:
  // Throws std::invalid_argument for a kind that is not registered, and for sizes that are no powers of two.
  explicit BranchPredictor(const BranchSpec& spec);

  // Predicts a branch, jump or indirect jump, compares with what happened, and learns. `recorded` is the
  // outcome that a trace holds, for the predictor of that name.
  Prediction predict(const Record& record, Prediction recorded = Prediction::correct);

  const BranchStatistics& statistics() const { return statistics_; }

 private:
  bool predict_direction(std::uint64_t pc, bool taken);
  Prediction predict_branch(const Record& record);
  Prediction predict_jump(const Record& record);
  Prediction predict_indirect(const Record& record);
  Prediction counted(const Record& record, Prediction prediction);
  void remember(const Record& record);

  std::unique_ptr<DirectionPredictor> direction_;
  std::unique_ptr<LoopPredictor> loops_;
  BranchHistory history_;
  BranchTargetBuffer targets_;
  ReturnStack returns_;
  std::unique_ptr<IndirectPredictor> indirect_;
  BranchStatistics statistics_;
};

}  // namespace manyscale::cpu
