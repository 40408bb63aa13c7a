// SPDX-License-Identifier: Apache-2.0
// Topologies against their definitions, and ways against a search of our own: they lead where they should,
// are as short as possible, and no circle of virtual channels can wait for itself.
#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "network/routing.hpp"
#include "test_network.hpp"

using namespace manyscale;
using namespace manyscale::network;
using namespace manyscale::network::test;

namespace {

// An algorithm of this file: of several outputs the one with the highest load.
class MostLoaded final : public RoutingAlgorithm {
 public:
  RoutingRules rules() const override { return {.selection = Selection::own, .gateway = Selection::own}; }
  std::uint32_t select(Candidates& candidates) const override {
    std::uint32_t most = 0;
    for (std::uint32_t i = 1; i < candidates.count; ++i)
      if (candidates.load(i) > candidates.load(most)) most = i;
    return most;
  }
};
const Registered<MostLoaded> registered{"most-loaded", "The most loaded of the shortest paths."};

// Hops between switches, by breadth-first search over all channels.
std::vector<std::uint32_t> distances_from(const Topology& topology, std::uint32_t start) {
  std::vector<std::uint32_t> distance(topology.switches(), nowhere);
  distance[start] = 0;
  std::deque<std::uint32_t> frontier{start};
  while (!frontier.empty()) {
    const std::uint32_t at = frontier.front();
    frontier.pop_front();
    for (std::uint32_t port = 0; port < topology.ports(at); ++port) {
      const Channel& channel = topology.channel(topology.first_channel(at) + port);
      if (channel.kind != ChannelKind::between_switches || distance[channel.to] != nowhere) continue;
      distance[channel.to] = distance[at] + 1;
      frontier.push_back(channel.to);
    }
  }
  return distance;
}

std::uint32_t ports_to_switches(const Topology& topology, std::uint32_t at) {
  std::uint32_t count = 0;
  for (std::uint32_t port = 0; port < topology.ports(at); ++port)
    count += topology.channel(topology.first_channel(at) + port).kind == ChannelKind::between_switches;
  return count;
}

TEST(shapes_are_as_defined) {
  // The many-node study's 48-port fat tree: 96 leaves, 96 in the middle, 48 roots, 24 nodes per leaf.
  NetworkDescription description = fat_tree("24,24:24,24:4", 48);
  const Routing tree(description);
  check_equal(tree.topology().switches(), 240, "switches of the 48-port fat tree");
  check_equal(tree.topology().nodes(), 2304, "nodes of the 48-port fat tree");
  for (std::uint32_t at = 0; at < 240; ++at)
    check_equal(tree.topology().ports(at), 48, "ports of switch " + std::to_string(at));
  const Routing torus(grid("torus", "5x5x4", 24, "4"));
  check_equal(torus.topology().switches(), 100, "switches of the torus");
  for (std::uint32_t at = 0; at < 100; ++at)
    check_equal(torus.topology().ports(at), 48, "ports of the torus");
  const Routing mesh(grid("mesh", "4x3"));
  check_equal(ports_to_switches(mesh.topology(), 0), 2, "links of a mesh's corner");
  check_equal(ports_to_switches(mesh.topology(), 5), 4, "links inside a mesh");

  // 5 groups of 18 with 17 + 7 links: 31 links between every two groups (126 for 4 others).
  const Routing flies(dragonfly(18, 7, 24, 5));
  check_equal(flies.topology().switches(), 90, "switches of the dragonfly");
  check_equal(flies.topology().nodes(), 2160, "nodes of the dragonfly");
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> between;
  for (std::uint32_t c = 0; c < flies.topology().channels(); ++c) {
    const Channel& channel = flies.topology().channel(c);
    if (channel.kind == ChannelKind::between_switches) ++between[{channel.from / 18, channel.to / 18}];
  }
  for (const auto& [groups, links] : between)
    check_equal(links, groups.first == groups.second ? 18 * 17 : 31, "links between groups");
  // The canonical one: a link between every two of a * h + 1 groups.
  const Routing canonical(dragonfly(4, 2, 2));
  check_equal(canonical.topology().switches(), 36, "switches of the canonical dragonfly");
}

TEST(links_go_both_ways) {
  for (const auto& [name, description] : small_networks()) {
    const Routing routing(description);
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> balance;
    for (std::uint32_t c = 0; c < routing.topology().channels(); ++c) {
      const Channel& channel = routing.topology().channel(c);
      if (channel.kind != ChannelKind::between_switches) continue;
      ++balance[{channel.from, channel.to}];
      --balance[{channel.to, channel.from}];
    }
    check(std::all_of(balance.begin(), balance.end(), [](const auto& entry) { return entry.second == 0; }),
          name + ": each link has two directions");
  }
}

// How long ways may be: as short as possible; for a dragonfly a link within each group and one between them;
// detours.
enum class Length { shortest, one_link_between_groups, detour };

// Follows packets from every node to every other, several times; gives the edges between lanes that they use
// one after the other.
std::set<std::pair<std::uint32_t, std::uint32_t>> follow_all(const std::string& name, const Routing& routing,
                                                             Length length) {
  const Topology& topology = routing.topology();
  std::set<std::pair<std::uint32_t, std::uint32_t>> edges;
  std::vector<std::vector<std::uint32_t>> distance;
  for (std::uint32_t at = 0; at < topology.switches(); ++at) distance.push_back(distances_from(topology, at));
  ProbeContext context{Random(11, 7), true};
  for (std::uint32_t source = 0; source < topology.nodes(); ++source) {
    for (std::uint32_t destination = 0; destination < topology.nodes(); ++destination) {
      for (std::uint32_t attempt = 0; attempt < 6; ++attempt) {
        const std::uint32_t rail = attempt % topology.rails();
        RouteState state{.destination = destination, .flow = flow_hash(source, destination + 1000 * attempt)};
        std::uint32_t channel = topology.injection(source, rail);
        std::uint32_t lane = topology.channel(channel).first_queue, hops = 0;
        const std::uint32_t first = topology.channel(channel).to;
        const std::uint32_t last = rail * topology.rail_switches() + topology.node_switch(destination);
        while (topology.channel(channel).kind != ChannelKind::to_node && hops < 100) {
          const std::uint32_t at = topology.channel(channel).to;
          const Hop hop = routing.next(at, state, context);
          state.virtual_channel = hop.virtual_channel;
          channel = topology.first_channel(at) + hop.port;
          const Channel& next = topology.channel(channel);
          if (next.from != at || next.kind == ChannelKind::absent ||
              hop.virtual_channel >= routing.virtual_channels()) {
            check(false, name + ": a way takes a channel that is not there");
            return edges;
          }
          if (next.kind == ChannelKind::to_node) break;
          ++hops;
          edges.insert({lane, next.first_queue + hop.virtual_channel});
          lane = next.first_queue + hop.virtual_channel;
        }
        const Channel& end = topology.channel(channel);
        if (end.kind != ChannelKind::to_node || end.to != destination) {
          check(false, name + ": a way leads to node " + std::to_string(end.to));
          return edges;
        }
        const std::uint32_t shortest = distance[first][last];
        const bool right = length == Length::shortest                  ? hops == shortest
                           : length == Length::one_link_between_groups ? hops >= shortest && hops <= 3
                                                                       : hops >= shortest && hops <= 20;
        if (!right) {
          check(false, name + ": a way has " + std::to_string(hops) + " hops, the shortest " +
                           std::to_string(shortest));
          return edges;
        }
      }
    }
  }
  ++passed;
  return edges;
}

bool has_circle(const std::set<std::pair<std::uint32_t, std::uint32_t>>& edges) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> after;
  std::map<std::uint32_t, int> before;
  for (const auto& [from, to] : edges) {
    after[from].push_back(to);
    before[from];
    ++before[to];
  }
  std::vector<std::uint32_t> ready;
  for (const auto& [lane, count] : before)
    if (count == 0) ready.push_back(lane);
  std::size_t done = 0;
  for (; done < ready.size(); ++done)
    for (const std::uint32_t next : after[ready[done]])
      if (--before[next] == 0) ready.push_back(next);
  return done != before.size();
}

