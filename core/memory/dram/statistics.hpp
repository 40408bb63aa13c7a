// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include "engine/statistics.hpp"
#include "engine/time_series.hpp"

namespace manyscale::memory {

// What a memory channel counts for the requests of one origin; a backend leaves at zero what it does not
// model.
struct DramCounts {
  Counter reads;
  Counter writes;
  Counter read_bytes;
  Counter write_bytes;
  Counter row_hits;
  Counter row_misses;
  Counter row_conflicts;
  Counter activates;
  Counter forwarded;
  Counter bus_busy;
};

// What it counts in all: closing rows, refreshing and turning the bus are its own doing.
struct DramStatistics : DramCounts {
  Counter precharges;
  Counter refreshes;
  Counter drains;
  Histogram read_latency;
  Histogram queueing_delay;
  Histogram read_queue_length;
  Histogram write_queue_length;
  Histogram input_queue_length;
  // Time that data moved on the bus, over time: of reads and of writes.
  std::array<TimeSeries, 2> bus{TimeSeries{bus_interval}, TimeSeries{bus_interval}};

  static constexpr Time bus_interval = 100 * nanosecond;  // doubled as often as needed
  void note_bus(bool write, Time begin, Time moving) {
    bus[write].add(begin, begin + moving, static_cast<double>(moving));
  }
};

template <class S>
constexpr auto dram_count_fields() {
  using Count = Statistic<S, Counter>;
  return std::tuple{Count{"reads", &S::reads, "request", "reads that arrived"},
                    Count{"writes", &S::writes, "request", "writes that arrived"},
                    Count{"read_bytes", &S::read_bytes, "B", "bytes that reads asked for"},
                    Count{"write_bytes", &S::write_bytes, "B", "bytes that writes carried"},
                    Count{"row_hits", &S::row_hits, "burst", "bursts that found their row open"},
                    Count{"row_misses", &S::row_misses, "burst", "bursts that found their bank closed"},
                    Count{"row_conflicts", &S::row_conflicts, "burst", "bursts that found another row open"},
                    Count{"activates", &S::activates, "command", "rows opened"},
                    Count{"forwarded", &S::forwarded, "burst", "read bursts answered from the write queue"},
                    Count{"bus_busy", &S::bus_busy, "fs", "time that data moved on the bus"}};
}

}  // namespace manyscale::memory

namespace manyscale {

template <>
struct describe<memory::DramCounts> {
  static constexpr auto fields = memory::dram_count_fields<memory::DramCounts>();
};

template <>
struct describe<memory::DramStatistics> {
  using S = memory::DramStatistics;
  using Count = Statistic<S, Counter>;
  using Spread = Statistic<S, Histogram>;
  static constexpr auto fields = std::tuple_cat(
      memory::dram_count_fields<S>(),
      std::tuple{Count{"precharges", &S::precharges, "command",
                       "precharge commands, of one bank or all; not those that come with a column command"},
                 Count{"refreshes", &S::refreshes, "command", "refreshes of a rank or a bank"},
                 Count{"drains", &S::drains, "1", "times the controller turned from reads to writes"},
                 Spread{"read_latency", &S::read_latency, "fs",
                        "time from a read's arrival to its last beat of data"},
                 Spread{"queueing_delay", &S::queueing_delay, "fs",
                        "time from a request's arrival to the first command for it"},
                 Spread{"read_queue_length", &S::read_queue_length, "burst",
                        "read bursts that an arriving request found in the read queue"},
                 Spread{"write_queue_length", &S::write_queue_length, "burst",
                        "write bursts that an arriving request found in the write queue"},
                 Spread{"input_queue_length", &S::input_queue_length, "request",
                        "requests that an arriving request found waiting for room in the queues"}});
};

}  // namespace manyscale
