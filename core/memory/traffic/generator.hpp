// SPDX-License-Identifier: Apache-2.0
// A traffic generator: a stand-in for a core that makes accesses by a pattern through private caches of its
// own, as many at a time as its window allows. Stands for no pipeline: an access is issued when the window
// and the issue interval let it.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/exchange.hpp"
#include "engine/timer.hpp"
#include "memory/cache/private_caches.hpp"
#include "memory/protocol.hpp"
#include "memory/translation/translator.hpp"

namespace manyscale::memory {

struct GeneratorSpec {
  std::string pattern = "stream";
  std::int64_t clock = 2'000'000'000;
  std::int64_t accesses = 1000;
  std::int64_t footprint = 1024 * 1024;
  std::int64_t base = 0;
  std::int64_t stride = 64;
  std::int64_t size = 8;
  std::int64_t window = 16;
  std::int64_t interval = 1;
  double writes = 0.0;
  double atomics = 0.0;
  CacheSpec l1{};
  CacheSpec l2{.size = 0, .ways = 8, .tag_latency = 3, .data_latency = 8};
  bool coherent = false;
  bool log = false;
  std::int64_t homes = 1;
  std::string home_hash = "modulo";
  std::int64_t writeback_buffer = 16;
  std::int64_t invalidate_every = 0;
  PrefetcherSpec prefetcher{};
  TranslationSpec translation{};
};

struct GeneratorStatistics {
  Counter issued, completed, bytes, stalled;
  Histogram latency;
  Series completions;
  Gauge finished;
};

// One access as it took effect, for checks from outside.
struct PerformedAccess {
  Time time;
  std::uint64_t address;
  std::uint64_t value;  // read, or written
  std::uint64_t kind;   // AccessKind
};

class Generator final : public Component, public Distributable, public PrivateCaches::Owner {
 public:
  using Spec = GeneratorSpec;

  explicit Generator(const Spec& spec);
  void start() override;
  std::vector<Wait> waits() const override;

  // For the pattern "trace": what to do, in order.
  void set_trace(std::vector<Access> trace);
  // What took effect since the last call, if spec.log is set.
  std::vector<PerformedAccess> take_log() { return std::exchange(log_, {}); }

 private:
  enum class Pattern { stream, triad, stride, random, chase, gups, trace };
  struct Wake {};

  void send_to_memory(const Message& message, Time when) override;
  void access_done(std::uint32_t token, Time ready, Value value, Served served) override;
  void unblocked() override;
  void receive(const Message& message, std::uint32_t lane);
  void wake(const Wake&);

  bool translate(Time when);
  void walk(Time when);
  void walk_on(const Wake&);

  void pump();
  bool issue(Time when);
  Access next_access();
  void completed(const Access& access, Time issued, Time performed, Time ready, Value value);
  void schedule(Time when);

  const Spec spec_;
  const Pattern pattern_;
  const Time period_;
  GeneratorStatistics statistics_;
  std::unique_ptr<PrivateCaches> caches_;
  RequesterPort memory_{*this, "memory", "what serves the misses: a cache slice, memory, or an interconnect"};
  Timer<Wake> timer_{*this};
  Timer<Wake> walk_timer_{*this};

  std::vector<Access> trace_;
  std::int64_t total_;
  std::int64_t next_number_ = 0;
  Access current_{};
  bool has_current_ = false;
  bool blocked_ = false;
  Time next_issue_ = 0;
  Time last_ready_ = 0;
  Time wake_at_ = never;
  std::int64_t in_flight_ = 0;
  struct Slot {
    Access access;
    Time issued;
  };
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;
  std::vector<Time> done_at_;  // of the last accesses that hit, oldest at ring_: until then they take an
                               // entry of the window
  std::size_t ring_ = 0;
  std::uint64_t chase_at_ = 0;
  std::vector<PerformedAccess> log_;

