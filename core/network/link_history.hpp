// SPDX-License-Identifier: Apache-2.0
// What happened at a link over time. Holds a bounded number of intervals; when they are used up, neighbours
// are added together and the interval doubles.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

#include "engine/time.hpp"

namespace manyscale::network {

// An amount per interval of time.
class LinkSeries {
 public:
  static constexpr std::size_t most_intervals = 128;

  explicit LinkSeries(Time interval = nanosecond) : interval_(interval) {}

  // Spreads an amount evenly over the time from begin to end.
  void add(Time begin, Time end, double amount) {
    while (std::max(begin, end - 1) / interval_ >= static_cast<Time>(most_intervals)) halve();
    const auto first = static_cast<std::size_t>(begin / interval_);
    const auto last = static_cast<std::size_t>(std::max(begin, end - 1) / interval_);
    if (sums_.size() <= last) sums_.resize(last + 1, 0.0f);
    if (first == last) {
      sums_[first] += static_cast<float>(amount);
      return;
    }
    const double per_time = amount / static_cast<double>(end - begin);
    for (std::size_t i = first; i <= last; ++i) {
      const Time from = std::max(begin, static_cast<Time>(i) * interval_);
      const Time to = std::min(end, static_cast<Time>(i + 1) * interval_);
      sums_[i] += static_cast<float>(per_time * static_cast<double>(to - from));
    }
  }

  Time interval() const { return interval_; }
  const std::vector<float>& sums() const { return sums_; }
  // Makes intervals as long as those of another, where that is longer.
  void widen(Time interval) {
    while (interval_ < interval) halve();
  }

 private:
  void halve() {
    const std::size_t size = (sums_.size() + 1) / 2;
    for (std::size_t i = 0; i < size; ++i)
      sums_[i] = sums_[2 * i] + (2 * i + 1 < sums_.size() ? sums_[2 * i + 1] : 0.0f);
    sums_.resize(size);
    interval_ *= 2;
  }

  Time interval_;
  std::vector<float> sums_;
};

// One direction of a link: what it carried, and what waited for it in the switch or NIC that it leaves.
class LinkHistory {
 public:
  explicit LinkHistory(Time interval) : sent_(interval), waited_(interval) {}

  void note_sent(Time begin, Time end, double bytes) { sent_.add(begin, end, bytes); }
  // What a link carries after what was noted so before, for models in which such messages do not wait.
  void note_in_turn(Time begin, Time duration, double bytes) {
    in_turn_until_ = std::max(begin, in_turn_until_) + duration;
    note_sent(in_turn_until_ - duration, in_turn_until_, bytes);
  }
  void note_waited(Time begin, Time end, double bytes) {
    if (end > begin) waited_.add(begin, end, bytes * static_cast<double>(end - begin));
  }

  Time interval() const { return std::max(sent_.interval(), waited_.interval()); }
  // Bytes sent in each interval, and bytes that waited times how long they did, in intervals of that length.
  std::vector<float> sent(Time interval) const { return widened(sent_, interval); }
  std::vector<float> waited(Time interval) const { return widened(waited_, interval); }

 private:
  static std::vector<float> widened(LinkSeries series, Time interval) {
    series.widen(interval);
    return series.sums();
  }

  LinkSeries sent_, waited_;
  Time in_turn_until_ = 0;
};

}  // namespace manyscale::network
