// SPDX-License-Identifier: Apache-2.0
#include "network/dragonfly.hpp"

#include <algorithm>

#include "network/shape_text.hpp"

namespace manyscale::network {

Dragonfly::Dragonfly(const NetworkSpec& spec)
    : algorithm_(parse_algorithm(spec.routing.algorithm)),
      members_(static_cast<std::uint32_t>(spec.topology.group_switches)),
      global_links_(static_cast<std::uint32_t>(spec.topology.global_links)),
      nodes_per_switch_(static_cast<std::uint32_t>(spec.topology.nodes_per_switch)),
      latency_(spec.link.latency),
      global_latency_(spec.link.global_latency > 0 ? spec.link.global_latency : spec.link.latency),
      bandwidth_(static_cast<double>(spec.link.bandwidth)),
      global_bandwidth_(spec.link.global_bandwidth > 0 ? static_cast<double>(spec.link.global_bandwidth)
                                                       : bandwidth_) {
  if (members_ == 0)
    throw SimulationError("a dragonfly needs topology.group_switches, the switches of a group");
  const auto local = parse_numbers(spec.topology.links, 'x', "topology.links", "1");
  if (local.size() != 1 || local[0] > 64)
    throw SimulationError(
        "topology.links of a dragonfly is one number up to 64: the links between two switches of a group");
  local_links_ = local[0];
  const std::uint32_t per_group = members_ * global_links_;
  groups_ = spec.topology.groups > 0 ? static_cast<std::uint32_t>(spec.topology.groups) : per_group + 1;
  if (groups_ > 1) links_per_pair_ = per_group / (groups_ - 1);
  if (groups_ > 1 && links_per_pair_ == 0) {
    throw SimulationError("a dragonfly of " + std::to_string(groups_) +
                          " groups needs a link from each to all others, but " + std::to_string(members_) +
                          " switches with topology.global_links = " + std::to_string(global_links_) +
                          " have only " + std::to_string(per_group));
  }
  const std::uint32_t switches = bounded_product({groups_, members_}, "the number of switches");
  check_size(std::uint64_t{switches} * (std::uint64_t{local_ports()} + global_links_), "channels");
  const std::uint32_t places = bounded_product({switches, nodes_per_switch_}, "the number of nodes");
  nodes_ = spec.topology.nodes > 0 ? static_cast<std::uint32_t>(spec.topology.nodes) : places;
  if (nodes_ > places) {
    throw SimulationError("topology.nodes is " + std::to_string(nodes_) +
                          ", but the dragonfly has room for " + std::to_string(places));
  }
}

Shape Dragonfly::shape() const {
  Shape shape;
  shape.outlets.resize(std::size_t{groups_} * members_);
  shape.domains = groups_ >= 2 ? std::min(groups_, 8u) : std::min(members_, 8u);
  for (std::uint32_t at = 0; at < groups_ * members_; ++at) {
    const std::uint32_t group = at / members_, member = at % members_;
    shape.domain.push_back(groups_ >= 2 ? group * shape.domains / groups_
                                        : member * shape.domains / members_);
    auto& outlets = shape.outlets[at];
    for (std::uint32_t other = 0; other < members_; ++other) {
      if (other == member) continue;
      for (std::uint32_t link = 0; link < local_links_; ++link)
        outlets.push_back({group * members_ + other, latency_, bandwidth_});
    }
    for (std::uint32_t i = 0; i < global_links_; ++i) {
      const std::uint32_t n = member * global_links_ + i;
      Outlet outlet{nowhere, global_latency_, global_bandwidth_};
      if (groups_ > 1 && n / (groups_ - 1) < links_per_pair_) {
        const std::uint32_t off = n % (groups_ - 1);
        const std::uint32_t back = number(groups_ - 2 - off, n / (groups_ - 1));
        outlet.to = (group + 1 + off) % groups_ * members_ + back / global_links_;
      }
      outlets.push_back(outlet);
    }
  }
  for (std::uint32_t node = 0; node < nodes_; ++node) shape.node_switch.push_back(node / nodes_per_switch_);
  return shape;
}

}  // namespace manyscale::network
