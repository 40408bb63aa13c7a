// SPDX-License-Identifier: Apache-2.0
#include "network/routing.hpp"

namespace manyscale::network {

Routing::Routing(const NetworkDescription& description)
    : algorithm_(parse_algorithm(description.spec.routing.algorithm)),
      model_(make_topology(description.spec.topology)) {
  model_->build(description);
  topology_ = std::make_unique<Topology>(model_->shape(), description.spec);
  const bool gone = topology_->apply(description.faults);
  const auto own = model_->virtual_channels(algorithm_);
  if (gone || !own) table_ = std::make_unique<TableRoutes>(*topology_, algorithm_);
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
