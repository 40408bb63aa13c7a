// SPDX-License-Identifier: Apache-2.0
// The branch predictor of a core: directions, targets and returns. It is shown the branches that were
// executed, in program order, and learns at once what each did; the wrong path leaves no trace in it.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/core/branch_history.hpp"
#include "cpu/core/branch_loop.hpp"
#include "cpu/core/branch_spec.hpp"
#include "cpu/core/branch_tage.hpp"
#include "cpu/core/branch_target.hpp"
#include "cpu/stream/record.hpp"

namespace manyscale::cpu {

// The outcome of a prediction.
enum class Prediction : std::uint8_t {
  correct,
  misfetch,  // correct, but the target was not in the buffer: fetch is re-steered when the branch is decoded
  mispredict,  // fetch is redirected when the branch is executed
};

class BranchPredictor {
 public:
  explicit BranchPredictor(const BranchSpec& spec);

  // Predicts a branch, jump or indirect jump, compares with what happened, and learns.
  Prediction predict(const Record& record);

  const BranchStatistics& statistics() const { return statistics_; }

 private:
  enum class Direction : std::uint8_t { tage, gshare, bimodal, not_taken, perfect, always_wrong, recorded };

  bool predict_direction(std::uint64_t pc, bool taken);
  bool predict_counter(std::uint32_t index, bool taken);
  Prediction predict_branch(const Record& record);
  Prediction predict_jump(const Record& record);
  Prediction predict_indirect(const Record& record);
  Prediction misfetch();
  void remember(const Record& record);
  static Direction direction_of(const std::string& kind);

  const BranchSpec spec_;
  const Direction direction_;
  BranchHistory history_;
  std::unique_ptr<TagePredictor> tage_;
  std::unique_ptr<LoopPredictor> loops_;
  std::vector<std::uint8_t> counters_;  // of gshare and bimodal: 0 to 3, taken from 2 on
  std::uint32_t recent_ = 0;            // the latest directions, for gshare
  BranchTargetBuffer targets_;
  ReturnStack returns_;
  std::unique_ptr<IndirectPredictor> indirect_;
  BranchStatistics statistics_;
};

}  // namespace manyscale::cpu
