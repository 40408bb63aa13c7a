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
// or, if it is an oracle that knows targets too,
//     static Prediction outcome(const Record& record);
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>

#include "cpu/core/branch_history.hpp"
#include "cpu/core/branch_spec.hpp"
#include "cpu/stream/record.hpp"
#include "engine/registry.hpp"

namespace manyscale::cpu {

// The outcome of a prediction.
enum class Prediction : std::uint8_t {
  correct,
  misfetch,  // correct, but the target was not in the buffer: fetch is re-steered when the branch is decoded
  mispredict,  // fetch is redirected when the branch is executed
};

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
  // An oracle says what becomes of any branch or jump; nothing else is asked.
  bool is_oracle() const { return outcome_ != nullptr; }
  Prediction outcome(const Record& record) const { return outcome_(record); }

 protected:
  using Predict = bool (*)(DirectionPredictor& self, std::uint64_t pc, bool taken,
                           const BranchHistory& history);
  using Outcome = Prediction (*)(const Record& record);
  DirectionPredictor(Predict predict, Outcome outcome) : predict_(predict), outcome_(outcome) {}

 private:
  const Predict predict_;
  const Outcome outcome_;
};

// The base of an implementation.
template <class Kind>
class DirectionPlugin : public DirectionPredictor {
 protected:
  DirectionPlugin() : DirectionPredictor(predict_of(), outcome_of()) {}

 private:
  static constexpr bool is_oracle = requires(const Record& record) { Kind::outcome(record); };

  static Predict predict_of() {
    if constexpr (is_oracle) {
      return nullptr;
    } else {
      return [](DirectionPredictor& self, std::uint64_t pc, bool taken, const BranchHistory& history) {
        return static_cast<Kind&>(self).predict_and_train(pc, taken, history);
      };
    }
  }
  static Outcome outcome_of() {
    if constexpr (is_oracle) {
      return &Kind::outcome;
    } else {
      return nullptr;
    }
  }
};

}  // namespace manyscale::cpu
