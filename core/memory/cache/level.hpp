// SPDX-License-Identifier: Apache-2.0
// One level of a cache with its time: ports and banks that are taken until a time, and the latencies behind
// them.
#pragma once
#include <algorithm>
#include <vector>

#include "engine/time.hpp"
#include "memory/cache/cache_array.hpp"
#include "memory/cache/cache_statistics.hpp"

namespace manyscale::memory {

class Level {
 public:
  Level(const CacheSpec& spec, Time period, std::uint64_t seed, std::int64_t slices = 1)
      : spec(spec),
        array(spec, seed, slices),
        classifier(array.lines(), spec.line, spec.classify_misses),
        tag_time(spec.tag_latency * period),
        data_time(spec.data_latency * period),
        period_(period),
        ports_(static_cast<std::size_t>(spec.ports), 0),
        banks_(static_cast<std::size_t>(spec.banks), 0),
        line_shift_(std::countr_zero(static_cast<std::uint64_t>(spec.line))) {}

  // When an access that arrives now can begin; it takes a port for a cycle, and its bank for `bank_time` or a
  // cycle.
  Time begin(std::uint64_t line, Time now, Time bank_time = 0) {
    last_port_ = next_port_;
    Time& port = ports_[next_port_];
    if (++next_port_ == ports_.size()) next_port_ = 0;
    before_ = port;
    Time start = std::max(now, port);
    if (banks_.size() > 1 || bank_time > 0) {
      Time& bank = banks_[banks_.size() == 1 ? 0 : (line >> line_shift_) % banks_.size()];
      start = std::max(start, bank);
      bank = start + std::max(period_, bank_time);
    }
    port = start + period_;
    if (start > now) statistics.queueing.record(start - now);
    return start;
  }

  // When the bank of a line that has come from below can give its data, which takes no port.
  Time begin_fill(std::uint64_t line, Time now, Time bank_time) {
    Time& bank = banks_[banks_.size() == 1 ? 0 : (line >> line_shift_) % banks_.size()];
    const Time start = std::max(now, bank);
    bank = start + bank_time;
    return start;
  }

  Time period() const { return period_; }
  // The last access to begin did nothing: its port is as free as before.
  void take_back() {
    ports_[last_port_] = before_;
    next_port_ = last_port_;
  }

  const CacheSpec spec;
  CacheArray array;
  MissClassifier classifier;
  CacheStatistics statistics;
  const Time tag_time;
  const Time data_time;
  std::vector<Time> available;  // when the data of each line is there, where that may be later than its tag

 private:
  Time period_;
  std::vector<Time> ports_;
  std::size_t next_port_ = 0;
  std::size_t last_port_ = 0;
  Time before_ = 0;
  std::vector<Time> banks_;
  int line_shift_;
};

}  // namespace manyscale::memory
