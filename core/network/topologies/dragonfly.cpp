// SPDX-License-Identifier: Apache-2.0
// Dragonfly: groups of switches that are all linked to each other, and links between every two groups. The
// links of a group to others go to the other groups in turn, so that each switch reaches as many of them as
// it can. A packet takes at most one link within a group, one to the next group, and so on; its virtual
// channel is the number of groups it has left, so that no cycle can form.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "network/shape_text.hpp"
#include "network/topology_model.hpp"

namespace manyscale::network {

namespace {

struct DragonflySpec {
  std::int64_t nodes_per_switch = 1;
  std::string links = "1";
  std::int64_t groups = 0;
  std::int64_t group_switches = 0;
  std::int64_t global_links = 0;
};

}  // namespace

}  // namespace manyscale::network

namespace manyscale {

template <>
struct describe<network::DragonflySpec> {
  using S = network::DragonflySpec;
  static constexpr auto fields = std::tuple{
      Field<S, std::int64_t>{"nodes_per_switch", &S::nodes_per_switch, Unit::count, "nodes at each switch", 1,
                             4096},
      Field<S, std::string>{"links", &S::links, Unit::none, "links between two switches of a group"},
      Field<S, std::int64_t>{"groups", &S::groups, Unit::count, "groups; 0: as many as there are links for",
                             0, 1e6},
      Field<S, std::int64_t>{"group_switches", &S::group_switches, Unit::count,
                             "switches of a group, each linked to all others of it", 0, 4096},
      Field<S, std::int64_t>{"global_links", &S::global_links, Unit::count,
                             "links from each switch to other groups", 0, 4096}};
};

}  // namespace manyscale

namespace manyscale::network {

namespace {

class Dragonfly final : public RoutedTopology<Dragonfly> {
 public:
  using Spec = DragonflySpec;

  explicit Dragonfly(const Spec& spec) : spec_(spec) {}

  NamedValues fit(std::uint32_t nodes, std::uint32_t ports) const override;
  void build(const NetworkDescription& description) override;
  std::uint64_t capacity() const override { return std::uint64_t{groups_} * members_ * nodes_per_switch_; }
  Shape shape() const override;
  Layout layout() const override { return {.box = {}, .group = members_}; }
  std::optional<std::uint32_t> virtual_channels(const ActiveRouting& routing) const override {
    return routing.detours() ? 3 : 2;
  }

  template <class Context>
  Hop route(std::uint32_t at, RouteState& state, const Target& target, Context& context) const {
    const std::uint32_t group = at / members_;
    const std::uint32_t target_group = target.at / members_;
    if (state.leg == Leg::undecided) decide(at, state, target, context);
    if (state.leg == Leg::to_intermediate && state.intermediate == group) state.leg = Leg::to_destination;
    if (state.leg == Leg::to_destination && group == target_group)
      return to_member(at, target.at, state, target.node, context);
    const std::uint32_t to = state.leg == Leg::to_intermediate ? state.intermediate : target_group;
    const Hop hop = to_group(at, to, state, target.node, context);
    const bool leaves = hop.port >= local_ports();
    state.gateway_chosen = !leaves;
    if (leaves) ++state.groups_left;
    return hop;
  }

 private:
  std::uint32_t local_ports() const { return (members_ - 1) * local_links_; }
  // Links of a group are numbered; link `number` leaves switch number / global_links_.
  std::uint32_t offset(std::uint32_t group, std::uint32_t to) const {
    return (to + groups_ - group - 1) % groups_;
  }
  std::uint32_t number(std::uint32_t offset, std::uint32_t link) const {
    return link * (groups_ - 1) + offset;
  }
  std::uint32_t first_local_port(std::uint32_t member, std::uint32_t other) const {
    return (other < member ? other : other - 1) * local_links_;
  }

  // A link to another switch of the same group.
  template <class Context>
  Hop to_member(std::uint32_t at, std::uint32_t to, const RouteState& state, std::uint32_t node,
                Context& context) const {
    const std::uint8_t channel = state.groups_left;
    return {choose(routing_, first_local_port(at % members_, to % members_), local_links_, node, state, at,
                   channel, context),
            channel};
  }

  // A link to another group, or to the switch of this group that has it.
  template <class Context>
  Hop to_group(std::uint32_t at, std::uint32_t to, const RouteState& state, std::uint32_t node,
               Context& context) const {
    const std::uint32_t group = at / members_, member = at % members_;
    const std::uint32_t off = offset(group, to);
    const std::uint8_t channel = state.groups_left;
    const auto hop_by = [&](std::uint32_t link) -> Hop {
      const std::uint32_t n = number(off, link);
      const std::uint32_t gateway = n / global_links_;
      if (gateway == member) return {local_ports() + n % global_links_, channel};
      return to_member(at, group * members_ + gateway, state, node, context);
    };
    if (routing_.gateway == Selection::by_destination) return hop_by(node % links_per_pair_);
    if (routing_.gateway == Selection::by_flow) return hop_by(spread(state.flow, group, links_per_pair_));
    if (routing_.gateway == Selection::own) return hop_by(own_link(at, off, state, node, context, hop_by));
    // Of the links here, or of all where the packet may still go to another switch of the group, the least
    // loaded, or the first from a random one on.
    Hop best{nowhere, channel};
    Time least = never;
    const std::uint32_t start = context.random(links_per_pair_);
    for (std::uint32_t i = 0; i < links_per_pair_; ++i) {
      const std::uint32_t link = start + i < links_per_pair_ ? start + i : start + i - links_per_pair_;
      const bool here = number(off, link) / global_links_ == member;
      if (state.gateway_chosen && !here) continue;
      const Hop hop = hop_by(link);
      // A link of another switch is one hop further.
      const bool by_load = routing_.gateway == Selection::least_loaded;
      const Time load = by_load ? (context.load(hop.port, channel) + 1) * (here ? 1 : 2) : 1;
      if (load < least) {
        least = load;
        best = hop;
      }
    }
    return best;
  }

