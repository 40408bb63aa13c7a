// SPDX-License-Identifier: Apache-2.0
// Direct memory access: reads and writes memory for a device such as a network interface, line by line, no
// faster than its link, as one more participant in the coherence of the node. What it reads, owners of lines
// give up to the shared cache; what it writes, all others lose, and it then lies in the shared cache, as with
// Intel's DDIO. Leaves out: writes of whole lines without fetching them first, the limit on the ways that a
// device may fill, and address translation (devices are given physical addresses).
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "engine/exchange.hpp"
#include "engine/timer.hpp"
#include "memory/cache/private_caches.hpp"
#include "memory/dma/dma_protocol.hpp"
#include "memory/protocol.hpp"

namespace manyscale::memory {

struct DmaSpec {
  std::int64_t clock = 1'000'000'000;
  std::int64_t bandwidth = 12'500'000'000;  // of a link of 100 Gb/s
  // Lines pass through these few entries, and are then in the shared cache.
  CacheSpec buffer{.size = 1024, .ways = 16, .outstanding_misses = 16, .classify_misses = false};
  bool coherent = false;
  std::int64_t homes = 1;
  std::string home_hash = "modulo";
};

struct DmaStatistics {
  Counter transfers, lines_read, lines_written;
  Histogram latency;
};

class Dma final : public Component, public Distributable, public PrivateCaches::Owner {
 public:
  using Spec = DmaSpec;

  explicit Dma(const Spec& spec);
  void start() override;
  void resume() override;
  std::vector<Wait> waits() const override;

  PortBase& device_port() { return device_; }
  // Between two runs: a transfer that begins when the run goes on.
  void add(const Transfer& transfer);

 private:
  struct Wake {};

  void send_to_memory(const Message& message, Time when) override;
  void access_done(std::uint32_t token, Time ready, Value value, Served served) override;
  void unblocked() override;
  void receive(const Message& message, std::uint32_t lane);
  void commanded(const Transfer& transfer, std::uint32_t lane);
  void wake(const Wake&);
  void pump();
  void access(const Transfer& transfer);

  const Spec spec_;
  const std::uint64_t line_;
  const Time line_time_;
  DmaStatistics statistics_;
  std::unique_ptr<PrivateCaches> caches_;
  RequesterPort memory_{*this, "memory", "the interconnect of the node, or the memory itself"};
  Port<DmaProtocol, 1> device_{*this, "device", "whose transfers it makes", Links::optional};
  Timer<Wake> timer_{*this};

  std::deque<Transfer> queue_;
  bool waiting_ = false;  // for the timer
  bool blocked_ = false;  // until the caches have a free MSHR again
  Time next_issue_ = 0;
  std::vector<Time> begun_;  // of the outstanding lines, by token
  std::vector<std::uint32_t> free_tokens_;
};

}  // namespace manyscale::memory

namespace manyscale {

template <>
struct describe<memory::DmaSpec> {
  using S = memory::DmaSpec;
  static constexpr auto fields = std::tuple{
      Field<S, std::int64_t>{"clock", &S::clock, Unit::frequency, "clock of its buffer", 1, 1e12},
      Field<S, std::int64_t>{"bandwidth", &S::bandwidth, Unit::bandwidth,
                             "bytes that it reads and writes in a second: that of the device's link", 1,
                             1e15},
      Section<S, memory::CacheSpec>{"buffer", &S::buffer, "entries that lines pass through"},
      Field<S, bool>{"coherent", &S::coherent, Unit::none, "whether homes keep a directory of its lines"},
      Field<S, std::int64_t>{"homes", &S::homes, Unit::count, "slices that lines are spread over", 1, 4096},
      Field<S, std::string>{"home_hash", &S::home_hash, Unit::none,
                            "how lines are spread over slices: modulo, xor, polynomial or interleaved"}};
};

template <>
struct describe<memory::DmaStatistics> {
  using S = memory::DmaStatistics;
  static constexpr auto fields = std::tuple{
      Statistic<S, Counter>{"transfers", &S::transfers, "transfer", "transfers that a device has asked for"},
      Statistic<S, Counter>{"lines_read", &S::lines_read, "line", "lines read for the device"},
      Statistic<S, Counter>{"lines_written", &S::lines_written, "line", "lines written for the device"},
      Statistic<S, Histogram>{"latency", &S::latency, "fs", "time from the issue of a line to its data"}};
};

}  // namespace manyscale
