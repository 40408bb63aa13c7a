// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>
#include <vector>

#include "cpu/core/direction_predictor.hpp"

namespace manyscale::cpu {

namespace {

// A counter of -2^(bits-1) to 2^(bits-1)-1 moves one step.
template <int bits>
void step(std::int8_t& counter, bool up) {
  constexpr int most = (1 << (bits - 1)) - 1;
  if (up && counter < most) ++counter;
  if (!up && counter > -most - 1) --counter;
}

constexpr std::int64_t most_tables = 16;

std::vector<std::uint32_t> checked_lengths(const BranchSpec& spec) {
  if (spec.tables > most_tables)
    throw std::invalid_argument("tables: at most " + std::to_string(most_tables));
  if (spec.longest_history < spec.shortest_history + spec.tables - 1) {
    throw std::invalid_argument("longest_history: " + std::to_string(spec.longest_history) +
                                " leaves no different length for each of " + std::to_string(spec.tables) +
                                " tables from " + std::to_string(spec.shortest_history) + " on");
  }
  return geometric_lengths(spec.shortest_history, spec.longest_history, spec.tables);
}

// TAGE (Seznec and Michaud, "A case for (partially) tagged geometric history length branch prediction",
// 2006): a table of two-bit counters by address, and tagged tables by address and ever longer histories; the
// longest history whose tag matches predicts. Leaves out the statistical corrector of later forms.
class Tage final : public DirectionPlugin<Tage> {
 public:
  explicit Tage(const BranchSpec& spec);

  bool predict_and_train(std::uint64_t pc, bool taken, const BranchHistory& history);

 private:
  struct Entry {
    std::uint16_t tag = 0;
    std::int8_t counter = 0;  // -4 to 3; taken from 0 on
    std::uint8_t useful = 0;  // 0 to 3
  };

  void allocate(int provider, bool taken);
  void reset_useful();
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

Tage::Tage(const BranchSpec& spec)
    : tables_(checked_lengths(spec), spec.table_entries, spec.tag_bits),
      base_(static_cast<std::size_t>(spec.base_entries), 0),
      base_mask_(static_cast<std::uint64_t>(spec.base_entries - 1)),
      reset_period_(spec.reset_period),
      until_reset_(spec.reset_period) {}

bool Tage::predict_and_train(std::uint64_t pc, bool taken, const BranchHistory& history) {
  const std::uint32_t matches = tables_.look_up(pc, history);
  std::int8_t& base = base_[pc >> 1 & base_mask_];
  if (--until_reset_ == 0) reset_useful();
  if (matches == 0) {
    const bool predicted = base >= 0;
    step<2>(base, taken);
    if (predicted != taken) allocate(-1, taken);
    return predicted;
  }
  // The table with the longest history that knows the branch, and the next longest, -1 for the base.
  const int provider = std::bit_width(matches) - 1;
  const int alternate = std::bit_width(matches & ~(1u << provider)) - 1;
  Entry& entry = entry_of(provider);
  const bool longest = entry.counter >= 0;
  const bool other = alternate >= 0 ? entry_of(alternate).counter >= 0 : base >= 0;
  const bool is_new = entry.useful == 0 && (entry.counter == 0 || entry.counter == -1);
  const bool predicted = is_new && alternate_for_new_ >= 0 ? other : longest;

  if (is_new && longest != other)
    alternate_for_new_ = std::clamp(alternate_for_new_ + (other == taken ? 1 : -1), -8, 7);
  if (entry.useful == 0) {
    // Nobody has seen it to be better than what stands behind it, so that learns too.
    if (alternate >= 0) {
      step<3>(entry_of(alternate).counter, taken);
    } else {
      step<2>(base, taken);
    }
  }
  step<3>(entry.counter, taken);
  if (longest != other) {
    if (longest == taken && entry.useful < 3) ++entry.useful;
    if (longest != taken && entry.useful > 0) --entry.useful;
  }
  // A new entry that was right and not believed is no reason for another.
  if (predicted != taken && !(is_new && longest == taken)) allocate(provider, taken);
  return predicted;
}

// Takes an entry with a longer history for a branch that was predicted wrong: mostly the next longer, so that
// the longest are not used up.
void Tage::allocate(int provider, bool taken) {
  draws_ ^= draws_ << 13;
  draws_ ^= draws_ >> 17;
  draws_ ^= draws_ << 5;
  const auto count = static_cast<int>(tables_.count());
  int first = provider + 1;
  if (first + 1 < count && (draws_ & 1) != 0) ++first;
  if (first + 1 < count && (draws_ & 3) == 3) ++first;
  for (int i = first; i < count; ++i) {
    Entry& entry = entry_of(i);
    if (entry.useful != 0) continue;
    entry = {tables_.tag(static_cast<std::size_t>(i)), static_cast<std::int8_t>(taken ? 0 : -1), 0};
    return;
  }
  for (int i = provider + 1; i < count; ++i) {
    Entry& entry = entry_of(i);
    if (entry.useful > 0) --entry.useful;
  }
}

// Clears one of the useful bits of all entries, so that what was useful long ago can be replaced.
void Tage::reset_useful() {
  until_reset_ = reset_period_;
  for (Entry& entry : tables_.entries()) entry.useful &= clear_high_ ? 1 : 2;
  clear_high_ = !clear_high_;
}

const Registered<Tage> registered{"tage",
                                  "Tagged tables by address and geometrically longer histories (TAGE)."};

}  // namespace

}  // namespace manyscale::cpu
