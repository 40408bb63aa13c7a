// SPDX-License-Identifier: Apache-2.0
// The ways of a network, whichever kind of topology it has.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "network/dragonfly.hpp"
#include "network/fat_tree.hpp"
#include "network/route.hpp"
#include "network/table_routes.hpp"
#include "network/torus.hpp"

namespace manyscale::network {

class Routing {
 public:
  // Builds the topology of the description, too.
  explicit Routing(const NetworkDescription& description);

  const Topology& topology() const { return *topology_; }
  Algorithm algorithm() const { return algorithm_; }
  std::uint32_t virtual_channels() const { return virtual_channels_; }
  // Whether packets that come from a node use the same virtual channels as those under way.
  bool mixes_new_packets() const { return kind_ == Kind::torus; }

  // Whether a way leads from one node to the other by this rail: links that are down may leave none.
  bool reachable(std::uint32_t source, std::uint32_t destination, std::uint32_t rail) const;

  // The port and virtual channel by which a packet leaves a switch.
  template <class Outlook>
  Hop next(std::uint32_t at, RouteState& state, Outlook& outlook) const {
    const std::uint32_t node = state.destination;
    const std::uint32_t rail_switches = topology_->rail_switches();
    const std::uint32_t base = at < rail_switches ? 0 : at / rail_switches * rail_switches;
    const Target target{topology_->node_switch(node), node};
    if (at - base == target.at) return {topology_->node_port(node), 0};
    switch (kind_) {
      case Kind::fat_tree:
        return fat_tree_->next(at - base, state, target, outlook);
      case Kind::torus:
        return torus_->next(at - base, state, target, outlook);
      case Kind::dragonfly:
        return dragonfly_->next(at - base, state, target, outlook);
      case Kind::table:
        break;
    }
    return table_->next(at, state, {base + target.at, node}, outlook);
  }

  // The channels of a message's way by a rail, from node to node. What the outlook says is of ports of `at`,
  // which it is told before.
  template <class Outlook>
  void path(std::uint32_t source, std::uint32_t destination, std::uint32_t rail, Outlook& outlook,
            std::vector<std::uint32_t>& channels) const {
    channels.clear();
    RouteState state{.destination = destination, .flow = flow_hash(source, destination)};
    channels.push_back(topology_->injection(source, rail));
    for (;;) {
      const Channel& last = topology_->channel(channels.back());
      if (last.kind == ChannelKind::to_node) return;
      outlook.at(last.to);
      const Hop hop = next(last.to, state, outlook);
      state.virtual_channel = hop.virtual_channel;
      channels.push_back(topology_->first_channel(last.to) + hop.port);
    }
  }

 private:
  enum class Kind { fat_tree, torus, dragonfly, table };

  Algorithm algorithm_;
  Kind kind_ = Kind::table;
  std::uint32_t virtual_channels_ = 1;
  std::unique_ptr<FatTree> fat_tree_;
  std::unique_ptr<Torus> torus_;
  std::unique_ptr<Dragonfly> dragonfly_;
  std::unique_ptr<TableRoutes> table_;
  std::unique_ptr<Topology> topology_;
};

}  // namespace manyscale::network