TEST(ways_are_short_and_free_of_circles) {
  for (auto& [name, description] : small_networks()) {
    for (const auto& [algorithm, entry] : Registry<RoutingAlgorithm>::get().entries()) {
      description.spec.routing.algorithm = algorithm;
      const Routing routing(description);
      const std::string what = name + ", " + algorithm;
      // In a whole fat tree all ways are as short: those by a random root, too.
      const bool detours = (algorithm == "valiant" || algorithm == "ugal") &&
                           (description.spec.topology.kind != "fat-tree" || !description.faults.empty());
      const auto edges =
          follow_all(what, routing,
                     detours                                         ? Length::detour
                     : description.spec.topology.kind == "dragonfly" ? Length::one_link_between_groups
                                                                     : Length::shortest);
      // On a torus, adaptive packets wait only for virtual channels of the ordered ways, never for the
      // others.
      const bool waits_elsewhere = algorithm == "adaptive" && (description.spec.topology.kind == "torus" ||
                                                               description.spec.topology.kind == "mesh");
      if (!waits_elsewhere)
        check(!has_circle(edges), what + ": virtual channels wait for each other in a circle");
    }
  }
}

// Loads are the port numbers.
struct PortContext : ProbeContext {
  Time load(std::uint32_t port, std::uint8_t) { return static_cast<Time>(port); }
};

