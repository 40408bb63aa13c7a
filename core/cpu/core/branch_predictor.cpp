// SPDX-License-Identifier: Apache-2.0
#include "cpu/core/branch_predictor.hpp"

#include <bit>
#include <stdexcept>
#include <string>
#include <utility>

namespace manyscale::cpu {

namespace {

const BranchSpec& checked(const BranchSpec& spec) {
  const std::pair<const char*, std::int64_t> powers[] = {{"base_entries", spec.base_entries},
                                                         {"table_entries", spec.table_entries},
                                                         {"loop_entries", spec.loop_entries},
                                                         {"indirect_entries", spec.indirect_entries}};
  for (const auto& [name, value] : powers) {
    if (value != 0 && !std::has_single_bit(static_cast<std::uint64_t>(value)))
      throw std::invalid_argument(std::string(name) + ": must be a power of two, not " +
                                  std::to_string(value));
  }
  return spec;
}

}  // namespace

BranchPredictor::BranchPredictor(const BranchSpec& spec)
    : direction_(make_plugin<DirectionPredictor>(spec.kind, checked(spec))),
      targets_(spec.btb_entries, spec.btb_ways),
      returns_(spec.return_stack) {
  if (spec.loop_entries > 0) loops_ = std::make_unique<LoopPredictor>(spec.loop_entries);
  if (spec.indirect_tables > 0) indirect_ = std::make_unique<IndirectPredictor>(spec);
}

Prediction BranchPredictor::predict(const Record& record, Prediction recorded) {
  const bool is_branch = record.kind == InstructionClass::branch,
             is_jump = record.kind == InstructionClass::jump;
  Counter& seen = is_branch                    ? statistics_.conditional
                  : is_jump                    ? statistics_.jumps
                  : record.has(Trait::returns) ? statistics_.returns
                                               : statistics_.indirect;
  ++seen;
  if (direction_->is_oracle()) return counted(record, direction_->outcome(recorded));
  const Prediction prediction = is_branch ? predict_branch(record)
                                : is_jump ? predict_jump(record)
                                          : predict_indirect(record);
  remember(record);
  return counted(record, prediction);
}

Prediction BranchPredictor::counted(const Record& record, Prediction prediction) {
  if (prediction == Prediction::misfetch) ++statistics_.misfetches;
  if (prediction != Prediction::mispredict) return prediction;
  if (record.kind == InstructionClass::branch) ++statistics_.conditional_mispredicts;
  if (record.kind == InstructionClass::indirect)
    ++(record.has(Trait::returns) ? statistics_.return_mispredicts : statistics_.indirect_mispredicts);
  return prediction;
}

Prediction BranchPredictor::predict_branch(const Record& record) {
  const bool taken = record.has(Trait::taken);
  const bool is_correct = predict_direction(record.pc, taken) == taken;
  bool has_target = true;
  if (taken && !targets_.find(record.pc)) {
    ++statistics_.btb_misses;
    targets_.learn(record.pc, record.address);
    has_target = false;
  }
  if (!is_correct) return Prediction::mispredict;
  return has_target ? Prediction::correct : Prediction::misfetch;
}

Prediction BranchPredictor::predict_jump(const Record& record) {
  if (record.has(Trait::call)) returns_.push(record.next_pc());
  if (targets_.find(record.pc)) return Prediction::correct;
  ++statistics_.btb_misses;
  targets_.learn(record.pc, record.address);
  return Prediction::misfetch;
}

Prediction BranchPredictor::predict_indirect(const Record& record) {
  const std::optional<std::uint64_t> last = targets_.find(record.pc);
  if (!last) ++statistics_.btb_misses;
  std::optional<std::uint64_t> predicted = last;
  if (record.has(Trait::returns)) {
    predicted = returns_.pop();
  } else if (indirect_) {
    predicted = indirect_->predict_and_train(record.pc, last, record.address, history_);
  }
  if (record.has(Trait::call)) returns_.push(record.next_pc());
  if (last != record.address) targets_.learn(record.pc, record.address);
  if (predicted != record.address) return Prediction::mispredict;
  return last ? Prediction::correct : Prediction::misfetch;
}

bool BranchPredictor::predict_direction(std::uint64_t pc, bool taken) {
  const bool predicted = direction_->predict_and_train(pc, taken, history_);
  if (!loops_) return predicted;
  const std::optional<bool> in_loop = loops_->predict(pc);
  loops_->train(pc, taken, predicted != taken);
  if (in_loop) ++statistics_.loop_predictions;
  return in_loop.value_or(predicted);
}

// Writes the branch into the history: its direction and an address bit, or a few bits of its target.
void BranchPredictor::remember(const Record& record) {
  const std::uint64_t address_bit = record.pc >> 1 & 1;
  if (record.kind == InstructionClass::branch) {
    history_.push(address_bit << 1 | (record.has(Trait::taken) ? 1 : 0));
  } else if (record.kind == InstructionClass::jump) {
    history_.push(address_bit << 1);
  } else {
    history_.push((record.address >> 1) * 0x9e3779b97f4a7c15u >> 60);
  }
}

}  // namespace manyscale::cpu
