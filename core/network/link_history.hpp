// SPDX-License-Identifier: Apache-2.0
// What happened at a link over time.
#pragma once
#include <algorithm>
#include <vector>

#include "engine/time_series.hpp"

namespace manyscale::network {

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
  static std::vector<float> widened(TimeSeries series, Time interval) {
    series.widen(interval);
    return series.sums();
  }

  TimeSeries sent_, waited_;
  Time in_turn_until_ = 0;
};

}  // namespace manyscale::network
