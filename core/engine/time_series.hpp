// SPDX-License-Identifier: Apache-2.0
// An amount over time, such as bytes that a bus moves. Holds a bounded number of intervals; when they are
// used up, neighbours are added together and the interval doubles.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

#include "engine/time.hpp"

namespace manyscale {

class TimeSeries {
 public:
  static constexpr std::size_t most_intervals = 128;

  explicit TimeSeries(Time interval = nanosecond) : interval_(interval) {}

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

}  // namespace manyscale
