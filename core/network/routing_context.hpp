// SPDX-License-Identifier: Apache-2.0
// Routing context: what a switch knows when it routes a packet. All contexts offer
//   load(port, virtual channel)   how long the backlog of an output takes
//   room(port, virtual channel)   whether a packet fits into the next buffer now
//   random(n)                     a number below n
//   prefers_detour(…)             UGAL's choice between the shortest path and a detour
#pragma once
#include <algorithm>
#include <cstdint>

#include "engine/random.hpp"
#include "network/fair_shares.hpp"
#include "network/packet_network.hpp"
#include "network/topology.hpp"

namespace manyscale::network {

// Of a network of packets: output queues and credits.
struct PacketContext {
  PacketNetwork& network;
  DrainPool& drains;
  Random& numbers;
  Time time;
  std::uint32_t first_channel;
  std::uint32_t bytes;

  Credits& credits(const Output& output, std::uint8_t virtual_channel) {
    Credits& credits = network.lanes[output.first_lane + virtual_channel].credits;
    credits.absorb(time, drains);
    return credits;
  }
  // Bytes in this output queue and in the next buffer, as the time they take on the wire.
  Time load(std::uint32_t port, std::uint8_t virtual_channel) {
    const Output& output = network.outputs[first_channel + port];
    const Time here = std::max<Time>(0, output.busy_until - time);
    const std::int64_t there = network.buffer - credits(output, virtual_channel).available;
    return here + output.rate(static_cast<std::uint64_t>(std::max<std::int64_t>(0, there)));
  }
  bool room(std::uint32_t port, std::uint8_t virtual_channel) {
    const Credits& found = credits(network.outputs[first_channel + port], virtual_channel);
    return found.available >= static_cast<std::int64_t>(bytes) && !found.awaited();
  }
  std::uint32_t random(std::uint32_t n) { return static_cast<std::uint32_t>(numbers.below(n)); }
  bool prefers_detour(Time load, Time hops, Time detour_load, Time detour_hops) {
    const Output& output = network.outputs[first_channel];
    const double bias = network.ugal_bias * static_cast<double>(output.rate(network.packet_bytes));
    return static_cast<double>(load * hops) > static_cast<double>(detour_load * detour_hops) + bias;
  }
};

// Of a network of flows: the number of flows on each channel.
struct FlowContext {
  const Topology& topology;
  const FairShares& shares;
  Random& numbers;
  std::uint32_t first_channel = 0;

  void at(std::uint32_t position) { first_channel = topology.first_channel(position); }
  Time load(std::uint32_t port, std::uint8_t) const {
    return static_cast<Time>(shares.flows_on(first_channel + port));
  }
  bool room(std::uint32_t, std::uint8_t) const { return true; }
  std::uint32_t random(std::uint32_t n) { return static_cast<std::uint32_t>(numbers.below(n)); }
  bool prefers_detour(Time load, Time hops, Time detour_load, Time detour_hops) const {
    return load * hops > detour_load * detour_hops;
  }
};

// Of no simulation: all outputs are idle; or loads are random, so that every path of a routing comes up; or
// no buffer has room.
struct ProbeContext {
  Random numbers;
  bool random_loads = false;
  bool full = false;

  void at(std::uint32_t) {}
  Time load(std::uint32_t, std::uint8_t) { return random_loads ? static_cast<Time>(numbers.below(4)) : 0; }
  bool room(std::uint32_t, std::uint8_t) { return !full && (!random_loads || numbers.below(2) == 0); }
  std::uint32_t random(std::uint32_t n) { return static_cast<std::uint32_t>(numbers.below(n)); }
  bool prefers_detour(Time, Time, Time, Time) { return random_loads && numbers.below(2) == 0; }
};

}  // namespace manyscale::network
