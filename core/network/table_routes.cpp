// SPDX-License-Identifier: Apache-2.0
#include "network/table_routes.hpp"

#include <algorithm>

namespace manyscale::network {

TableRoutes::TableRoutes(const Topology& topology, const ActiveRouting& routing) : routing_(routing) {
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
  return std::max(1u, std::uint32_t{longest_} * (routing_.detours() ? 2 : 1));
}

}  // namespace manyscale::network
