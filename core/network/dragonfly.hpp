// SPDX-License-Identifier: Apache-2.0
// Dragonflies: groups of switches that are all linked to each other, and links between every two groups. The
// links of a group to others are dealt out in turn over the other groups, so that each switch reaches as many
// of them as it can. A packet takes at most one link within a group, one to the next group, and so on; its
// virtual channel is the number of groups it has left, so that no circle can form.
#pragma once
#include <cstdint>

#include "network/route.hpp"

namespace manyscale::network {

class Dragonfly {
 public:
  explicit Dragonfly(const NetworkSpec& spec);

  Shape shape() const;
  static constexpr std::uint32_t virtual_channels(Algorithm algorithm) {
    return algorithm == Algorithm::valiant || algorithm == Algorithm::ugal ? 3 : 2;
  }

  template <class Outlook>
  Hop next(std::uint32_t at, RouteState& state, const Target& target, Outlook& outlook) const {
    const std::uint32_t group = at / members_;
    const std::uint32_t target_group = target.at / members_;
    if (state.leg == Leg::undecided) decide(at, state, target, outlook);
    if (state.leg == Leg::to_intermediate && state.intermediate == group) state.leg = Leg::to_destination;
    if (state.leg == Leg::to_destination && group == target_group)
      return to_member(at, target.at, state, target.node, outlook);
    const std::uint32_t to = state.leg == Leg::to_intermediate ? state.intermediate : target_group;
    const Hop hop = to_group(at, to, state, target.node, outlook);
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
  template <class Outlook>
  Hop to_member(std::uint32_t at, std::uint32_t to, const RouteState& state, std::uint32_t node,
                Outlook& outlook) const {
    const std::uint8_t channel = state.groups_left;
    return {choose(algorithm_, first_local_port(at % members_, to % members_), local_links_, node, state, at,
                   channel, outlook),
            channel};
  }

  // A link to another group, or to the switch of this group that has it.
  template <class Outlook>
  Hop to_group(std::uint32_t at, std::uint32_t to, const RouteState& state, std::uint32_t node,
               Outlook& outlook) const {
    const std::uint32_t group = at / members_, member = at % members_;
    const std::uint32_t off = offset(group, to);
    const std::uint8_t channel = state.groups_left;
    const auto hop_by = [&](std::uint32_t link) -> Hop {
      const std::uint32_t n = number(off, link);
      const std::uint32_t gateway = n / global_links_;
      if (gateway == member) return {local_ports() + n % global_links_, channel};
      return to_member(at, group * members_ + gateway, state, node, outlook);
    };
    if (algorithm_ == Algorithm::deterministic) return hop_by(node % links_per_pair_);
    if (algorithm_ == Algorithm::ecmp) return hop_by(spread(state.flow, group, links_per_pair_));
    // Of the links here, or of all where the packet may still go to another switch of the group, the least
    // loaded.
    Hop best{nowhere, channel};
    Time least = never;
    const std::uint32_t start = outlook.random(links_per_pair_);
    for (std::uint32_t i = 0; i < links_per_pair_; ++i) {
      const std::uint32_t link = start + i < links_per_pair_ ? start + i : start + i - links_per_pair_;
      const bool here = number(off, link) / global_links_ == member;
      if (state.gateway_chosen && !here) continue;
      const Hop hop = hop_by(link);
      // A link of another switch is one hop further.
      const Time load = (outlook.load(hop.port, channel) + 1) * (here ? 1 : 2);
      if (load < least) {
        least = load;
        best = hop;
      }
    }
    return best;
  }

  // At its first switch a packet chooses whether to go by way of a third group.
  template <class Outlook>
  void decide(std::uint32_t at, RouteState& state, const Target& target, Outlook& outlook) const {
    state.leg = Leg::to_destination;
    const std::uint32_t group = at / members_, target_group = target.at / members_;
    if (algorithm_ != Algorithm::valiant && algorithm_ != Algorithm::ugal) return;
    if (group == target_group || groups_ < 3) return;
    std::uint32_t detour = outlook.random(groups_ - 2);
    if (detour >= std::min(group, target_group)) ++detour;
    if (detour >= std::max(group, target_group)) ++detour;
    if (algorithm_ == Algorithm::ugal) {
      const Hop straight = to_group(at, target_group, state, target.node, outlook);
      const Hop aside = to_group(at, detour, state, target.node, outlook);
      const Time length = straight.port >= local_ports() ? 2 : 3;
      const Time longer = aside.port >= local_ports() ? 4 : 5;
      if (!outlook.prefers_detour(outlook.load(straight.port, 0), length, outlook.load(aside.port, 0),
                                  longer))
        return;
    }
    state.intermediate = detour;
    state.leg = Leg::to_intermediate;
  }

  Algorithm algorithm_;
  std::uint32_t groups_ = 0, members_ = 0, global_links_ = 0, local_links_ = 1, links_per_pair_ = 0;
  std::uint32_t nodes_ = 0, nodes_per_switch_ = 1;
  Time latency_, global_latency_;
  double bandwidth_, global_bandwidth_;
};

}  // namespace manyscale::network
