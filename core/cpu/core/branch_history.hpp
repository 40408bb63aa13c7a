// SPDX-License-Identifier: Apache-2.0
// The outcomes of the latest branches, and how tables are indexed by them.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace manyscale::cpu {

// What the latest branches did, a small number for each. Any number of the latest can be had as one hash: the
// numbers are the digits of a sum of powers, of which all prefixes are kept, so that a new branch costs the
// same however many tables look at the history. (Hardware folds the history for each table instead.)
class BranchHistory {
 public:
  static constexpr std::uint32_t longest = 2047;

  void push(std::uint64_t digit) {
    newest_ = (newest_ + 1) & longest;
    sums_[newest_] = sum_ = sum_ * base + digit;
  }
  // A hash of the latest `length` branches; `power` is power_of(length).
  std::uint64_t latest(std::uint32_t length, std::uint64_t power) const {
    return sum_ - sums_[(newest_ - length) & longest] * power;
  }
  static std::uint64_t power_of(std::uint32_t length) {
    std::uint64_t power = 1;
    for (std::uint32_t i = 0; i < length; ++i) power *= base;
    return power;
  }

  static constexpr std::uint64_t base = 0xd1342543de82ef95u;

 private:
  std::vector<std::uint64_t> sums_ = std::vector<std::uint64_t>(longest + 1, 0);
  std::uint64_t sum_ = 0;
  std::uint32_t newest_ = 0;
};

// Tagged tables of entries by address and history, one for each length of history. An Entry has a `tag`.
template <class Entry>
class HistoryTables {
 public:
  static constexpr std::size_t most = 16;

  HistoryTables(const std::vector<std::uint32_t>& lengths, std::int64_t entries, std::int64_t tag_bits)
      : count_(lengths.size()),
        size_(static_cast<std::size_t>(entries)),
        tag_mask_((1u << tag_bits) - 1),
        entries_(count_ * size_) {
    for (std::size_t i = 0; i < count_; ++i) looks_[i] = {lengths[i], BranchHistory::power_of(lengths[i])};
  }

  // Finds the entry of a branch in all tables; gives those in which its tag is, a bit each.
  std::uint32_t look_up(std::uint64_t pc, const BranchHistory& history) {
    const std::uint64_t address = (pc >> 1) * 0xd6e8feb86659fd93u;
    std::uint32_t matches = 0;
    const Entry* table = entries_.data();
    for (std::size_t i = 0; i < count_; ++i, table += size_) {
      const std::uint64_t hash =
          (address ^ history.latest(looks_[i].length, looks_[i].power)) * 0x9e3779b97f4a7c15u;
      hashes_[i] = hash;
      matches |= std::uint32_t{table[index_of(hash)].tag == tag_of(hash)} << i;
    }
    return matches;
  }
  // Of the branch looked up last: its entry in a table, and the tag it has there.
  Entry& entry(std::size_t table) { return entries_[table * size_ + index_of(hashes_[table])]; }
  std::uint16_t tag(std::size_t table) const { return tag_of(hashes_[table]); }

  std::size_t count() const { return count_; }
  std::vector<Entry>& entries() { return entries_; }

 private:
  struct Look {
    std::uint32_t length = 0;
    std::uint64_t power = 0;
  };

  std::size_t index_of(std::uint64_t hash) const { return hash >> 44 & (size_ - 1); }
  std::uint16_t tag_of(std::uint64_t hash) const {
    return static_cast<std::uint16_t>(hash >> 24 & tag_mask_);
  }

  std::size_t count_;
  std::size_t size_;
  std::uint64_t tag_mask_;
  std::array<Look, most> looks_{};
  std::array<std::uint64_t, most> hashes_{};
  std::vector<Entry> entries_;
};

// Lengths from the shortest to the longest in equal ratios, each longer than the one before.
inline std::vector<std::uint32_t> geometric_lengths(std::int64_t shortest, std::int64_t longest,
                                                    std::int64_t count) {
  std::vector<std::uint32_t> lengths;
  const double ratio = static_cast<double>(longest) / static_cast<double>(shortest);
  for (std::int64_t i = 0; i < count; ++i) {
    const double exponent = count == 1 ? 0 : static_cast<double>(i) / static_cast<double>(count - 1);
    auto length =
        static_cast<std::uint32_t>(std::lround(static_cast<double>(shortest) * std::pow(ratio, exponent)));
    if (!lengths.empty()) length = std::max(length, lengths.back() + 1);
    lengths.push_back(length);
  }
  return lengths;
}

}  // namespace manyscale::cpu
