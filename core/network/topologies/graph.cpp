// SPDX-License-Identifier: Apache-2.0
// Graph: any switches and links, listed in a file. Packets take shortest paths.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "network/topology_model.hpp"

namespace manyscale::network {

namespace {

void check_links(const GraphArrays& graph) {
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
}

// The switch of each node that is attached.
std::vector<std::uint32_t> attached_nodes(const NetworkDescription& description) {
  const GraphArrays& graph = description.graph;
  const auto wanted = static_cast<std::size_t>(description.spec.topology.nodes);
  if (wanted > graph.node_switch.size()) {
    throw SimulationError("topology.nodes is " + std::to_string(wanted) + ", but the graph attaches " +
                          std::to_string(graph.node_switch.size()));
  }
  std::vector<std::uint32_t> node_switch = graph.node_switch;
  if (wanted > 0) node_switch.resize(wanted);
  if (node_switch.empty()) throw SimulationError("the graph attaches no nodes to its switches");
  for (const std::uint32_t at : node_switch) {
    if (at >= graph.switches)
      throw SimulationError("a node is attached to switch " + std::to_string(at) +
                            ", but the switches are numbered from 0 to " +
                            std::to_string(graph.switches - 1));
  }
  return node_switch;
}

// Neighbours in one domain: equal shares of a breadth-first walk through the graph.
void assign_domains(Shape& shape) {
  const auto switches = static_cast<std::uint32_t>(shape.outlets.size());
  shape.domain.assign(switches, nowhere);
  shape.domains = std::min(switches, 8u);
  std::vector<std::uint32_t> walk;
  std::vector<bool> seen(switches, false);
  for (std::uint32_t first = 0; first < switches; ++first) {
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
}

class Graph final : public TopologyModel {
 public:
  explicit Graph(const NamedValues&) {}

  NamedValues fit(std::uint32_t, std::uint32_t) const override { return {}; }
  void build(const NetworkDescription& description) override {
    check_links(description.graph);
    const GraphArrays& graph = description.graph;
    const NetworkSpec& spec = description.spec;
    const std::size_t links = graph.from.size();
    shape_.outlets.resize(graph.switches);
    for (std::size_t i = 0; i < links; ++i) {
      const std::uint32_t a = graph.from[i], b = graph.to[i];
      if (a >= graph.switches || b >= graph.switches || a == b) {
        throw SimulationError("link " + std::to_string(i) + " of the graph joins switches " +
                              std::to_string(a) + " and " + std::to_string(b) +
                              "; it takes two different ones from 0 to " +
                              std::to_string(graph.switches - 1));
      }
      const Time latency =
          graph.latency.empty() ? spec.link.latency : graph.latency[graph.latency.size() == 1 ? 0 : i];
      const auto bandwidth =
          static_cast<double>(graph.bandwidth.empty() ? spec.link.bandwidth
                                                      : graph.bandwidth[graph.bandwidth.size() == 1 ? 0 : i]);
      if (latency < picosecond || latency > second)
        throw SimulationError("the latency of link " + std::to_string(i) +
                              " of the graph is not from 1 ps to 1 s");
      shape_.outlets[a].push_back({b, latency, bandwidth});
      shape_.outlets[b].push_back({a, latency, bandwidth});
    }
    shape_.node_switch = attached_nodes(description);
    assign_domains(shape_);
  }
  bool fixes_nodes() const override { return false; }
  Shape shape() const override { return shape_; }
  bool may_be_disconnected() const override { return true; }

 private:
  Shape shape_;
};

const Registered<Graph> registered{"graph", "Switches and links listed in a file."};

}  // namespace

}  // namespace manyscale::network
