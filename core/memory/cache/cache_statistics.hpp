// SPDX-License-Identifier: Apache-2.0
// What every level of a hierarchy reports.
#pragma once
#include "engine/statistics.hpp"
#include "memory/cache/miss_classifier.hpp"

namespace manyscale::memory {

// What can be said of the accesses of one origin.
struct CacheCounts {
  Counter reads, writes, hits;
  Counter cold, capacity, conflict, coherence;  // misses by cause
  Counter merged, blocked;
  Counter evictions, writebacks, invalidations;
  Counter bytes_in, bytes_out;
  Counter line_time;

  void count_miss(MissCause cause) {
    switch (cause) {
      case MissCause::cold:
        ++cold;
        break;
      case MissCause::capacity:
        ++capacity;
        break;
      case MissCause::conflict:
        ++conflict;
        break;
      case MissCause::coherence:
        ++coherence;
        break;
    }
  }
};

struct CacheStatistics : CacheCounts {
  Gauge outstanding;
  Histogram miss_latency, queueing;
};

template <class S>
constexpr auto cache_count_fields() {
  return std::tuple{
      Statistic<S, Counter>{"reads", &S::reads, "access", "reads that reached this level"},
      Statistic<S, Counter>{"writes", &S::writes, "access",
                            "writes and atomic operations that reached this level"},
      Statistic<S, Counter>{"hits", &S::hits, "access", "accesses served by this level"},
      Statistic<S, Counter>{"misses_cold", &S::cold, "access", "misses on lines never seen before"},
      Statistic<S, Counter>{"misses_capacity", &S::capacity, "access",
                            "misses that a fully associative cache of this size would have too"},
      Statistic<S, Counter>{"misses_conflict", &S::conflict, "access",
                            "misses that a fully associative cache of this size would not have"},
      Statistic<S, Counter>{"misses_coherence", &S::coherence, "access",
                            "misses on lines lost to another cache"},
      Statistic<S, Counter>{"merged", &S::merged, "access", "misses that joined a line already outstanding"},
      Statistic<S, Counter>{"blocked", &S::blocked, "access", "accesses that had to wait for a free MSHR"},
      Statistic<S, Counter>{"evictions", &S::evictions, "line", "lines replaced"},
      Statistic<S, Counter>{"writebacks", &S::writebacks, "line", "dirty lines sent down"},
      Statistic<S, Counter>{"invalidations", &S::invalidations, "line",
                            "lines given up because another cache wanted them"},
      Statistic<S, Counter>{"bytes_in", &S::bytes_in, "B", "data that came from below"},
      Statistic<S, Counter>{"bytes_out", &S::bytes_out, "B", "data sent down"},
      Statistic<S, Counter>{
          "line_time", &S::line_time, "fs",
          "time that lines were outstanding, summed over them; over the run's time, the mean occupancy"}};
}

}  // namespace manyscale::memory

namespace manyscale {

template <>
struct describe<memory::CacheCounts> {
  static constexpr auto fields = memory::cache_count_fields<memory::CacheCounts>();
};

template <>
struct describe<memory::CacheStatistics> {
  using S = memory::CacheStatistics;
  static constexpr auto fields = std::tuple_cat(
      memory::cache_count_fields<S>(),
      std::tuple{
          Statistic<S, Gauge>{"outstanding", &S::outstanding, "line", "outstanding lines"},
          Statistic<S, Histogram>{"miss_latency", &S::miss_latency, "fs", "time from a miss to its data"},
          Statistic<S, Histogram>{"queueing", &S::queueing, "fs",
                                  "time an access waited for a port or bank"}});
};

}  // namespace manyscale
