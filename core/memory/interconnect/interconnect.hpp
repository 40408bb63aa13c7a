// SPDX-License-Identifier: Apache-2.0
// What all interconnects share: ports, clock, order, jitter and statistics.
#pragma once
#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/clock.hpp"
#include "engine/exchange.hpp"
#include "memory/attribution.hpp"
#include "memory/protocol.hpp"

namespace manyscale::memory {

// Requests and responses have wires or buffers of their own, so that an answer never waits for a request.
enum Direction : std::uint32_t { requests = 0, responses = 1 };

struct InterconnectSpec {
  std::int64_t clock = 1'200'000'000;
  std::int64_t flit = 40;
  Time jitter = 0;
  bool reorder = false;
};

// What can be said of the messages of one origin.
struct InterconnectCounts {
  Counter messages;
  Counter bytes;
  Counter flits;
  Counter requests_busy;
  Counter responses_busy;
};

struct InterconnectStatistics : InterconnectCounts {
  Histogram latency;
  Histogram queueing;
};

// Reads a list of positions such as "0,3,5", one for each of `nodes` ("requester" or "responder"). Throws
// SimulationError where it is no such list or a position is not below `limit`.
std::vector<std::uint32_t> read_positions(const std::string& component, const std::string& list,
                                          const std::string& nodes, std::uint32_t count, std::uint32_t limit);

// A position for each of `count` nodes, spread evenly over `limit` of them.
std::vector<std::uint32_t> spread_positions(std::uint32_t count, std::uint32_t limit);

// The part of an on-chip network that does not depend on its topology. Leaves out: a limit to the queues at
// the entries, and receivers that cannot take what arrives. Fabric, the class derived from it, has
//   void prepare();  // when the number of links is known
//   void accept(Direction, const Message&, Cycle ready);  // a message arrived, to enter at that edge or
//   later Cycle tick(Cycle);
template <class Fabric>
class Interconnect : public Component, public Distributable {
 public:
  void start() override {
    for (const PortBase* port :
         {static_cast<PortBase*>(&requesters_), static_cast<PortBase*>(&responders_)}) {
      if (port->width() > most_links) {
        throw SimulationError(port->path() + " has " + std::to_string(port->width()) +
                              " links, but a message can name only " + std::to_string(most_links));
      }
    }
    if (ordered_) {
      const std::size_t pairs = std::size_t{requesters_.width()} * responders_.width();
      for (auto& last : last_delivery_) last.assign(pairs, 0);
    }
    static_cast<Fabric*>(this)->prepare();
  }
  void settle() override { static_cast<InterconnectCounts&>(statistics_) = traffic_.total(); }

  // What was carried, by origin.
  Attributed<InterconnectCounts>& traffic() { return traffic_; }

 protected:
  // `overtaking`: whether messages of one pair could overtake each other inside the fabric.
  Interconnect(const InterconnectSpec& spec, bool overtaking)
      : clock_(*this, period_of(spec.clock)),
        jitter_(spec.jitter),
        ordered_(!spec.reorder && (overtaking || spec.jitter > 0)) {
    declare(statistics_);
    requesters_.template on_receive<&Interconnect::take_request>();
    responders_.template on_receive<&Interconnect::take_response>();
    clock_.on_tick([](Component& component, Clock&, Cycle cycle) {
      return static_cast<Fabric&>(component).tick(cycle);
    });
    for (std::size_t sectors = 0; sectors < flits_of_.size(); ++sectors) {
      const auto bytes = header_bytes + sector_bytes * static_cast<std::int64_t>(sectors);
      flits_of_[sectors] = (bytes + spec.flit - 1) / spec.flit;
    }
  }

  std::uint32_t requester_count() const { return requesters_.width(); }
  std::uint32_t responder_count() const { return responders_.width(); }
  std::uint32_t sender_count(Direction direction) const {
    return direction == requests ? requesters_.width() : responders_.width();
  }
  Clock& clock() { return clock_; }
  Time period() const { return clock_.period(); }
  Cycle flits_of(const Message& message) const {
    return flits_of_[(message.bytes() - header_bytes) / sector_bytes];
  }

  // Sends a message on to its destination and counts it. In cycles: when it was `ready` to enter, when it is
  // `delivered`, how long that would take `unloaded`, and for how long it took wires, summed over them.
  void deliver(Direction direction, const Message& message, Time arrived, Cycle ready, Cycle delivered,
               Cycle unloaded, Cycle busy) {
    Time delivery = clock_.edge(delivered);
    if (jitter_ > 0) delivery += static_cast<Time>(random().below(static_cast<std::uint64_t>(jitter_) + 1));
    if (ordered_) {
      const auto [requester, responder] = direction == requests
                                              ? std::pair{message.source, message.destination}
                                              : std::pair{message.destination, message.source};
      Time& last = last_delivery_[direction][std::size_t{requester} * responders_.width() + responder];
      delivery = last = std::max(last, delivery);
    }
    InterconnectCounts& counts = traffic_[message.origin];
    ++counts.messages;
    counts.bytes += message.bytes();
    counts.flits += flits_of(message);
    statistics_.latency.record(delivery - arrived);
    statistics_.queueing.record((delivered - unloaded - ready) * clock_.period());
    if (direction == requests) {
      counts.requests_busy += busy * clock_.period();
      responders_.send(message, delivery - now(), message.destination);
    } else {
      counts.responses_busy += busy * clock_.period();
      requesters_.send(message, delivery - now(), message.destination);
    }
  }

