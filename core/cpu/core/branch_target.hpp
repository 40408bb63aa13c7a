// SPDX-License-Identifier: Apache-2.0
// Predicts where taken branches go: the branch target buffer, the stack of return addresses, and tables of
// targets by path for indirect jumps.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "cpu/core/branch_history.hpp"
#include "cpu/core/branch_spec.hpp"

namespace manyscale::cpu {

// The targets of branches taken lately, by address, with true LRU replacement. Leaves out partial tags.
class BranchTargetBuffer {
 public:
  BranchTargetBuffer(std::int64_t entries, std::int64_t ways);

  // The target it holds, if any.
  std::optional<std::uint64_t> find(std::uint64_t pc);
  void learn(std::uint64_t pc, std::uint64_t target);

 private:
  struct Entry {
    std::uint64_t pc = ~std::uint64_t{0};
    std::uint64_t target = 0;
    std::uint64_t used = 0;
  };

  Entry* set_of(std::uint64_t pc) {
    const std::uint64_t index = pc >> 1;
    return entries_.data() + (mask_ != 0 ? index & mask_ : index % sets_) * ways_;
  }
  Entry* look_up(std::uint64_t pc);

  std::uint64_t ways_;
  std::uint64_t sets_;
  std::uint64_t mask_;  // of the set, where their number is a power of two above one; else 0
  std::uint64_t clock_ = 0;
  std::vector<Entry> entries_;
};

// The addresses that calls return to. It is a ring: one call too deep overwrites the oldest.
class ReturnStack {
 public:
  explicit ReturnStack(std::int64_t depth) : addresses_(static_cast<std::size_t>(depth), 0) {}

  void push(std::uint64_t address) {
    if (addresses_.empty()) return;
    top_ = top_ + 1 == addresses_.size() ? 0 : top_ + 1;
    addresses_[top_] = address;
  }
  // The address on top, which is taken off; below the bottom of what was pushed come old addresses again.
  std::uint64_t pop() {
    if (addresses_.empty()) return 0;
    const std::uint64_t address = addresses_[top_];
    top_ = top_ == 0 ? addresses_.size() - 1 : top_ - 1;
    return address;
  }

 private:
  std::vector<std::uint64_t> addresses_;
  std::size_t top_ = 0;
};

// Targets of indirect jumps in tagged tables by address and ever longer histories, as TAGE does for
// directions (Seznec's ITTAGE, 2011, in a small form).
class IndirectPredictor {
 public:
  explicit IndirectPredictor(const BranchSpec& spec);

  // Says where the jump goes, `fallback` where it does not know; then learns where it went.
  std::optional<std::uint64_t> predict_and_train(std::uint64_t pc, std::optional<std::uint64_t> fallback,
                                                 std::uint64_t target, const BranchHistory& history);

 private:
  struct Entry {
    std::uint64_t target = 0;  // 0: none
    std::uint16_t tag = 0;
    std::uint8_t confidence = 0;  // 0 to 3; at 0 the target may be replaced
    bool useful = false;
  };
  static constexpr std::int64_t tag_bits = 9;

  HistoryTables<Entry> tables_;
};

}  // namespace manyscale::cpu
