// SPDX-License-Identifier: Apache-2.0
// Traffic that loads a network for tests and measurements: every node sends messages by a pattern. Stands for
// no program.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/component.hpp"
#include "engine/timer.hpp"
#include "network/network.hpp"
#include "network/nic.hpp"

namespace manyscale::network {

struct TrafficSpec {
  std::string pattern = "uniform";
  std::int64_t messages = 100;
  std::int64_t bytes = 2048;
  std::int64_t outstanding = 4;
  std::int64_t stride = 1;
  Time interval = 0;
  Time measure_from = 0;
  Time measure_to = never;
};

// What a load of traffic came to.
struct TrafficReport {
  RunReport run;
  std::int64_t sent = 0, received = 0;
  std::int64_t measured_bytes = 0;  // that arrived while it was measured
  Time last_arrival = 0;
  std::vector<std::int64_t> received_bytes;  // per destination, while it was measured
  std::vector<std::int64_t> sent_bytes;      // per source, of messages that arrived while it was measured
  std::vector<LinkReport> links;
  Totals totals;
  StatisticRows rows;
};

// Simulates traffic on a network by itself; with an exchange, the part of it that is this process's.
TrafficReport run_traffic(const NetworkDescription& description, const TrafficSpec& traffic,
                          std::uint32_t threads, std::uint64_t seed, Time until = never,
                          Exchange* exchange = nullptr);

}  // namespace manyscale::network

namespace manyscale {

template <>
struct describe<network::TrafficSpec> {
  using S = network::TrafficSpec;
  static constexpr auto fields = std::tuple{
      Field<S, std::string>{
          "pattern", &S::pattern, Unit::none,
          "'uniform' (each message to a random other node), 'shift' (to the node `stride` further), "
          "'incast' (all to node 0), 'bisection' (to the node half of all further, in random pairs of "
          "halves), 'pingpong' (nodes 0 and `stride` answer each other), 'none'"},
      Field<S, std::int64_t>{"messages", &S::messages, Unit::count, "that each node sends", 0, 1e12},
      Field<S, std::int64_t>{"bytes", &S::bytes, Unit::bytes, "of a message", 0, 1e12},
      Field<S, std::int64_t>{"outstanding", &S::outstanding, Unit::count,
                             "messages of a node that are in flight at a time", 1, 1e6},
      Field<S, std::int64_t>{"stride", &S::stride, Unit::count, "distance to the partner, in nodes", 0, 1e9},
      Field<S, Time>{
          "interval", &S::interval, Unit::time,
          "mean time between messages of a node, whether they have arrived or not; 0: a message follows when "
          "one has left",
          0, 1e15},
      Field<S, Time>{"measure_from", &S::measure_from, Unit::time, "when arrivals begin to be measured", 0},
      Field<S, Time>{"measure_to", &S::measure_to, Unit::time, "when they cease to be measured", 0}};
};

}  // namespace manyscale