 private:
  static constexpr std::uint32_t most_links = 65536;

  void take_request(const Message& message, std::uint32_t lane) {
    take(requests, message, lane, responders_.width());
  }
  void take_response(const Message& message, std::uint32_t lane) {
    take(responses, message, lane, requesters_.width());
  }

  void take(Direction direction, Message message, std::uint32_t lane, std::uint32_t receivers) {
    message.source = static_cast<std::uint16_t>(lane);
    if (message.destination >= receivers) [[unlikely]]
      refuse(direction, message, receivers);
    static_cast<Fabric*>(this)->accept(direction, message, next_cycle());
  }

  // The first cycle whose edge is not before the present, mostly without a division.
  Cycle next_cycle() {
    const Time time = now();
    if (time > edge_) {
      cycle_ = time - edge_ <= clock_.period() ? cycle_ + 1 : clock_.cycle_at(time);
      edge_ = clock_.edge(cycle_);
    }
    return cycle_;
  }

  [[noreturn]] void refuse(Direction direction, const Message& message, std::uint32_t receivers) const {
    const char* const sender = direction == requests ? "requester " : "responder ";
    const char* const receiver = direction == requests ? "responder " : "requester ";
    throw SimulationError(name() + ": " + sender + std::to_string(message.source) + " sends to " + receiver +
                          std::to_string(message.destination) + ", but the last one is " + receiver +
                          std::to_string(receivers - 1));
  }

  InterconnectStatistics statistics_;
  Attributed<InterconnectCounts> traffic_;
  ResponderPort requesters_{*this, "requesters", "cores, SMs or private caches, in the order of connection",
                            Links::many};
  RequesterPort responders_{*this, "responders",
                            "shared caches or memory controllers, in the order of connection", Links::many};
  Clock clock_;
  const Time jitter_;
  const bool ordered_;
  std::array<Cycle, 9> flits_of_;                   // by the number of sectors carried
  std::array<std::vector<Time>, 2> last_delivery_;  // per pair, where the fabric does not keep their order
  Cycle cycle_ = 0;
  Time edge_ = 0;
};

// The fields that the Specs of all interconnects begin with; `width` says what a flit is there.
template <class Spec>
constexpr auto interconnect_fields(std::string_view width) {
  return std::tuple{
      Field<Spec, std::int64_t>{"clock", &Spec::clock, Unit::frequency, "everything happens at its edges", 1,
                                1e12},
      Field<Spec, std::int64_t>{"flit", &Spec::flit, Unit::bytes, width, 1, 4096},
      Field<Spec, Time>{"jitter", &Spec::jitter, Unit::time,
                        "each message takes up to so much longer, at random (for tests)", 0, 1e12},
      Field<Spec, bool>{"reorder", &Spec::reorder, Unit::none,
                        "jitter may let messages of one pair overtake each other (for tests)"}};
}

template <class S>
constexpr auto interconnect_count_fields() {
  return std::tuple{
      Statistic<S, Counter>{"messages", &S::messages, "message", "messages carried"},
      Statistic<S, Counter>{"bytes", &S::bytes, "B", "bytes carried, headers included"},
      Statistic<S, Counter>{"flits", &S::flits, "flit", "flits carried, those partly filled included"},
      Statistic<S, Counter>{"requests_busy", &S::requests_busy, "fs",
                            "time for which requests took output ports or wires, summed over them"},
      Statistic<S, Counter>{"responses_busy", &S::responses_busy, "fs",
                            "time for which responses took output ports or wires, summed over them"}};
}

}  // namespace manyscale::memory

namespace manyscale {

template <>
struct describe<memory::InterconnectCounts> {
  static constexpr auto fields = memory::interconnect_count_fields<memory::InterconnectCounts>();
};

template <>
struct describe<memory::InterconnectStatistics> {
  using S = memory::InterconnectStatistics;
  static constexpr auto fields = std::tuple_cat(
      memory::interconnect_count_fields<S>(),
      std::tuple{
          Statistic<S, Histogram>{"latency", &S::latency, "fs",
                                  "time from the arrival of a message here to its delivery"},
          Statistic<S, Histogram>{"queueing", &S::queueing, "fs",
                                  "the part of the latency spent waiting for ports, wires and credits"}});
};

}  // namespace manyscale