  // The link to another group that the algorithm selects, of those here or of all as above.
  template <class Context, class HopBy>
  std::uint32_t own_link(std::uint32_t at, std::uint32_t off, const RouteState& state, std::uint32_t node,
                         Context& context, HopBy& hop_by) const {
    std::vector<std::uint32_t> links;
    for (std::uint32_t link = 0; link < links_per_pair_; ++link)
      if (!state.gateway_chosen || number(off, link) / global_links_ == at % members_) links.push_back(link);
    const auto load = [&](std::uint32_t i) { return context.load(hop_by(links[i]).port, state.groups_left); };
    return links[select_own(routing_, static_cast<std::uint32_t>(links.size()), node, state, at, context,
                            load)];
  }

  // At its first switch a packet chooses whether to go by way of a third group.
  template <class Context>
  void decide(std::uint32_t at, RouteState& state, const Target& target, Context& context) const {
    state.leg = Leg::to_destination;
    const std::uint32_t group = at / members_, target_group = target.at / members_;
    if (!routing_.detours()) return;
    if (group == target_group || groups_ < 3) return;
    std::uint32_t detour = context.random(groups_ - 2);
    if (detour >= std::min(group, target_group)) ++detour;
    if (detour >= std::max(group, target_group)) ++detour;
    if (routing_.detour == Detour::if_faster) {
      const Hop straight = to_group(at, target_group, state, target.node, context);
      const Hop aside = to_group(at, detour, state, target.node, context);
      const Time length = straight.port >= local_ports() ? 2 : 3;
      const Time longer = aside.port >= local_ports() ? 4 : 5;
      if (!context.prefers_detour(context.load(straight.port, 0), length, context.load(aside.port, 0),
                                  longer))
        return;
    }
    state.intermediate = detour;
    state.leg = Leg::to_intermediate;
  }

  const Spec spec_;
  std::uint32_t groups_ = 0, members_ = 0, global_links_ = 0, local_links_ = 1, links_per_pair_ = 0;
  std::uint32_t nodes_ = 0, nodes_per_switch_ = 1;
  Time latency_ = 0, global_latency_ = 0;
  double bandwidth_ = 0, global_bandwidth_ = 0;
};

NamedValues Dragonfly::fit(std::uint32_t nodes, std::uint32_t ports) const {
  // Canonical: as many nodes as global links at each switch, and twice as many switches in a group.
  std::int64_t half = 1;
  while (2 * half * half * (2 * half * half + 1) < nodes) ++half;
  if (half >= ports)
    throw SimulationError("no dragonfly of switches with " + std::to_string(ports) + " ports has " +
                          std::to_string(nodes) + " nodes");
  const std::int64_t per_group = 2 * half * half;
  const std::int64_t groups = (nodes + per_group - 1) / per_group;
  return {{"nodes_per_switch", half},
          {"group_switches", 2 * half},
          {"global_links", half},
          {"groups", std::min(std::max<std::int64_t>(groups, 2), per_group + 1)},
          {"links", std::string("1")}};
}

void Dragonfly::build(const NetworkDescription& description) {
  const LinkSpec& link = description.spec.link;
  members_ = static_cast<std::uint32_t>(spec_.group_switches);
  global_links_ = static_cast<std::uint32_t>(spec_.global_links);
  nodes_per_switch_ = static_cast<std::uint32_t>(spec_.nodes_per_switch);
  latency_ = link.latency;
  global_latency_ = link.global_latency > 0 ? link.global_latency : link.latency;
  bandwidth_ = static_cast<double>(link.bandwidth);
  global_bandwidth_ = link.global_bandwidth > 0 ? static_cast<double>(link.global_bandwidth) : bandwidth_;
  if (members_ == 0)
    throw SimulationError("a dragonfly needs topology.group_switches, the switches of a group");
  const auto local = parse_numbers(spec_.links, 'x', "topology.links", "1");
  if (local.size() != 1 || local[0] > 64)
    throw SimulationError(
        "topology.links of a dragonfly is one number up to 64: the links between two switches of a group");
  local_links_ = local[0];
  const std::uint32_t per_group = members_ * global_links_;
  groups_ = spec_.groups > 0 ? static_cast<std::uint32_t>(spec_.groups) : per_group + 1;
  if (groups_ > 1) links_per_pair_ = per_group / (groups_ - 1);
  if (groups_ > 1 && links_per_pair_ == 0) {
    throw SimulationError("a dragonfly of " + std::to_string(groups_) +
                          " groups needs a link from each to all others, but " + std::to_string(members_) +
                          " switches with topology.global_links = " + std::to_string(global_links_) +
                          " have only " + std::to_string(per_group));
  }
  const std::uint32_t switches = bounded_product({groups_, members_}, "the number of switches");
  check_size(std::uint64_t{switches} * (std::uint64_t{local_ports()} + global_links_), "channels");
  nodes_ = nodes_of(description, bounded_product({switches, nodes_per_switch_}, "the number of nodes"),
                    "the dragonfly");
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

const Registered<Dragonfly> registered{"dragonfly",
                                       "Groups of switches with links between every two groups."};

}  // namespace

}  // namespace manyscale::network
