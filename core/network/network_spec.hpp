// SPDX-License-Identifier: Apache-2.0
// Parameters of a network. Defaults are those of Omni-Path 100.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/spec.hpp"
#include "engine/statistics.hpp"
#include "engine/time.hpp"

namespace manyscale::network {

// Switches, the links between them and the nodes attached to them.
struct TopologySpec {
  std::string kind = "fat-tree";
  std::int64_t nodes = 0;
  std::int64_t rails = 1;
  NamedValues parameters;  // of the kind, which declares them
};

struct LinkSpec {
  std::int64_t bandwidth = 12'500'000'000;
  Time latency = 90 * nanosecond;
  std::int64_t global_bandwidth = 0;
  Time global_latency = 0;
};

struct SwitchSpec {
  Time latency = 100 * nanosecond;
  std::int64_t buffer = 16 * 1024;
  std::string queues = "virtual-output";
};

struct NicSpec {
  std::int64_t bandwidth = 0;
  Time latency = 0;
  Time gap = 0;
  std::string order = "round-robin";
};

struct PacketSpec {
  std::int64_t payload = 2048;
  std::int64_t header = 32;
};

struct RoutingSpec {
  std::string algorithm = "deterministic";
  double ugal_bias = 0.0;
};

struct NetworkSpec {
  std::string fidelity = "train";
  std::int64_t train = 0;
  Time load_interval = 0;
  TopologySpec topology{};
  LinkSpec link{};
  SwitchSpec switches{};
  NicSpec nic{};
  PacketSpec packet{};
  RoutingSpec routing{};
};

// The links of a topology of kind "graph": ends are switches; values per link, or one for all, or none.
struct GraphArrays {
  std::uint32_t switches = 0;
  std::vector<std::uint32_t> from, to;
  std::vector<Time> latency;
  std::vector<std::int64_t> bandwidth;
  std::vector<std::uint32_t> node_switch;  // where each node is attached
};

// Links between two switches (both directions), or all links of one switch, that are down or slower than the
// rest.
struct Fault {
  std::uint32_t a = 0;
  std::int64_t b = -1;     // the other switch; -1: all links of switch a, its nodes' too
  std::int64_t link = -1;  // which of several links between the two; -1: all
  double speed = 0.0;      // share of the bandwidth that is left; 0: down
};

struct NetworkDescription {
  NetworkSpec spec;
  GraphArrays graph;
  std::vector<Fault> faults;
};

}  // namespace manyscale::network

namespace manyscale {

template <>
struct describe<network::TopologySpec> {
  using S = network::TopologySpec;
  static constexpr auto fields =
      std::tuple{Field<S, std::string>{"kind", &S::kind, Unit::none, "kind of topology: {topology}"},
                 Field<S, std::int64_t>{"nodes", &S::nodes, Unit::count,
                                        "nodes attached, from the first position on; 0: all", 0, 1e7},
                 Field<S, std::int64_t>{"rails", &S::rails, Unit::count,
                                        "equal networks side by side; each node is attached to all", 1, 16}};
};

template <>
struct describe<network::LinkSpec> {
  using S = network::LinkSpec;
  static constexpr auto fields = std::tuple{
      Field<S, std::int64_t>{"bandwidth", &S::bandwidth, Unit::bandwidth, "of a link, in each direction", 1e6,
                             1e15},
      Field<S, Time>{"latency", &S::latency, Unit::time, "from one end of a link to the other", 1e3, 1e15},
      Field<S, std::int64_t>{"global_bandwidth", &S::global_bandwidth, Unit::bandwidth,
                             "of a dragonfly's links between groups; 0: as the others", 0, 1e15},
      Field<S, Time>{"global_latency", &S::global_latency, Unit::time,
                     "of a dragonfly's links between groups; 0: as the others", 0, 1e12}};
};

template <>
struct describe<network::SwitchSpec> {
  using S = network::SwitchSpec;
  static constexpr auto fields = std::tuple{
      Field<S, Time>{"latency", &S::latency, Unit::time,
                     "from the arrival of a packet's head to when it can leave", 0, 1e12},
      Field<S, std::int64_t>{"buffer", &S::buffer, Unit::bytes, "of each virtual channel of each input", 64,
                             1e9},
      Field<S, std::string>{
          "queues", &S::queues, Unit::none,
          "'virtual-output': a packet waits for its own output only; 'input': also for those that came "
          "before it by the same virtual channel (head-of-line blocking)"}};
};

template <>
struct describe<network::NicSpec> {
  using S = network::NicSpec;
  static constexpr auto fields =
      std::tuple{Field<S, std::int64_t>{"bandwidth", &S::bandwidth, Unit::bandwidth,
                                        "of the link between node and switch; 0: as other links", 0, 1e15},
                 Field<S, Time>{"latency", &S::latency, Unit::time,
                                "of the link between node and switch; 0: as other links", 0, 1e12},
                 Field<S, Time>{"gap", &S::gap, Unit::time,
                                "least time between the end of a message and the start of the next", 0, 1e12},
                 Field<S, std::string>{
                     "order", &S::order, Unit::none,
                     "how messages share the way out: 'first-come' or 'round-robin'; those of one packet go "
                     "first"}};
};

template <>
struct describe<network::PacketSpec> {
  using S = network::PacketSpec;
  static constexpr auto fields =
      std::tuple{Field<S, std::int64_t>{"payload", &S::payload, Unit::bytes,
                                        "largest part of a message in one packet", 8, 1e6},
                 Field<S, std::int64_t>{"header", &S::header, Unit::bytes, "added to each packet", 0, 1024}};
};

template <>
struct describe<network::RoutingSpec> {
  using S = network::RoutingSpec;
  static constexpr auto fields =
      std::tuple{Field<S, std::string>{"algorithm", &S::algorithm, Unit::none,
                                       "how packets choose among paths: {routing algorithm}"},
                 Field<S, double>{"ugal_bias", &S::ugal_bias, Unit::ratio,
                                  "packets by which a detour must look better to be taken", 0, 1e6}};
};

template <>
struct describe<network::NetworkSpec> {
  using S = network::NetworkSpec;
  static constexpr auto fields = std::tuple{
      Field<S, std::string>{
          "fidelity", &S::fidelity, Unit::none,
          "'packet', 'train' (packets of a message move together), 'flow' (fairly shared fluid) or "
          "'ideal' (limits only at the nodes' links)"},
      Field<S, std::int64_t>{"train", &S::train, Unit::bytes, "longest train; 0: as long as a buffer holds",
                             0, 1e9},
      Field<S, Time>{
          "load_interval", &S::load_interval, Unit::time,
          "interval in which the load of links, and what waits for them, is recorded; 0: not recorded", 0,
          1e15},
      Section<S, network::TopologySpec>{"topology", &S::topology, "switches and links"},
      Section<S, network::LinkSpec>{"link", &S::link, "links"},
      Section<S, network::SwitchSpec>{"switch", &S::switches, "switches"},
      Section<S, network::NicSpec>{"nic", &S::nic, "ends of the network at nodes"},
      Section<S, network::PacketSpec>{"packet", &S::packet, "packets"},
      Section<S, network::RoutingSpec>{"routing", &S::routing, "how paths are chosen"}};
};

}  // namespace manyscale
