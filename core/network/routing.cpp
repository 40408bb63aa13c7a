// SPDX-License-Identifier: Apache-2.0
#include "network/routing.hpp"

namespace manyscale::network {

Routing::Routing(const NetworkDescription& description)
    : algorithm_(parse_algorithm(description.spec.routing.algorithm)) {
  NetworkSpec spec = description.spec;
  const std::string& kind = spec.topology.kind;
  Shape shape;
  if (kind == "fat-tree" || kind == "switch") {
    if (kind == "switch") {
      if (spec.topology.nodes == 0) throw SimulationError("a topology of kind 'switch' needs topology.nodes");
      spec.topology.shape = std::to_string(spec.topology.nodes);
    }
    kind_ = Kind::fat_tree;
    fat_tree_ = std::make_unique<FatTree>(spec);
    shape = fat_tree_->shape();
    virtual_channels_ = FatTree::virtual_channels(algorithm_);
  } else if (kind == "torus" || kind == "mesh") {
    kind_ = Kind::torus;
    torus_ = std::make_unique<Torus>(spec);
    shape = torus_->shape();
    virtual_channels_ = torus_->virtual_channels(algorithm_);
  } else if (kind == "dragonfly") {
    kind_ = Kind::dragonfly;
    dragonfly_ = std::make_unique<Dragonfly>(spec);
    shape = dragonfly_->shape();
    virtual_channels_ = Dragonfly::virtual_channels(algorithm_);
  } else if (kind == "graph") {
    shape = graph_shape(description.graph, spec);
  } else {
    throw SimulationError("topology.kind is '" + kind +
                          "'; it must be 'fat-tree', 'torus', 'mesh', 'dragonfly', 'switch' or 'graph'");
  }
  topology_ = std::make_unique<Topology>(shape, spec);
  const bool gone = topology_->apply(description.faults);
  if (gone || kind == "graph") {
    kind_ = Kind::table;
    table_ = std::make_unique<TableRoutes>(*topology_, algorithm_);
    virtual_channels_ = table_->virtual_channels();
  }
  topology_->number_queues(virtual_channels_);
}

bool Routing::reachable(std::uint32_t source, std::uint32_t destination, std::uint32_t rail) const {
  if (kind_ != Kind::table) return true;
  const std::uint32_t base = rail * topology_->rail_switches();
  const std::uint32_t from = base + topology_->node_switch(source);
  const std::uint32_t to = base + topology_->node_switch(destination);
  const auto there = [&](std::uint32_t channel) {
    return topology_->channel(channel).kind != ChannelKind::absent;
  };
  return there(topology_->injection(source, rail)) &&
         there(topology_->first_channel(to) + topology_->node_port(destination)) &&
         table_->reachable(from, to);
}

}  // namespace manyscale::network
