// SPDX-License-Identifier: Apache-2.0
// What the tests of networks share: describing networks in few words.
#pragma once
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "engine/simulation.hpp"
#include "network/network.hpp"
#include "network/traffic/traffic.hpp"
#include "test_checks.hpp"

namespace manyscale::network::test {

using manyscale::test::check;
using manyscale::test::check_equal;
using manyscale::test::passed;

// Within a relative error.
inline void check_near(double found, double expected, double error, const std::string& what) {
  check(std::abs(found - expected) <= error * std::abs(expected),
        what + ": " + std::to_string(found) + " instead of " + std::to_string(expected) + " (" +
            std::to_string(100 * (found / expected - 1)) + "%)");
}

inline void check_refused(const std::function<void()>& action, const std::string& word) {
  manyscale::test::check_refused<SimulationError>(action, word);
}

// Round numbers: 10 GB/s are 100,000 fs per byte; links 50 ns, switches 70 ns, packets of 1000 + 24 B,
// buffers of 8.
inline NetworkDescription describe_network(const std::string& kind) {
  NetworkDescription description;
  NetworkSpec& spec = description.spec;
  spec.fidelity = "packet";
  spec.topology.kind = kind;
  spec.link.bandwidth = 10'000'000'000;
  spec.link.latency = 50 * nanosecond;
  spec.switches.latency = 70 * nanosecond;
  spec.switches.buffer = 8192;
  spec.packet.payload = 1000;
  spec.packet.header = 24;
  return description;
}

inline constexpr Time byte_time = 100'000;  // of those links

inline NetworkDescription fat_tree(const std::string& shape, std::int64_t roots = 0) {
  NetworkDescription description = describe_network("fat-tree");
  description.spec.topology.parameters.emplace_back("shape", shape);
  description.spec.topology.parameters.emplace_back("roots", roots);
  return description;
}

inline NetworkDescription grid(const std::string& kind, const std::string& shape,
                               std::int64_t nodes_per_switch = 1, const std::string& links = "1") {
  NetworkDescription description = describe_network(kind);
  description.spec.topology.parameters.emplace_back("shape", shape);
  description.spec.topology.parameters.emplace_back("nodes_per_switch", nodes_per_switch);
  description.spec.topology.parameters.emplace_back("links", links);
  return description;
}

inline NetworkDescription dragonfly(std::int64_t group_switches, std::int64_t global_links,
                                    std::int64_t nodes_per_switch, std::int64_t groups = 0) {
  NetworkDescription description = describe_network("dragonfly");
  description.spec.topology.parameters.emplace_back("group_switches", group_switches);
  description.spec.topology.parameters.emplace_back("global_links", global_links);
  description.spec.topology.parameters.emplace_back("nodes_per_switch", nodes_per_switch);
  description.spec.topology.parameters.emplace_back("groups", groups);
  return description;
}

inline NetworkDescription one_switch(std::int64_t nodes) {
  NetworkDescription description = describe_network("switch");
  description.spec.topology.nodes = nodes;
  return description;
}

// An irregular graph: a ring of eight switches with three chords, and two nodes at each.
inline NetworkDescription irregular_graph() {
  NetworkDescription description = describe_network("graph");
  GraphArrays& graph = description.graph;
  graph.switches = 8;
  const auto link = [&](std::uint32_t a, std::uint32_t b) {
    graph.from.push_back(a);
    graph.to.push_back(b);
  };
  for (std::uint32_t i = 0; i < 8; ++i) link(i, (i + 1) % 8);
  link(0, 4);
  link(1, 6);
  link(1, 6);
  for (std::uint32_t node = 0; node < 16; ++node) graph.node_switch.push_back(node / 2);
  return description;
}

inline const std::vector<std::string> algorithms{"deterministic", "ecmp", "adaptive", "valiant", "ugal"};

// A few of each kind, small.
struct Named {
  std::string name;
  NetworkDescription description;
};
inline std::vector<Named> small_networks() {
  NetworkDescription two_rails = fat_tree("4,4:4");
  two_rails.spec.topology.rails = 2;
  NetworkDescription broken = fat_tree("4,2:4,2:4");
  broken.faults.push_back({.a = 0, .b = 16});
  return {{"one switch", one_switch(6)},
          {"fat tree", fat_tree("4,4:4")},
          {"tapered fat tree of three levels", fat_tree("4,2:4,2:4")},
          {"fat tree with merged roots", fat_tree("4,4:4,4:2", 8)},
          {"fat tree with two rails", two_rails},
          {"fat tree with a link down", broken},
          {"ring", grid("torus", "7")},
          {"torus", grid("torus", "4x3x2", 2)},
          {"torus with several links", grid("torus", "5x4", 2, "2x3")},
          {"mesh", grid("mesh", "4x3x2", 2)},
          {"dragonfly", dragonfly(4, 2, 2)},
          {"dragonfly with several links between groups", dragonfly(4, 3, 2, 4)},
          {"graph", irregular_graph()}};
}

}  // namespace manyscale::network::test