  std::unique_ptr<Translator> translator_;  // if addresses are virtual
  std::uint64_t virtual_address_ = 0;       // of the current access
  bool translated_ = false;                 // whether the current access has its physical address
  std::vector<std::uint64_t> walk_reads_;   // page-table entries still to read, the next one last
  bool walking_ = false;
  bool walk_blocked_ = false;
};

}  // namespace manyscale::memory

namespace manyscale {

template <>
struct describe<memory::GeneratorSpec> {
  using S = memory::GeneratorSpec;
  static constexpr auto fields = std::tuple{
      Field<S, std::string>{
          "pattern", &S::pattern, Unit::none,
          "stream, triad, stride, random, chase (each address depends on the last), gups or trace"},
      Field<S, std::int64_t>{"clock", &S::clock, Unit::frequency, "clock of the core and its caches", 1,
                             1e12},
      Field<S, std::int64_t>{"accesses", &S::accesses, Unit::count, "accesses to make", 0, 1e15},
      Field<S, std::int64_t>{"footprint", &S::footprint, Unit::bytes, "memory it touches", 32, 1e15},
      Field<S, std::int64_t>{"base", &S::base, Unit::bytes, "where that begins", 0, 1e18},
      Field<S, std::int64_t>{"stride", &S::stride, Unit::bytes, "distance of the pattern stride", 1, 1e12},
      Field<S, std::int64_t>{"size", &S::size, Unit::bytes, "bytes of one access", 1, 32},
      Field<S, std::int64_t>{"window", &S::window, Unit::count, "outstanding accesses at a time", 1, 65536},
      Field<S, std::int64_t>{"interval", &S::interval, Unit::cycles, "cycles between two issues", 1, 1e9},
      Field<S, double>{"writes", &S::writes, Unit::ratio, "share of stores (stream, stride, random)", 0, 1},
      Field<S, double>{"atomics", &S::atomics, Unit::ratio, "share of atomic additions (random)", 0, 1},
      Section<S, memory::CacheSpec>{"l1", &S::l1, "first private level"},
      Section<S, memory::CacheSpec>{"l2", &S::l2, "second private level; none if its size is 0"},
      Field<S, bool>{"coherent", &S::coherent, Unit::none,
                     "whether its caches speak to homes that keep a directory"},
      Field<S, bool>{"log", &S::log, Unit::none, "whether values and accesses are kept, for tests"},
      Field<S, std::int64_t>{"homes", &S::homes, Unit::count, "slices that lines are spread over", 1, 4096},
      Field<S, std::int64_t>{"writeback_buffer", &S::writeback_buffer, Unit::count,
                             "owned lines given back and not yet confirmed", 1, 65536},
      Field<S, std::string>{"home_hash", &S::home_hash, Unit::none,
                            "how lines are spread over slices: modulo, xor, polynomial or interleaved"},
      Field<S, std::int64_t>{
          "invalidate_every", &S::invalidate_every, Unit::count,
          "accesses after which a write-through L1 drops all lines, as a GPU's does; 0: never", 0, 1e15},
      Section<S, memory::PrefetcherSpec>{"prefetcher", &S::prefetcher,
                                         "prefetcher of the last private level"},
      Section<S, memory::TranslationSpec>{"translation", &S::translation, "virtual addresses"}};
};

template <>
struct describe<memory::GeneratorStatistics> {
  using S = memory::GeneratorStatistics;
  static constexpr auto fields = std::tuple{
      Statistic<S, Counter>{"issued", &S::issued, "access", "accesses begun"},
      Statistic<S, Counter>{"completed", &S::completed, "access", "accesses whose data was there"},
      Statistic<S, Counter>{"bytes", &S::bytes, "B", "data read and written by completed accesses"},
      Statistic<S, Counter>{"stalled", &S::stalled, "access",
                            "accesses that the caches could not take at once"},
      Statistic<S, Histogram>{"latency", &S::latency, "fs", "time from issue to data"},
      Statistic<S, Series>{"completions", &S::completions, "access", "accesses completed, per interval"},
      Statistic<S, Gauge>{"finished", &S::finished, "fs", "when the last access so far was complete"}};
};

}  // namespace manyscale
