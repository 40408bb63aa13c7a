// SPDX-License-Identifier: Apache-2.0
// Predicts directions by TAGE (Seznec and Michaud, "A case for (partially) tagged geometric history length
// branch prediction", 2006): a table of two-bit counters by address, and tagged tables by address and ever
// longer histories; the longest history whose tag matches predicts. Leaves out: the delay between prediction
// and training, and the statistical corrector of later forms.
#pragma once
#include <cstdint>
#include <vector>

#include "cpu/core/branch_history.hpp"
#include "cpu/core/branch_spec.hpp"

namespace manyscale::cpu {

class TagePredictor {
 public:
  explicit TagePredictor(const BranchSpec& spec);

  // Says where the branch goes, then learns where it went.
  bool predict_and_train(std::uint64_t pc, bool taken, const BranchHistory& history);

 private:
  struct Entry {
    std::uint16_t tag = 0;
    std::int8_t counter = 0;  // -4 to 3; taken from 0 on
    std::uint8_t useful = 0;  // 0 to 3
  };

  void allocate(int provider, bool taken);
  void age();
  Entry& entry_of(int table) { return tables_.entry(static_cast<std::size_t>(table)); }

  HistoryTables<Entry> tables_;
  std::vector<std::int8_t> base_;  // -2 to 1
  std::uint64_t base_mask_;
  std::int64_t reset_period_;
  std::int64_t until_reset_;
  bool clear_high_ = true;
  int alternate_for_new_ = 0;       // -8 to 7; from 0 on, entries just made are not believed
  std::uint32_t draws_ = 0x2545f4;  // of a shift register, to spread allocations
};

}  // namespace manyscale::cpu
