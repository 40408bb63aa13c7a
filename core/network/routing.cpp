// SPDX-License-Identifier: Apache-2.0
#include "network/routing.hpp"

namespace manyscale::network {

std::unique_ptr<const RoutingAlgorithm> make_routing_algorithm(const std::string& name) {
  const auto& known = Registry<RoutingAlgorithm>::get();
  if (!known.contains(name)) {
    std::string names;
    for (const auto& [one, entry] : known.entries()) names += (names.empty() ? "'" : ", '") + one + "'";
    throw SimulationError("routing.algorithm is '" + name + "'; it must be one of " + names);
  }
  return make_plugin<RoutingAlgorithm>(name);
}

Routing::Routing(const NetworkDescription& description)
    : algorithm_(make_routing_algorithm(description.spec.routing.algorithm)),
      rules_(*algorithm_),
      model_(make_topology(description.spec.topology)) {
  model_->build(description);
  model_->route_by(rules_);
  topology_ = std::make_unique<Topology>(model_->shape(), description.spec);
  const bool gone = topology_->apply(description.faults);
  const auto own = model_->virtual_channels(rules_);
  if (gone || !own) table_ = std::make_unique<TableRoutes>(*topology_, rules_);
  virtual_channels_ = table_ ? table_->virtual_channels() : *own;
  topology_->number_queues(virtual_channels_);
}

bool Routing::reachable(std::uint32_t source, std::uint32_t destination, std::uint32_t rail) const {
  if (!table_) return true;
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
