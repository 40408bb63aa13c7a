// SPDX-License-Identifier: Apache-2.0
// Cache array: tags, states and sectors of the lines of a cache, and which line is replaced next. It has no
// timing.
#pragma once
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/random.hpp"
#include "memory/cache/cache_spec.hpp"
#include "memory/cache/replacement.hpp"

namespace manyscale::memory {

// Coherence state of a line. Without coherence, clean lines are `exclusive` and dirty ones `modified`.
enum class LineState : std::uint8_t {
  invalid,
  lost,     // invalidated for another cache; the tag stays, to classify the next miss
  pending,  // an entry reserved for an outstanding line
  shared,
  exclusive,
  modified,
};

inline bool is_present(LineState state) {
  return state >= LineState::shared;
}

class CacheArray {
 public:
  static constexpr std::uint32_t none = ~0u;

  struct Line {
    LineState state = LineState::invalid;
    std::uint8_t valid = 0;   // sectors
    std::uint8_t dirty = 0;   // sectors
    bool prefetched = false;  // and not used yet
    bool pinned = false;      // must not be replaced: a transaction on it is outstanding
  };

  // Of `slices` such arrays this one gets a share of the lines, one of each run of so many: the set is chosen
  // by what is left of the line's number.
  explicit CacheArray(const CacheSpec& spec, std::uint64_t seed = 0, std::int64_t slices = 1);

  std::uint64_t line_address(std::uint64_t address) const { return address & ~line_mask_; }
  std::uint8_t sectors_of(std::uint64_t address, std::uint32_t size) const {
    const std::uint64_t first = (address & line_mask_) / sector_bytes;
    const std::uint64_t last = ((address & line_mask_) + size - 1) / sector_bytes;
    return static_cast<std::uint8_t>((2u << last) - (1u << first));
  }

  // The index of the entry with this tag, whatever its state; `none` if there is none.
  std::uint32_t find(std::uint64_t line) const {
    const std::uint32_t first = set_of(line) * ways_;
    for (std::uint32_t way = 0; way < ways_; ++way) {
      if (tags_[first + way] == line) return first + way;
    }
    return none;
  }
  // Likewise, but only a line that is present.
  std::uint32_t find_present(std::uint64_t line) const {
    const std::uint32_t at = find(line);
    return at != none && is_present(lines_[at].state) ? at : none;
  }

  Line& line(std::uint32_t at) { return lines_[at]; }
  const Line& line(std::uint32_t at) const { return lines_[at]; }
  std::uint64_t tag(std::uint32_t at) const { return tags_[at]; }

  // Notes a use of an entry.
  void touch(std::uint32_t at) {
    switch (rules_.on_use) {
      case StampRule::clock:
        stamp_with_clock(at);
        break;
      case StampRule::value:
        stamps_[at] = rules_.use_value;
        break;
      case StampRule::call:
        policy_->used(at / ways_, at % ways_);
        break;
      case StampRule::keep:
        break;
    }
  }
  // The entry of a new line: a free one of its set, else the victim, never one that is pending or pinned;
  // `none` when all are.
  std::uint32_t victim(std::uint64_t line);
  // The number of dirty lines in a set, and the one with the lowest stamp (under LRU, the least recently
  // used).
  struct Dirty {
    std::uint32_t count = 0;
    std::uint32_t oldest = none;
  };
  Dirty dirty_in(std::uint32_t set) const;
  // Removes the line of an entry; `state` is invalid or lost.
  void remove(std::uint32_t at, LineState state) {
    lines_[at].state = state;
    lines_[at].pinned = false;
    if (rules_.lowest_stamp_leaves) stamps_[at] = 0;
  }
  // Frees an entry, and forgets which line it had.
  void forget(std::uint32_t at) {
    remove(at, LineState::invalid);
    tags_[at] = no_tag;
  }
  // Fills an entry with a line.
  void fill(std::uint32_t at, std::uint64_t line, LineState state, std::uint8_t valid);

  void reseed(std::uint64_t seed) { random_ = Random(seed, 0); }

  std::uint32_t lines() const { return static_cast<std::uint32_t>(tags_.size()); }
  std::uint32_t set_of(std::uint64_t line) const {
    std::uint64_t index = line >> line_shift_;
    if (slices_ != 1) index /= slices_;
    if (hash_index_) index ^= (index >> index_bits_) ^ (index >> (2 * index_bits_));
    return static_cast<std::uint32_t>(power_of_two_ ? index & (sets_ - 1) : index % sets_);
  }
  std::size_t bytes() const {
    return tags_.capacity() * sizeof(std::uint64_t) + lines_.capacity() * sizeof(Line) +
           stamps_.capacity() * sizeof(std::uint32_t) + policy_->bytes();
  }

 private:
  static constexpr std::uint64_t no_tag = ~std::uint64_t{0};
  static constexpr std::uint32_t latest_clock = ~0u;

  std::uint32_t lowest_stamp(std::uint32_t first) const;
  void stamp_with_clock(std::uint32_t at) {
    stamps_[at] = ++clock_;
    if (clock_ == latest_clock) restart_clock();
  }
  void restart_clock();

  std::uint64_t line_mask_;
  int line_shift_;
  std::uint64_t sets_;
  std::uint64_t slices_;
  std::uint32_t ways_;
  bool power_of_two_;
  bool hash_index_;
  int index_bits_;
  std::unique_ptr<ReplacementPolicy> policy_;
  ReplacementRules rules_;
  std::uint32_t clock_ = 0;
  Random random_;
  std::vector<std::uint64_t> tags_;
  std::vector<Line> lines_;
  std::vector<std::uint32_t> stamps_;  // the meaning is the policy's
};

}  // namespace manyscale::memory
