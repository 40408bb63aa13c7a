// SPDX-License-Identifier: Apache-2.0
// A slice of a shared cache without coherence, such as one of a GPU's L2 slices: serves reads and writes of
// many requesters, performs their atomic operations, and fetches from memory what it does not hold. A write
// takes whole sectors, so it never fetches. Leaves out: the order in which waiting requests of different sets
// could overtake each other (first come, first served).
#pragma once
#include <deque>
#include <vector>

#include "engine/exchange.hpp"
#include "memory/attribution.hpp"
#include "memory/cache/level.hpp"
#include "memory/cache/miss_table.hpp"
#include "memory/protocol.hpp"
#include "memory/shared/memory_side.hpp"

namespace manyscale::memory {

struct SharedCacheSpec {
  std::int64_t clock = 1'000'000'000;
  CacheSpec cache{.size = 192 * 1024,
                  .line = 128,
                  .ways = 16,
                  .sectored = true,
                  .tag_latency = 10,
                  .data_latency = 20,
                  .outstanding_misses = 64,
                  .merged_misses = 32};
  std::int64_t width = 32;
  std::int64_t write_interval = 1;
  std::int64_t atomic_latency = 4;
  std::int64_t atomic_interval = 1;
  std::int64_t slices = 1;
  std::int64_t memory_interleave = 256;
  std::int64_t outstanding_writes = 32;
  std::int64_t dirty_ways = 64;
  std::int64_t fetch_granularity = 32;
  bool keep_values = false;
};

class SharedCache final : public Component, public Distributable {
 public:
  using Spec = SharedCacheSpec;

  explicit SharedCache(const Spec& spec);
  void start() override;
  void settle() override;
  std::vector<Wait> waits() const override;

  // Forgets all lines that are there, those newer than memory too, between runs: it takes no time and causes
  // no traffic. Lines on their way stay. Not for a cache with values.
  void empty();

  // What was served, by origin. A line that is written back counts for the access that made it leave.
  Attributed<CacheCounts>& traffic() { return traffic_; }

 private:
  struct Request {
    Message message;
    std::uint32_t lane = 0;
  };

  void receive(const Message& message, std::uint32_t lane);
  void from_memory(const Message& message, std::uint32_t lane);
  void fill(const Message& message);
  bool serve(const Request& request);
  Time bank_time(const Message& message) const;
  bool serve_write(const Request& request, std::uint32_t at, Time begin);
  bool miss(const Request& request, std::uint8_t sectors, Time begin);
  void hit(const Request& request, std::uint32_t at, Time ready, Served served);
  std::uint32_t make_room(std::uint64_t line, Origin origin);
  void clean_oldest(std::uint64_t line, Origin origin);
  void write_down(std::uint64_t line, std::uint8_t sectors, Value value, Time delay, Origin origin);
  std::uint8_t fetched_with(std::uint8_t sectors) const;
  bool can_write_down() const { return writes_under_way_ < spec_.outstanding_writes; }
  void show_outstanding();
  void answer(const Request& request, Op op, Value value, Time when, std::uint8_t tag);

  const Spec spec_;
  const Time period_;
  const bool write_back_;
  Level level_;
  Attributed<CacheCounts> traffic_;
  MissTable<Request> misses_;
  std::deque<Request> stalled_;  // came when no MSHR was free, or no buffer for a write to memory
  std::int64_t writes_under_way_ = 0;
  std::vector<Value> values_;
  ResponderPort requesters_{*this, "requesters", "who asks: cores, SMs or an interconnect", Links::many};
  MemorySide memory_;
};

}  // namespace manyscale::memory

namespace manyscale {

template <>
struct describe<memory::SharedCacheSpec> {
  using S = memory::SharedCacheSpec;
  static constexpr auto fields = std::tuple{
      Field<S, std::int64_t>{"clock", &S::clock, Unit::frequency, "clock of the slice", 1, 1e12},
      Section<S, memory::CacheSpec>{"cache", &S::cache, "its lines"},
      Field<S, std::int64_t>{"width", &S::width, Unit::bytes, "data a bank moves per cycle", 1, 4096},
      Field<S, std::int64_t>{
          "write_interval", &S::write_interval, Unit::cycles,
          "cycles that each written sector keeps its bank busy; one of which not all bytes are "
          "written is read before",
          1, 1e6},
      Field<S, std::int64_t>{"atomic_latency", &S::atomic_latency, Unit::cycles,
                             "cycles by which the answer to an atomic operation is later than data", 0, 1e6},
      Field<S, std::int64_t>{"atomic_interval", &S::atomic_interval, Unit::cycles,
                             "cycles that each round of an atomic operation keeps its bank busy", 0, 1e6},
      Field<S, std::int64_t>{"slices", &S::slices, Unit::count,
                             "slices that share the lines; this one sees one line of so many", 1, 65536},
      Field<S, std::int64_t>{"memory_interleave", &S::memory_interleave, Unit::bytes,
                             "consecutive bytes that go to one of several memories", 32, 1e9},
      Field<S, std::int64_t>{"outstanding_writes", &S::outstanding_writes, Unit::count,
                             "writes to memory that the channels have not taken in yet", 1, 1e6},
      Field<S, std::int64_t>{
          "dirty_ways", &S::dirty_ways, Unit::count,
          "lines of a set that may be newer than memory; one more, and the oldest is written back", 1, 64},
      Field<S, std::int64_t>{"fetch_granularity", &S::fetch_granularity, Unit::bytes,
                             "aligned bytes that a miss fetches: missing sectors and those beside them", 32,
                             256},
      Field<S, bool>{"keep_values", &S::keep_values, Unit::none, "whether lines carry a value, for tests"}};
};

}  // namespace manyscale
