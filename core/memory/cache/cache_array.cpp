// SPDX-License-Identifier: Apache-2.0
#include "memory/cache/cache_array.hpp"

#include <algorithm>
#include <numeric>

namespace manyscale::memory {

CacheArray::CacheArray(const CacheSpec& spec, std::uint64_t seed, std::int64_t slices)
    : line_mask_(static_cast<std::uint64_t>(spec.line) - 1),
      line_shift_(std::countr_zero(static_cast<std::uint64_t>(spec.line))),
      sets_(static_cast<std::uint64_t>(spec.sets())),
      slices_(static_cast<std::uint64_t>(slices)),
      ways_(static_cast<std::uint32_t>(spec.ways)),
      power_of_two_(std::has_single_bit(sets_)),
      hash_index_(spec.hash_index),
      index_bits_(std::max(1, static_cast<int>(std::bit_width(sets_)) - 1)),
      random_(seed, 0x63616368u) {
  spec.check();
  policy_ = make_plugin<ReplacementPolicy>(spec.replacement,
                                           ReplacementShape{static_cast<std::uint32_t>(sets_), ways_});
  rules_ = policy_->rules();
  const std::size_t count = sets_ * ways_;
  tags_.assign(count, no_tag);
  lines_.resize(count);
  stamps_.assign(count, 0);
}

void CacheArray::fill(std::uint32_t at, std::uint64_t line, LineState state, std::uint8_t valid) {
  tags_[at] = line;
  lines_[at] = {state, valid, 0, false, false};
  switch (rules_.on_fill) {
    case StampRule::clock:
      stamp_with_clock(at);
      break;
    case StampRule::value:
      stamps_[at] = rules_.fill_value;
      break;
    case StampRule::call:
      policy_->filled(at / ways_, at % ways_);
      break;
    case StampRule::keep:
      break;
  }
}

std::uint32_t CacheArray::victim(std::uint64_t line) {
  const std::uint32_t set = set_of(line);
  const std::uint32_t first = set * ways_;
  if (rules_.lowest_stamp_leaves) return lowest_stamp(first);
  std::uint64_t movable = 0;
  std::uint32_t lost = none;
  for (std::uint32_t way = 0; way < ways_; ++way) {
    const Line& held = lines_[first + way];
    if (held.state == LineState::invalid) return first + way;
    if (held.state == LineState::lost) lost = first + way;
    movable |= std::uint64_t{held.state != LineState::pending && !held.pinned} << way;
  }
  if (movable == 0) return none;
  if (lost != none) return lost;
  return first + policy_->victim(set, {&stamps_[first], ways_}, movable, random_);
}

std::uint32_t CacheArray::lowest_stamp(std::uint32_t first) const {
  const std::uint32_t* stamps = &stamps_[first];
  std::uint32_t least = stamps[0];
  for (std::uint32_t way = 1; way < ways_; ++way) least = std::min(least, stamps[way]);
  std::uint32_t oldest = 0;
  while (stamps[oldest] != least) ++oldest;
  const auto movable = [&](std::uint32_t way) {
    return lines_[first + way].state != LineState::pending && !lines_[first + way].pinned;
  };
  if (movable(oldest)) return first + oldest;
  // The oldest must stay: the oldest of those that need not.
  std::uint32_t best = none;
  for (std::uint32_t way = 0; way < ways_; ++way) {
    if (movable(way) && (best == none || stamps[way] < stamps[best])) best = way;
  }
  return best == none ? none : first + best;
}

CacheArray::Dirty CacheArray::dirty_in(std::uint32_t set) const {
  Dirty dirty;
  for (std::uint32_t at = set * ways_; at < (set + 1) * ways_; ++at) {
    if (lines_[at].state != LineState::modified || lines_[at].pinned) continue;
    ++dirty.count;
    if (dirty.oldest == none || stamps_[at] < stamps_[dirty.oldest]) dirty.oldest = at;
  }
  return dirty;
}

// The clock has run out: within each set the order of use is kept, in small numbers.
void CacheArray::restart_clock() {
  std::vector<std::uint32_t> order(ways_);
  for (std::uint32_t first = 0; first < lines(); first += ways_) {
    std::iota(order.begin(), order.end(), first);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return stamps_[a] < stamps_[b]; });
    std::uint32_t rank = 0;
    for (const std::uint32_t at : order) stamps_[at] = stamps_[at] == 0 ? 0 : ++rank;
  }
  clock_ = ways_;
}

}  // namespace manyscale::memory
