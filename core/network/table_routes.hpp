// SPDX-License-Identifier: Apache-2.0
// Shortest ways through any graph of switches, from a table of distances to those that have nodes. A packet's
// virtual channel is the number of hops it has made, so that no circle can form; there are as many as the
// longest way has hops. Also used for regular topologies with links that are down.
#pragma once
#include <cstdint>
#include <vector>

#include "network/route.hpp"

namespace manyscale::network {

class TableRoutes {
 public:
  TableRoutes(const Topology& topology, const ActiveRouting& routing);

  std::uint32_t virtual_channels() const;
  bool reachable(std::uint32_t from, std::uint32_t to) const { return distance(from, to) != unreachable; }

  // Switches are those of all rails here.
  template <class Context>
  Hop next(std::uint32_t at, RouteState& state, const Target& target, Context& context) const {
    const bool first_hop = state.leg == Leg::undecided;
    if (first_hop) decide(at, state, target, context);
    if (state.leg == Leg::to_intermediate && state.intermediate == at) state.leg = Leg::to_destination;
    const std::uint32_t to = state.leg == Leg::to_intermediate ? state.intermediate : target.at;
    const auto channel = static_cast<std::uint8_t>(first_hop ? 0 : state.virtual_channel + 1);
    return {toward(at, to, state, target.node, channel, context), channel};
  }

 private:
  static constexpr std::uint8_t unreachable = 255;

  std::uint8_t distance(std::uint32_t from, std::uint32_t to) const {
    return distances_[std::size_t{row_[to]} * row_.size() + from];
  }

  // The port of a shortest way.
  template <class Context>
  std::uint32_t toward(std::uint32_t at, std::uint32_t to, const RouteState& state, std::uint32_t node,
                       std::uint8_t channel, Context& context) const {
    const std::uint8_t closer = static_cast<std::uint8_t>(distance(at, to) - 1);
    const auto begin = first_neighbour_[at], end = first_neighbour_[at + 1];
    std::uint32_t count = 0;
    for (auto i = begin; i < end; ++i) count += distance(neighbours_[i].at, to) == closer;
    const std::uint32_t chosen = first_choice(at, to, count, state, node, channel, context);
    const bool by_load = routing_.selection == Selection::least_loaded;
    std::uint32_t best = nowhere, seen = 0;
    Time least = never;
    for (auto i = begin; i < end; ++i) {
      if (distance(neighbours_[i].at, to) != closer) continue;
      const bool first = seen++ == chosen;
      if (!by_load && !first) continue;
      const Time load = by_load ? context.load(neighbours_[i].port, channel) : 0;
      if (load < least || (load == least && first)) {
        least = load;
        best = neighbours_[i].port;
      }
    }
    return best;
  }

  // One of the neighbours that are closer, by index: the one that is taken, or of the least loaded the one
  // that is preferred.
  template <class Context>
  std::uint32_t first_choice(std::uint32_t at, std::uint32_t to, std::uint32_t count, const RouteState& state,
                             std::uint32_t node, std::uint8_t channel, Context& context) const {
    switch (routing_.selection) {
      case Selection::by_destination:
        return node % count;
      case Selection::by_flow:
        return spread(state.flow, at, count);
      case Selection::own:
        return select_own(routing_, count, node, state, at, context, [&](std::uint32_t index) {
          auto i = first_neighbour_[at];
          while (distance(neighbours_[i].at, to) + 1 != distance(at, to) || index-- > 0) ++i;
          return context.load(neighbours_[i].port, channel);
        });
      case Selection::random:
      case Selection::least_loaded:
        break;
    }
    return context.random(count);
  }

  template <class Context>
  void decide(std::uint32_t at, RouteState& state, const Target& target, Context& context) const {
    state.leg = Leg::to_destination;
    if (!routing_.detours()) return;
    const std::uint32_t detour = with_nodes_[context.random(static_cast<std::uint32_t>(with_nodes_.size()))];
    if (detour == at || detour == target.at || !reachable(at, detour)) return;
    if (routing_.detour == Detour::if_faster) {
      const Time straight = context.load(toward(at, target.at, state, target.node, 0, context), 0);
      const Time aside = context.load(toward(at, detour, state, target.node, 0, context), 0);
      if (!context.prefers_detour(straight, distance(at, target.at), aside,
                                  distance(at, detour) + distance(detour, target.at)))
        return;
    }
    state.intermediate = detour;
    state.leg = Leg::to_intermediate;
  }

  struct Neighbour {
    std::uint32_t at = 0, port = 0;
  };

  ActiveRouting routing_;
  std::uint8_t longest_ = 0;
  std::vector<std::uint32_t> row_;         // per switch: its row in the table; nowhere if it has no nodes
  std::vector<std::uint32_t> with_nodes_;  // switches that have a row
  std::vector<std::uint8_t> distances_;
  std::vector<std::uint32_t> first_neighbour_;
  std::vector<Neighbour> neighbours_;
};

}  // namespace manyscale::network
