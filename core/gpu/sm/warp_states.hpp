// SPDX-License-Identifier: Apache-2.0
// Which states the warps of a launch were in over time: cycles of warps by state, in intervals of as many
// cycles as a power of two. Holds a bounded number of intervals; when they are used up, neighbours are added
// together. Counts are integers, so that sums over SMs do not depend on their order, and those of a state are
// those of its statistic.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/clock.hpp"
#include "gpu/sm/stall.hpp"

namespace manyscale::gpu {

enum class WarpState : std::uint8_t {
  selected,
  long_scoreboard,
  lg_throttle,
  mio_throttle,
  tex_throttle,
  short_scoreboard,
  barrier,
  wait,
  math_pipe_throttle,
  no_instruction,
  not_selected,
  drain,
  fault,
  count
};
inline constexpr std::size_t kWarpStates = static_cast<std::size_t>(WarpState::count);
inline constexpr std::array<std::string_view, kWarpStates> kWarpStateNames{
    "selected",         "long_scoreboard", "lg_throttle", "mio_throttle",       "tex_throttle",
    "short_scoreboard", "barrier",         "wait",        "math_pipe_throttle", "no_instruction",
    "not_selected",     "drain",           "fault"};

constexpr WarpState state_of(Stall why) {
  switch (why) {
    case Stall::wait:
      return WarpState::wait;
    case Stall::long_scoreboard:
    case Stall::local:
    case Stall::atomic:
      return WarpState::long_scoreboard;
    case Stall::short_scoreboard:
      return WarpState::short_scoreboard;
    case Stall::barrier:
      return WarpState::barrier;
    case Stall::no_instruction:
      return WarpState::no_instruction;
    case Stall::page_fault:
      return WarpState::fault;
  }
  return WarpState::wait;
}

class WarpStates {
 public:
  static constexpr std::size_t most_intervals = 128;
  using Row = std::array<std::int64_t, kWarpStates>;  // cycles of warps

  // Intervals are counted from a cycle on, that in which the launch began.
  explicit WarpStates(Cycle origin = 0) : origin_(origin) {}

  // A warp was in a state from one cycle to another.
  void add(WarpState state, Cycle begin, Cycle end) {
    if (begin < end) add_across(state, std::max<Cycle>(0, begin - origin_), end - origin_);
  }

  // A warp issued, after it had waited, for one reason and then for another. Most such times lie in one
  // interval.
  void add_issue(Cycle begin, WarpState first, Cycle ready, WarpState second, Cycle issued) {
    const auto at = static_cast<std::size_t>((issued - origin_) >> shift_);
    if (static_cast<std::size_t>((begin - origin_) >> shift_) == at && at < rows_.size()) {
      Row& row = rows_[at];
      row[static_cast<std::size_t>(first)] += ready - begin;
      row[static_cast<std::size_t>(second)] += issued - ready;
      ++row[static_cast<std::size_t>(WarpState::selected)];
      return;
    }
    add(first, begin, ready);
    add(second, ready, issued);
    add(WarpState::selected, issued, issued + 1);
  }

  // Adds what another SM has counted for the same launch.
  void add(WarpStates other) {
    while (shift_ < other.shift_) halve();
    while (other.shift_ < shift_) other.halve();
    if (rows_.size() < other.rows_.size()) rows_.resize(other.rows_.size());
    for (std::size_t i = 0; i < other.rows_.size(); ++i) add_row(rows_[i], other.rows_[i]);
  }

  Cycle interval() const { return Cycle{1} << shift_; }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  void add_across(WarpState state, Cycle begin, Cycle end) {
    while (static_cast<std::size_t>((end - 1) >> shift_) >= most_intervals) halve();
    const auto last = static_cast<std::size_t>((end - 1) >> shift_);
    if (rows_.size() <= last) rows_.resize(last + 1);
    for (auto at = static_cast<std::size_t>(begin >> shift_); at <= last; ++at) {
      const Cycle until = std::min(end, static_cast<Cycle>(at + 1) << shift_);
      rows_[at][static_cast<std::size_t>(state)] += until - begin;
      begin = until;
    }
  }
  static void add_row(Row& to, const Row& from) {
    for (std::size_t state = 0; state < kWarpStates; ++state) to[state] += from[state];
  }
  void halve() {
    const std::size_t size = (rows_.size() + 1) / 2;
    for (std::size_t i = 0; i < size; ++i) {
      rows_[i] = rows_[2 * i];
      if (2 * i + 1 < rows_.size()) add_row(rows_[i], rows_[2 * i + 1]);
    }
    rows_.resize(size);
    ++shift_;
  }

  Cycle origin_;
  unsigned shift_ = 3;
  std::vector<Row> rows_;
};

}  // namespace manyscale::gpu
