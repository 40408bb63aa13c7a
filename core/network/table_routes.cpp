// SPDX-License-Identifier: Apache-2.0
#include "network/table_routes.hpp"

#include <algorithm>

namespace manyscale::network {

TableRoutes::TableRoutes(const Topology& topology, Algorithm algorithm) : algorithm_(algorithm) {
  const std::uint32_t switches = topology.switches();
  std::vector<std::vector<std::uint32_t>> sources(switches);  // from which switches one comes to each
  first_neighbour_.reserve(switches + 1);
  for (std::uint32_t at = 0; at < switches; ++at) {
    first_neighbour_.push_back(static_cast<std::uint32_t>(neighbours_.size()));
    for (std::uint32_t port = 0; port < topology.ports(at); ++port) {
      const Channel& channel = topology.channel(topology.first_channel(at) + port);
      if (channel.kind != ChannelKind::between_switches) continue;
      neighbours_.push_back({channel.to, port});
      sources[channel.to].push_back(at);
    }
  }
  first_neighbour_.push_back(static_cast<std::uint32_t>(neighbours_.size()));
  row_.assign(switches, nowhere);
  for (std::uint32_t rail = 0; rail < topology.rails(); ++rail) {
    for (std::uint32_t node = 0; node < topology.nodes(); ++node) {
      const std::uint32_t at = rail * topology.rail_switches() + topology.node_switch(node);
      if (row_[at] != nowhere) continue;
      row_[at] = static_cast<std::uint32_t>(with_nodes_.size());
      with_nodes_.push_back(at);
    }
  }
  const std::uint64_t size = std::uint64_t{with_nodes_.size()} * switches;
  if (size > std::uint64_t{1} << 31) {
    throw SimulationError(
        "a table of ways between " + std::to_string(switches) +
        " switches takes more than 2 GiB; use a regular topology without links that are down");
  }
  distances_.assign(size, unreachable);
  std::vector<std::uint32_t> frontier, next;
  for (std::size_t row = 0; row < with_nodes_.size(); ++row) {
    std::uint8_t* const distance = distances_.data() + row * switches;
    distance[with_nodes_[row]] = 0;
    frontier.assign(1, with_nodes_[row]);
    for (std::uint8_t hops = 1; !frontier.empty(); ++hops, frontier.swap(next)) {
      next.clear();
      for (const std::uint32_t at : frontier) {
        for (const std::uint32_t source : sources[at]) {
          if (distance[source] != unreachable) continue;
          distance[source] = hops;
          next.push_back(source);
        }
      }
      if (next.empty()) break;
      longest_ = std::max(longest_, hops);
      if (longest_ > 64) {
        throw SimulationError(
            "a way through the network has more than 64 hops; each needs a virtual channel, and 64 is the "
            "most");
      }
    }
  }
}

std::uint32_t TableRoutes::virtual_channels() const {
  const bool detours = algorithm_ == Algorithm::valiant || algorithm_ == Algorithm::ugal;
  return std::max(1u, std::uint32_t{longest_} * (detours ? 2 : 1));
}

Shape graph_shape(const GraphArrays& graph, const NetworkSpec& spec) {
  const std::size_t links = graph.from.size();
  if (graph.switches == 0) throw SimulationError("a topology of kind 'graph' needs at least one switch");
  if (graph.switches > 10'000'000) throw SimulationError("the graph has more than ten million switches");
  if (graph.to.size() != links) throw SimulationError("the graph's links have different numbers of ends");
  const auto one_or_all = [&](std::size_t values, const char* what) {
    if (values > 1 && values != links) {
      throw SimulationError("the graph has " + std::to_string(links) + " links, but " +
                            std::to_string(values) + " values for their " + what);
    }
  };
  one_or_all(graph.latency.size(), "latency");
  one_or_all(graph.bandwidth.size(), "bandwidth");
  check_size(2 * std::uint64_t{links}, "channels");
  Shape shape;
  shape.outlets.resize(graph.switches);
  for (std::size_t i = 0; i < links; ++i) {
    const std::uint32_t a = graph.from[i], b = graph.to[i];
    if (a >= graph.switches || b >= graph.switches || a == b) {
      throw SimulationError("link " + std::to_string(i) + " of the graph joins switches " +
                            std::to_string(a) + " and " + std::to_string(b) +
                            "; it takes two different ones from 0 to " + std::to_string(graph.switches - 1));
    }
    const Time latency =
        graph.latency.empty() ? spec.link.latency : graph.latency[graph.latency.size() == 1 ? 0 : i];
    const auto bandwidth = static_cast<double>(
        graph.bandwidth.empty() ? spec.link.bandwidth : graph.bandwidth[graph.bandwidth.size() == 1 ? 0 : i]);
    if (latency < picosecond || latency > second)
      throw SimulationError("the latency of link " + std::to_string(i) +
                            " of the graph is not from 1 ps to 1 s");
    shape.outlets[a].push_back({b, latency, bandwidth});
    shape.outlets[b].push_back({a, latency, bandwidth});
  }
  const auto wanted = static_cast<std::size_t>(spec.topology.nodes);
  if (wanted > graph.node_switch.size()) {
    throw SimulationError("topology.nodes is " + std::to_string(wanted) + ", but the graph attaches " +
                          std::to_string(graph.node_switch.size()));
  }
  shape.node_switch = graph.node_switch;
  if (wanted > 0) shape.node_switch.resize(wanted);
  if (shape.node_switch.empty()) throw SimulationError("the graph attaches no nodes to its switches");
  for (const std::uint32_t at : shape.node_switch) {
    if (at >= graph.switches)
      throw SimulationError("a node is attached to switch " + std::to_string(at) +
                            ", but the switches are numbered from 0 to " +
                            std::to_string(graph.switches - 1));
  }
  // Neighbours together: equal shares of a walk through the graph.
  shape.domain.assign(graph.switches, nowhere);
  shape.domains = std::min(graph.switches, 8u);
  std::vector<std::uint32_t> walk;
  std::vector<bool> seen(graph.switches, false);
  for (std::uint32_t first = 0; first < graph.switches; ++first) {
    if (seen[first]) continue;
    seen[first] = true;
    walk.push_back(first);
    for (std::size_t i = walk.size() - 1; i < walk.size(); ++i) {
      for (const Outlet& outlet : shape.outlets[walk[i]]) {
        if (seen[outlet.to]) continue;
        seen[outlet.to] = true;
        walk.push_back(outlet.to);
      }
    }
  }
  for (std::size_t i = 0; i < walk.size(); ++i)
    shape.domain[walk[i]] = static_cast<std::uint32_t>(i * shape.domains / walk.size());
  return shape;
}

}  // namespace manyscale::network
