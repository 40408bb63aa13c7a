// SPDX-License-Identifier: Apache-2.0
// A direction predictor: which way conditional branches go. Each is a plug-in, one source file that registers
// itself (engine/registry.hpp); those of the core are in predictors/. The branch target buffer, the return
// stack and the indirect predictor around it are BranchPredictor's (branch_predictor.hpp).
//
// A plug-in is constructed from the BranchSpec and has one of these:
//   class Gshare final : public DirectionPlugin<Gshare> {
//    public:
//     explicit Gshare(const BranchSpec& spec);
//     // Predicts where the branch goes, then learns where it went.
//     bool predict_and_train(std::uint64_t pc, bool taken, const BranchHistory& history);
//   };
//   const Registered<Gshare> registered{"gshare", "…one sentence…"};
// or, if it is an oracle, whose outcome does not depend on tables,
//     static Prediction outcome(Prediction recorded);
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>

#include "cpu/core/branch_history.hpp"
#include "cpu/core/branch_spec.hpp"
#include "cpu/stream/prediction.hpp"
#include "engine/registry.hpp"

namespace manyscale::cpu {

class DirectionPredictor {
 public:
  using PluginInterface = DirectionPredictor;
  static constexpr std::string_view plugin_kind = "branch predictor";
  using Create = std::unique_ptr<DirectionPredictor>(const BranchSpec& spec);

  virtual ~DirectionPredictor() = default;

  // One call through a pointer for each branch: predictors are chosen by name, and looked up once.
  bool predict_and_train(std::uint64_t pc, bool taken, const BranchHistory& history) {
    return predict_(*this, pc, taken, history);
  }
  // An oracle decides the outcome of any branch or jump by itself; `recorded` is what a trace holds.
  bool is_oracle() const { return outcome_ != nullptr; }
  Prediction outcome(Prediction recorded) const { return outcome_(recorded); }

 protected:
  using Predict = bool (*)(DirectionPredictor& self, std::uint64_t pc, bool taken,
                           const BranchHistory& history);
  using Outcome = Prediction (*)(Prediction recorded);
  DirectionPredictor(Predict predict, Outcome outcome) : predict_(predict), outcome_(outcome) {}

 private:
  const Predict predict_;
  const Outcome outcome_;
};

// The base of an implementation.
template <class Derived>
class DirectionPlugin : public DirectionPredictor {
 protected:
  DirectionPlugin() : DirectionPredictor(predict_of(), outcome_of()) {}

 private:
  static constexpr bool is_oracle = requires(Prediction recorded) { Derived::outcome(recorded); };

  static Predict predict_of() {
    if constexpr (is_oracle) {
      return nullptr;
    } else {
      return [](DirectionPredictor& self, std::uint64_t pc, bool taken, const BranchHistory& history) {
        return static_cast<Derived&>(self).predict_and_train(pc, taken, history);
      };
    }
  }
  static Outcome outcome_of() {
    if constexpr (is_oracle) {
      return &Derived::outcome;
    } else {
      return nullptr;
    }
  }
};

}  // namespace manyscale::cpu
