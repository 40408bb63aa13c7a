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

BranchPredictor::Direction BranchPredictor::direction_of(const std::string& kind) {
  static constexpr std::pair<std::string_view, Direction> known[] = {
      {"tage", Direction::tage},        {"gshare", Direction::gshare},
      {"bimodal", Direction::bimodal},  {"static_not_taken", Direction::not_taken},
      {"perfect", Direction::perfect},  {"always_wrong", Direction::always_wrong},
      {"recorded", Direction::recorded}};
  for (const auto& [name, direction] : known) {
    if (name == kind) return direction;
  }
  throw std::invalid_argument("kind: there is no branch predictor '" + kind +
                              "'; known: tage, gshare, bimodal, static_not_taken, perfect, always_wrong, "
                              "recorded");
}

BranchPredictor::BranchPredictor(const BranchSpec& spec)
    : spec_(checked(spec)),
      direction_(direction_of(spec.kind)),
      targets_(spec.btb_entries, spec.btb_ways),
      returns_(spec.return_stack) {
  if (direction_ == Direction::tage) tage_ = std::make_unique<TagePredictor>(spec);
  if (direction_ == Direction::gshare || direction_ == Direction::bimodal)
    counters_.assign(static_cast<std::size_t>(spec.base_entries), 1);
  if (spec.loop_entries > 0) loops_ = std::make_unique<LoopPredictor>(spec.loop_entries);
  if (spec.indirect_tables > 0) indirect_ = std::make_unique<IndirectPredictor>(spec);
}

Prediction BranchPredictor::predict(const Record& record) {
  const bool is_return = record.has(Trait::returns);
  const bool is_branch = record.kind == Kind::branch;
  Counter& seen = is_branch                   ? statistics_.conditional
                  : record.kind == Kind::jump ? statistics_.jumps
                  : is_return                 ? statistics_.returns
                                              : statistics_.indirect;
  ++seen;
  if (direction_ == Direction::perfect) return Prediction::correct;
  if (direction_ == Direction::always_wrong || direction_ == Direction::recorded) {
    if (direction_ == Direction::recorded && !record.has(Trait::mispredicted))
      return record.is_misfetch() ? misfetch() : Prediction::correct;
    if (is_branch) ++statistics_.conditional_wrong;
    if (record.kind == Kind::indirect) ++(is_return ? statistics_.return_wrong : statistics_.indirect_wrong);
    return Prediction::mispredict;
  }
  const Prediction prediction = is_branch                   ? predict_branch(record)
                                : record.kind == Kind::jump ? predict_jump(record)
                                                            : predict_indirect(record);
  remember(record);
  return prediction;
}

Prediction BranchPredictor::predict_branch(const Record& record) {
  const bool taken = record.has(Trait::taken);
  const bool right = predict_direction(record.pc, taken) == taken;
  if (!right) ++statistics_.conditional_wrong;
  if (taken && !targets_.find(record.pc)) {
    ++statistics_.btb_misses;
    targets_.learn(record.pc, record.address);
    if (right) return misfetch();
  }
  return right ? Prediction::correct : Prediction::mispredict;
}

Prediction BranchPredictor::predict_jump(const Record& record) {
  if (record.has(Trait::call)) returns_.push(record.next_pc());
  if (targets_.find(record.pc)) return Prediction::correct;
  ++statistics_.btb_misses;
  targets_.learn(record.pc, record.address);
  return misfetch();
}

Prediction BranchPredictor::predict_indirect(const Record& record) {
  const std::optional<std::uint64_t> last = targets_.find(record.pc);
  if (!last) ++statistics_.btb_misses;
  const bool is_return = record.has(Trait::returns);
  std::optional<std::uint64_t> predicted = last;
  if (is_return) {
    predicted = returns_.pop();
  } else if (indirect_) {
    predicted = indirect_->predict_and_train(record.pc, last, record.address, history_);
  }
  if (record.has(Trait::call)) returns_.push(record.next_pc());
  if (last != record.address) targets_.learn(record.pc, record.address);
  if (predicted != record.address) {
    ++(is_return ? statistics_.return_wrong : statistics_.indirect_wrong);
    return Prediction::mispredict;
  }
  return last ? Prediction::correct : misfetch();
}

Prediction BranchPredictor::misfetch() {
  ++statistics_.misfetches;
  return Prediction::misfetch;
}

bool BranchPredictor::predict_direction(std::uint64_t pc, bool taken) {
  bool predicted = false;
  switch (direction_) {
    case Direction::tage:
      predicted = tage_->predict_and_train(pc, taken, history_);
      break;
    case Direction::gshare: {
      const std::uint32_t mask = (1u << spec_.gshare_history) - 1;
      predicted = predict_counter(static_cast<std::uint32_t>(pc >> 1) ^ (recent_ & mask), taken);
      break;
    }
    case Direction::bimodal:
      predicted = predict_counter(static_cast<std::uint32_t>(pc >> 1), taken);
      break;
    default:
      break;
  }
  if (!loops_) return predicted;
  const std::optional<bool> in_loop = loops_->predict(pc);
  loops_->train(pc, taken, predicted != taken);
  if (in_loop) ++statistics_.loop_used;
  return in_loop.value_or(predicted);
}

bool BranchPredictor::predict_counter(std::uint32_t index, bool taken) {
  std::uint8_t& counter = counters_[index & (counters_.size() - 1)];
  const bool predicted = counter >= 2;
  if (taken && counter < 3) ++counter;
  if (!taken && counter > 0) --counter;
  return predicted;
}

// Writes the branch into the history: its direction and an address bit, or a few bits of where it went.
void BranchPredictor::remember(const Record& record) {
  const std::uint64_t address_bit = record.pc >> 1 & 1;
  if (record.kind == Kind::branch) {
    const std::uint32_t taken = record.has(Trait::taken) ? 1 : 0;
    recent_ = recent_ << 1 | taken;
    history_.push(address_bit << 1 | taken);
  } else if (record.kind == Kind::jump) {
    history_.push(address_bit << 1);
  } else {
    history_.push((record.address >> 1) * 0x9e3779b97f4a7c15u >> 60);
  }
}

}  // namespace manyscale::cpu
