// SPDX-License-Identifier: Apache-2.0
// The home of a share of all lines in a coherent system: a slice of the shared cache with the directory of
// who holds what (MESI). One transaction per line at a time; later requests for the line wait. A transaction
// ends when the requester has confirmed its answer, so nothing can overtake it, whatever the network does.
// Inclusive (what the slice evicts, the private caches give up too) or not (the directory then remembers
// lines that the slice no longer holds). Leaves out: a bound on the directory's size, and forwarding between
// private caches (data goes through the home).
#pragma once
#include <memory>
#include <vector>

#include "engine/exchange.hpp"
#include "memory/cache/level.hpp"
#include "memory/flat_map.hpp"
#include "memory/list_pool.hpp"
#include "memory/protocol.hpp"
#include "memory/shared/directory.hpp"
#include "memory/shared/memory_side.hpp"

namespace manyscale::memory {

struct HomeSpec {
  std::int64_t clock = 2'000'000'000;
  CacheSpec cache{.size = 2 * 1024 * 1024, .line = 64, .ways = 16, .tag_latency = 8, .data_latency = 22};
  bool inclusive = true;
  std::int64_t slices = 1;
  std::int64_t memory_interleave = 256;
  bool keep_values = false;
};

struct HomeStatistics {
  Counter invalidations_sent, downgrades_sent, recalls, upgrades, stale_puts, queued;
};

class Home final : public Component, public Distributable {
 public:
  using Spec = HomeSpec;

  explicit Home(const Spec& spec);
  void start() override;
  std::vector<Wait> waits() const override;

 private:
  enum class Phase : std::uint8_t { acks, room, memory, confirmation };
  struct Request {
    Message message;
    std::uint32_t requester = 0;
  };
  struct Transaction {
    Request request;
    std::uint64_t line = 0;
    std::uint32_t at = CacheArray::none;  // its entry in the array, if it has one
    Phase phase = Phase::acks;
    bool recall = false;
    bool fresh = false;                 // an owner has sent data
    Served served = Served::shared;     // where its data comes from
    MissCause cause = MissCause::cold;  // of its miss, if it is one
    Value value = 0;
    std::uint32_t acks = 0;
    Time since = 0;
    ListPool<Request>::List queue;  // later requests for the line
  };

  void receive(const Message& message, std::uint32_t lane);
  void from_memory(const Message& message, std::uint32_t lane);
  void begin(Request request);
  void begin_get(std::uint32_t index);
  void ask_holders(Transaction& transaction, const RequesterSet& holders, Op op, Time when);
  void acknowledged(const Message& message);
  void supply(std::uint32_t index, const Holders& holders, Time when);
  void grant(Transaction& transaction, const Holders& holders, Op op, Value value, Time when);
  void put(const Request& request);
  void finish(std::uint32_t index);
  void retry_in_set(std::uint32_t set);
  std::uint32_t absorb(std::uint64_t line, Value value);
  std::uint32_t make_room(std::uint64_t line);
  void recall(std::uint64_t line);
  void drop(std::uint32_t at);
  void show_outstanding();
  void send(std::uint32_t requester, Message message, Time when);
  std::uint32_t open_transaction(const Request& request, std::uint64_t line);
  std::uint32_t transaction_of(std::uint64_t line, const char* what);

  const Spec spec_;
  Level level_;
  HomeStatistics statistics_;
  Directory directory_;
  FlatMap<std::uint32_t> busy_;  // line -> transaction
  std::vector<std::unique_ptr<Transaction>> transactions_;
  std::vector<std::uint32_t> free_;
  ListPool<Request> queued_;
  std::vector<std::uint32_t> without_room_;  // transactions that wait for an entry in the array
  std::vector<Value> values_;
  ResponderPort requesters_{*this, "requesters", "private caches, or an interconnect to them", Links::many};
  MemorySide memory_;
};

}  // namespace manyscale::memory

namespace manyscale {

template <>
struct describe<memory::HomeSpec> {
  using S = memory::HomeSpec;
  static constexpr auto fields = std::tuple{
      Field<S, std::int64_t>{"clock", &S::clock, Unit::frequency, "clock of the slice", 1, 1e12},
      Section<S, memory::CacheSpec>{"cache", &S::cache, "its lines"},
      Field<S, bool>{"inclusive", &S::inclusive, Unit::none,
                     "whether private caches hold only lines that this slice holds too"},
      Field<S, std::int64_t>{"slices", &S::slices, Unit::count,
                             "slices that share the lines; this one sees one line of so many", 1, 65536},
      Field<S, std::int64_t>{"memory_interleave", &S::memory_interleave, Unit::bytes,
                             "consecutive bytes that go to one of several memories", 32, 1e9},
      Field<S, bool>{"keep_values", &S::keep_values, Unit::none, "whether lines carry a value, for tests"}};
};

template <>
struct describe<memory::HomeStatistics> {
  using S = memory::HomeStatistics;
  static constexpr auto fields = std::tuple{
      Statistic<S, Counter>{"invalidations_sent", &S::invalidations_sent, "message", "copies it told to go"},
      Statistic<S, Counter>{"downgrades_sent", &S::downgrades_sent, "message", "owners it told to share"},
      Statistic<S, Counter>{"recalls", &S::recalls, "line",
                            "lines taken back from private caches to make room"},
      Statistic<S, Counter>{"upgrades", &S::upgrades, "request", "write permissions given without data"},
      Statistic<S, Counter>{"stale_puts", &S::stale_puts, "message",
                            "lines given back that had been taken already"},
      Statistic<S, Counter>{"queued", &S::queued, "request",
                            "requests that waited for another on the same line"}};
};

}  // namespace manyscale