TEST(an_algorithm_selects_by_itself) {
  NetworkDescription description = fat_tree("4,4:4");
  description.spec.routing.algorithm = "most-loaded";
  const Routing routing(description);
  check(routing.rules().by_load(), "a selection of its own may depend on load");
  // From the first leaf upwards: ports 0 to 3 lead to the roots.
  ProbeContext idle{Random(1, 1)};
  RouteState state{.destination = 15, .flow = flow_hash(0, 15)};
  check_equal(routing.next(0, state, idle).port, 0, "of equals the first");
  const ActiveRouting& rules = routing.rules();
  PortContext by_port{{Random(1, 1)}};
  check_equal(choose(rules, 4, 3, 0, state, 0, 0, by_port), 6, "the highest load");
  check_equal(choose(rules, 4, 1, 0, state, 0, 0, by_port), 4, "the only one");
}

TEST(adaptive_packets_on_a_torus_wait_for_ordered_ways) {
  // With no room anywhere, the next hop is that of dimension order, on a virtual channel of its own.
  for (const char* kind : {"torus", "mesh"}) {
    NetworkDescription description = grid(kind, "5x4x3", 1, "2");
    description.spec.routing.algorithm = "adaptive";
    const Routing adaptive(description);
    description.spec.routing.algorithm = "ecmp";
    const Routing ordered(description);
    ProbeContext full{Random(3, 3), true, true};
    for (std::uint32_t from = 0; from < 60; ++from) {
      for (std::uint32_t to = 0; to < 60; ++to) {
        if (from == to) continue;
        RouteState a{.destination = to, .flow = flow_hash(from, to)}, b = a;
        const Hop fallback = adaptive.next(from, a, full), order = ordered.next(from, b, full);
        check(fallback.port / 2 == order.port / 2 && fallback.virtual_channel == order.virtual_channel,
              std::string(kind) + ": the way to fall back on");
        check(fallback.virtual_channel + 1u < adaptive.virtual_channels(),
              "a virtual channel of the ordered ways");
      }
    }
  }
}

// Valiant's detours go through every third group, through one as often as through another.
TEST(detours_of_a_dragonfly_lead_through_every_third_group) {
  constexpr std::uint32_t members = 4, nodes = 8, packets = 700;  // of 9 groups; there are 7 to go through
  NetworkDescription description = dragonfly(members, 2, 2);
  description.spec.routing.algorithm = "valiant";
  const Routing routing(description);
  ProbeContext context{Random(11, 7), true};
  for (const auto& [group, target] : {std::pair{1u, 6u}, {6u, 1u}, {0u, 8u}, {7u, 8u}}) {
    std::map<std::uint32_t, int> detours;
    for (std::uint32_t i = 0; i < packets; ++i) {
      RouteState state{.destination = target * nodes};
      routing.next(group * members, state, context);
      ++detours[state.intermediate];
    }
    check_equal(static_cast<std::int64_t>(detours.size()), 7, "groups that packets go through");
    check(!detours.contains(group) && !detours.contains(target), "neither the first group nor the last");
    for (const auto& [detour, count] : detours)
      check(count > 60 && count < 140,
            "a seventh goes through group " + std::to_string(detour) + ": " + std::to_string(count));
  }
}

