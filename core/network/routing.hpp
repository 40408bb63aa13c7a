// SPDX-License-Identifier: Apache-2.0
// Routing: the paths of packets through a network, whichever kind of topology it has. Where links are down,
// and for kinds without a routing of their own, paths come from a table of distances.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "network/route.hpp"
#include "network/table_routes.hpp"
#include "network/topology_model.hpp"

namespace manyscale::network {

class Routing {
 public:
  // Builds the topology of the description, too.
  explicit Routing(const NetworkDescription& description);

  const Topology& topology() const { return *topology_; }
  const TopologyModel& model() const { return *model_; }
  const ActiveRouting& rules() const { return rules_; }
  std::uint32_t virtual_channels() const { return virtual_channels_; }
  // Whether packets that come from a node use the same virtual channels as those in the network.
  bool mixes_new_packets() const { return !table_ && model_->mixes_new_packets(); }

  // Whether a path leads from one node to the other by this rail: links that are down may leave none.
  bool reachable(std::uint32_t source, std::uint32_t destination, std::uint32_t rail) const;

  // The port and virtual channel by which a packet leaves a switch.
  template <class Context>
  Hop next(std::uint32_t at, RouteState& state, Context& context) const {
    const std::uint32_t node = state.destination;
    const std::uint32_t rail_switches = topology_->rail_switches();
    const std::uint32_t base = at < rail_switches ? 0 : at / rail_switches * rail_switches;
    const Target target{topology_->node_switch(node), node};
    if (at - base == target.at) return {topology_->node_port(node), 0};
    if (table_) return table_->next(at, state, {base + target.at, node}, context);
    return model_->next(at - base, state, target, context);
  }

  // The channels of a message's path by a rail, from node to node. The context is moved to each switch before
  // it is asked about its ports.
  template <class Context>
  void path(std::uint32_t source, std::uint32_t destination, std::uint32_t rail, Context& context,
            std::vector<std::uint32_t>& channels) const {
    channels.clear();
    RouteState state{.destination = destination, .flow = flow_hash(source, destination)};
    channels.push_back(topology_->injection(source, rail));
    for (;;) {
      const Channel& last = topology_->channel(channels.back());
      if (last.kind == ChannelKind::to_node) return;
      context.at(last.to);
      const Hop hop = next(last.to, state, context);
      state.virtual_channel = hop.virtual_channel;
      channels.push_back(topology_->first_channel(last.to) + hop.port);
    }
  }

 private:
  std::unique_ptr<const RoutingAlgorithm> algorithm_;
  ActiveRouting rules_;
  std::uint32_t virtual_channels_ = 1;
  std::unique_ptr<TopologyModel> model_;
  std::unique_ptr<TableRoutes> table_;  // none: the model routes
  std::unique_ptr<Topology> topology_;
};

}  // namespace manyscale::network
