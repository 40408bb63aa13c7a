// SPDX-License-Identifier: Apache-2.0
// TAGE against a plain one that keeps the whole history as a list and computes every hash from its
// definition, on programs of random branches and tables small enough that entries conflict.
#include <map>
#include <utility>
#include <vector>

#include "cpu/core/branch_predictor.hpp"
#include "engine/random.hpp"
#include "test_checks.hpp"

using namespace manyscale;
using namespace manyscale::cpu;
using namespace manyscale::test;

namespace {

class PlainTage {
 public:
  explicit PlainTage(const BranchSpec& spec)
      : spec_(spec), lengths_(geometric_lengths(spec.shortest_history, spec.longest_history, spec.tables)) {}

  bool predict_and_train(std::uint64_t pc, bool taken) {
    int provider = -1, alternate = -1;
    std::vector<Entry*> entries;
    std::vector<std::uint32_t> tags;
    for (int i = 0; i < spec_.tables; ++i) {
      const auto [index, tag] = hash(pc, lengths_[static_cast<std::size_t>(i)]);
      entries.push_back(&tables_[{i, index}]);
      tags.push_back(tag);
      if (entries.back()->tag != tag) continue;
      alternate = provider;
      provider = i;
    }
    if (++seen_ % spec_.reset_period == 0) {
      for (auto& [index, entry] : tables_)
        entry.useful = seen_ / spec_.reset_period % 2 == 1 ? entry.useful % 2 : entry.useful / 2 * 2;
    }
    int& base = base_[pc / 2 % static_cast<std::uint64_t>(spec_.base_entries)];
    const auto direction = [&](int table) {
      return table < 0 ? base >= 0 : entries[static_cast<std::size_t>(table)]->counter >= 0;
    };
    const auto learn = [&](int table) {
      int& counter = table < 0 ? base : entries[static_cast<std::size_t>(table)]->counter;
      const int most = table < 0 ? 1 : 3;
      counter = taken ? std::min(counter + 1, most) : std::max(counter - 1, -most - 1);
    };
    if (provider < 0) {
      const bool predicted = direction(-1);
      learn(-1);
      if (predicted != taken) allocate(entries, tags, -1, taken);
      return predicted;
    }
    Entry& entry = *entries[static_cast<std::size_t>(provider)];
    const bool longest = direction(provider), other = direction(alternate);
    const bool fresh = entry.useful == 0 && (entry.counter == 0 || entry.counter == -1);
    const bool predicted = fresh && doubt_ >= 0 ? other : longest;
    if (fresh && longest != other) doubt_ = std::max(-8, std::min(7, doubt_ + (other == taken ? 1 : -1)));
    if (entry.useful == 0) learn(alternate);
    learn(provider);
    if (longest != other) entry.useful = std::max(0, std::min(3, entry.useful + (longest == taken ? 1 : -1)));
    if (predicted != taken && !(fresh && longest == taken)) allocate(entries, tags, provider, taken);
    return predicted;
  }

  void push(std::uint64_t digit) { history_.push_back(digit); }

 private:
  struct Entry {
    std::uint32_t tag = 0;
    int counter = 0;
    int useful = 0;
  };

  // The latest branches as digits of a number, the latest the last, modulo 2^64.
  std::uint64_t number(std::uint32_t length) const {
    std::uint64_t sum = 0;
    for (std::size_t ago = length; ago-- > 0;)
      sum = sum * BranchHistory::base + (ago < history_.size() ? history_[history_.size() - 1 - ago] : 0);
    return sum;
  }
  std::pair<std::uint64_t, std::uint32_t> hash(std::uint64_t pc, std::uint32_t length) const {
    const std::uint64_t mixed = ((pc / 2 * 0xd6e8feb86659fd93u) ^ number(length)) * 0x9e3779b97f4a7c15u;
    return {(mixed >> 44) % static_cast<std::uint64_t>(spec_.table_entries),
            static_cast<std::uint32_t>((mixed >> 24) % (1u << spec_.tag_bits))};
  }
  void allocate(std::vector<Entry*>& entries, const std::vector<std::uint32_t>& tags, int provider,
                bool taken) {
    draws_ ^= draws_ << 13;
    draws_ ^= draws_ >> 17;
    draws_ ^= draws_ << 5;
    const int last = static_cast<int>(spec_.tables) - 1;
    int first = provider + 1;
    if (first < last && draws_ % 2 == 1) ++first;
    if (first < last && draws_ % 4 == 3) ++first;
    for (int i = first; i <= last; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (entries[at]->useful > 0) continue;
      *entries[at] = {tags[at], taken ? 0 : -1, 0};
      return;
    }
    for (int i = provider + 1; i <= last; ++i) {
      int& useful = entries[static_cast<std::size_t>(i)]->useful;
      useful = std::max(0, useful - 1);
    }
  }

  BranchSpec spec_;
  std::vector<std::uint32_t> lengths_;
  std::map<std::pair<int, std::uint64_t>, Entry> tables_;
  std::map<std::uint64_t, int> base_;
  std::vector<std::uint64_t> history_;
  std::int64_t seen_ = 0;
  int doubt_ = 0;
  std::uint32_t draws_ = 0x2545f4;
};

// A program whose branches depend on what happened before, on their own count, or on nothing.
void compare(std::uint64_t seed) {
  Random random(seed, 0);
  BranchSpec spec;
  spec.tables = static_cast<std::int64_t>(1 + random.below(6));
  spec.table_entries = std::int64_t{1} << random.below(6);
  spec.base_entries = std::int64_t{1} << random.below(6);
  spec.tag_bits = static_cast<std::int64_t>(4 + random.below(6));
  spec.shortest_history = static_cast<std::int64_t>(1 + random.below(4));
  spec.longest_history = static_cast<std::int64_t>(12 + random.below(60));
  spec.reset_period = static_cast<std::int64_t>(100 + random.below(1000));
  BranchPredictor predictor(spec);
  PlainTage plain(spec);
  std::uint64_t recent = 0;
  std::map<std::uint64_t, int> rounds;
  int different = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t which = random.below(12);
    Record record;
    record.kind = which == 11 ? InstructionClass::jump : InstructionClass::branch;
    record.pc = 0x1000 + 6 * which;
    const bool taken = which < 4   ? ++rounds[which] % static_cast<int>(which + 2) != 0
                       : which < 8 ? (recent >> which & 1) != (recent & 1)
                                   : random.below(3) == 0;
    record.flags = taken && record.kind == InstructionClass::branch ? Trait::taken : 0;
    const bool is_wrong = predictor.predict(record) == Prediction::mispredict;
    if (record.kind == InstructionClass::branch) {
      different += is_wrong != (plain.predict_and_train(record.pc, taken) != taken);
    }
    plain.push(record.pc / 2 % 2 * 2 + (record.kind == InstructionClass::branch && taken));
    recent = recent * 2 + taken;
  }
  check_equal(different, 0, "program " + std::to_string(seed) + ": predictions that differ");
}

TEST(tage_predicts_as_a_plain_one_does) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) compare(seed);
}

}  // namespace
