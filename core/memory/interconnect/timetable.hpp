// SPDX-License-Identifier: Apache-2.0
// When a wire is taken: a message reserves its whole path when it enters, so a wire far along the path is
// reserved ahead of time, and one that passes there before may use the gap.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/time.hpp"

namespace manyscale::memory {

// The schedule of one set of wires: the cycle from which it is free, and the latest free gaps before that. Of
// more gaps than it can hold it forgets the first, which wastes some capacity but never gives a cycle away
// twice.
class Timetable {
 public:
  // The first cycle from `from` on at which the wires are free for `length` cycles.
  Cycle earliest(Cycle from, Cycle length) const {
    for (std::uint32_t i = 0; i < count_; ++i) {
      const Cycle start = std::max(gaps_[i].begin, from);
      if (start + length <= gaps_[i].end) return start;
    }
    return std::max(end_, from);
  }

  // Takes cycles that `earliest` gave; nothing before `now` will be asked for again.
  void take(Cycle start, Cycle length, Cycle now) {
    if (count_ > 0 && gaps_[0].end <= now) forget_before(now);
    if (start >= end_) {
      if (start > end_ && start > now) insert(count_, {end_, start});
      end_ = start + length;
      return;
    }
    std::uint32_t i = 0;
    while (gaps_[i].end <= start) ++i;
    const Gap gap = gaps_[i];
    if (start + length == gap.end) {
      gaps_[i].end = start;
      if (start == gap.begin) remove(i);
    } else {
      gaps_[i].begin = start + length;
      if (start > gap.begin) insert(i, {gap.begin, start});
    }
  }

  Cycle reserve(Cycle from, Cycle length, Cycle now) {
    const Cycle start = earliest(from, length);
    take(start, length, now);
    return start;
  }

 private:
  struct Gap {
    Cycle begin, end;
  };
  static constexpr std::uint32_t most_gaps = 15;

  void insert(std::uint32_t at, Gap gap) {
    if (count_ == most_gaps) {
      if (at == 0) return;
      remove(0);
      --at;
    }
    for (std::uint32_t i = count_; i > at; --i) gaps_[i] = gaps_[i - 1];
    gaps_[at] = gap;
    ++count_;
  }
  void remove(std::uint32_t at) {
    --count_;
    for (std::uint32_t i = at; i < count_; ++i) gaps_[i] = gaps_[i + 1];
  }
  void forget_before(Cycle now) {
    std::uint32_t past = 0;
    while (past < count_ && gaps_[past].end <= now) ++past;
    for (std::uint32_t i = past; i < count_; ++i) gaps_[i - past] = gaps_[i];
    count_ -= past;
  }

  Cycle end_ = 0;
  std::uint32_t count_ = 0;
  std::array<Gap, most_gaps> gaps_{};  // in the order of time
};

}  // namespace manyscale::memory