TEST(flows_are_spread_evenly) {
  // D-mod-k: a shift by one leaf puts every flow on a link of its own.
  const Routing routing(fat_tree("8,8:8"));
  ProbeContext context{Random(1, 1), true};
  std::vector<std::uint32_t> channels;
  std::map<std::uint32_t, int> used;
  for (std::uint32_t node = 0; node < 64; ++node) {
    routing.path(node, (node + 8) % 64, 0, context, channels);
    for (const std::uint32_t channel : channels) ++used[channel];
  }
  check(std::all_of(used.begin(), used.end(), [](const auto& entry) { return entry.second == 1; }),
        "a shift is free of conflicts");
  NetworkDescription hashed = fat_tree("8,8:8");
  hashed.spec.routing.algorithm = "ecmp";
  const Routing ecmp(hashed);
  std::map<std::uint32_t, int> first;
  for (std::uint32_t from = 0; from < 8; ++from) {
    for (std::uint32_t to = 8; to < 64; ++to) {
      ecmp.path(from, to, 0, context, channels);
      ++first[channels[1]];
    }
  }
  check_equal(static_cast<std::int64_t>(first.size()), 8, "links up that ECMP uses");
  for (const auto& [channel, count] : first) check(count > 28 && count < 90, "ECMP uses links about equally");
}

TEST(faults_are_avoided) {
  // A ring of eight with the link between 2 and 3 down: the way from 1 to 4 goes round.
  NetworkDescription description = grid("torus", "8");
  description.faults.push_back({.a = 2, .b = 3});
  const Routing routing(description);
  ProbeContext context{Random(1, 1), true};
  std::vector<std::uint32_t> channels;
  routing.path(1, 4, 0, context, channels);
  check_equal(static_cast<std::int64_t>(channels.size()), 7, "channels of the way round");
  for (const std::uint32_t channel : channels)
    check(routing.topology().channel(channel).kind != ChannelKind::absent,
          "the way takes links that are there");
  description.faults.push_back({.a = 6, .b = 7});
  const Routing cut(description);
  check(!cut.reachable(1, 4, 0) && cut.reachable(1, 7, 0), "two links down cut a ring in two");
  description.faults = {{.a = 5}};
  const Routing without(description);
  check(!without.reachable(1, 5, 0) && without.reachable(4, 6, 0),
        "a switch that is down cuts off its node only");
}

TEST(wrong_descriptions_are_refused) {
  const auto refused = [](NetworkDescription description, const std::string& word) {
    check_refused([&] { const Routing routing(description); }, word);
  };
  refused(describe_network("hypercube"), "dragonfly");
  refused(fat_tree("4,4"), "roots");
  refused(fat_tree("4,x:4"), "whole numbers");
  refused(fat_tree("4,4:4", 3), "divide");
  refused(fat_tree("1000000,1:1000000,1:1000000"), "ten million");
  refused(fat_tree("100,1000000:100,1000000:100"), "make it smaller");
  refused(grid("torus", "200x200x200", 1, "64"), "make it smaller");
  refused(dragonfly(4000, 1, 1, 2000), "make it smaller");
  refused(grid("torus", "4x0"), "whole numbers");
  refused(grid("torus", "4x4", 1, "1x1x1"), "dimensions");
  refused(grid("torus", ""), "whole numbers");
  refused(dragonfly(0, 1, 1), "group_switches");
  refused(dragonfly(2, 1, 1, 9), "groups");
  refused(describe_network("switch"), "topology.nodes");
  refused(describe_network("graph"), "switch");
  NetworkDescription description = fat_tree("4,4:4");
  description.spec.topology.nodes = 17;
  refused(description, "16");
  description = fat_tree("4,4:4");
  description.spec.routing.algorithm = "shortest";
  refused(description, "ecmp");
  description = fat_tree("4,4:4");
  description.faults.push_back({.a = 99});
  refused(description, "numbered from 0 to 7");
  description.faults = {{.a = 0, .b = 1}};
  refused(description, "there is none");
  description.faults = {{.a = 0, .speed = 2.0}};
  refused(description, "share");
  description = irregular_graph();
  description.graph.to[3] = 8;
  refused(description, "link 3");
  description = irregular_graph();
  description.graph.latency = {1, 2};
  refused(description, "latency");
  description = irregular_graph();
  description.graph.node_switch[0] = 77;
  refused(description, "77");
  description = irregular_graph();
  description.graph.bandwidth = {5};
  refused(description, "1 MB/s");
}

}  // namespace
