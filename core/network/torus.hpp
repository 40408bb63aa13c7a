// SPDX-License-Identifier: Apache-2.0
// Tori and meshes of any number of dimensions, with one or several links per direction. Packets correct one
// dimension after the other. In a torus two virtual channels per leg break the ring: a packet is on the lower
// one while it has the wrap-around still before it. Adaptive packets have one more, on which they correct
// dimensions in any order, and fall back on the others when it is full.
#pragma once
#include <cstdint>
#include <vector>

#include "network/route.hpp"

namespace manyscale::network {

class Torus {
 public:
  explicit Torus(const NetworkSpec& spec);

  Shape shape() const;
  std::uint32_t virtual_channels(Algorithm algorithm) const;

  template <class Outlook>
  Hop next(std::uint32_t at, RouteState& state, const Target& target, Outlook& outlook) const {
    if (state.leg == Leg::undecided) decide(at, state, target, outlook);
    if (state.leg == Leg::to_intermediate && state.intermediate == at) state.leg = Leg::to_destination;
    if (algorithm_ == Algorithm::adaptive) return adaptive(at, state, target.at, outlook);
    const bool first_leg = state.leg == Leg::to_intermediate;
    const bool two_legs = algorithm_ == Algorithm::valiant || algorithm_ == Algorithm::ugal;
    const auto base = static_cast<std::uint8_t>(two_legs && !first_leg ? escape_ : 0);
    return in_order(at, state, first_leg ? state.intermediate : target.at, target.node, base, outlook);
  }

 private:
  struct Dimension {
    std::uint32_t size = 1, stride = 1, links = 1;
    std::uint32_t first_port = 0;  // links forwards, then as many backwards
  };
  struct Direction {
    bool backwards = false;
    bool wraps = false;  // the wrap-around is still to come
    bool tie = false;    // both directions are as short
  };

  std::uint32_t coordinate(std::uint32_t at, std::size_t dimension) const {
    return coordinates_[at * dimensions_.size() + dimension];
  }

  // Which way along a dimension; a tie is decided by the flow, so that both ways are used.
  Direction direction(const Dimension& dimension, std::uint32_t from, std::uint32_t to,
                      std::uint16_t flow) const {
    if (!wrap_) return {to < from, false, false};
    const std::uint32_t forwards = to > from ? to - from : to + dimension.size - from;
    const std::uint32_t backwards = dimension.size - forwards;
    const bool tie = forwards == backwards;
    const bool back = tie ? (flow & 1) != 0 : backwards < forwards;
    return {back, back ? to > from : to < from, tie};
  }

  std::uint32_t distance(std::uint32_t from, std::uint32_t to) const {
    std::uint32_t sum = 0;
    for (std::size_t d = 0; d < dimensions_.size(); ++d) {
      const std::uint32_t a = coordinate(from, d), b = coordinate(to, d);
      const std::uint32_t apart = a > b ? a - b : b - a;
      sum += wrap_ ? std::min(apart, dimensions_[d].size - apart) : apart;
    }
    return sum;
  }

  // The next hop when dimensions are corrected in their order.
  template <class Outlook>
  Hop in_order(std::uint32_t at, const RouteState& state, std::uint32_t to, std::uint32_t node,
               std::uint8_t base, Outlook& outlook) const {
    std::size_t d = 0;
    while (coordinate(at, d) == coordinate(to, d)) ++d;
    const Dimension& dimension = dimensions_[d];
    const Direction way = direction(dimension, coordinate(at, d), coordinate(to, d), state.flow);
    const auto channel = static_cast<std::uint8_t>(base + (wrap_ && !way.wraps ? 1 : 0));
    const std::uint32_t first = dimension.first_port + (way.backwards ? dimension.links : 0);
    return {choose(algorithm_, first, dimension.links, node, state, at, channel, outlook), channel};
  }

  template <class Outlook>
  Hop adaptive(std::uint32_t at, const RouteState& state, std::uint32_t to, Outlook& outlook) const {
    const auto free = static_cast<std::uint8_t>(escape_);
    std::uint32_t best = nowhere;
    Time least = never;
    for (std::size_t d = 0; d < dimensions_.size(); ++d) {
      if (coordinate(at, d) == coordinate(to, d)) continue;
      const Dimension& dimension = dimensions_[d];
      const Direction way = direction(dimension, coordinate(at, d), coordinate(to, d), state.flow);
      const std::uint32_t first = dimension.first_port + (way.backwards && !way.tie ? dimension.links : 0);
      const std::uint32_t count = way.tie ? 2 * dimension.links : dimension.links;
      for (std::uint32_t port = first; port < first + count; ++port) {
        if (!outlook.room(port, free)) continue;
        const Time load = outlook.load(port, free);
        if (load < least) {
          least = load;
          best = port;
        }
      }
    }
    if (best != nowhere) return {best, free};
    return in_order(at, state, to, state.destination, 0, outlook);
  }

  // At its first switch a packet chooses whether to take a detour.
  template <class Outlook>
  void decide(std::uint32_t at, RouteState& state, const Target& target, Outlook& outlook) const {
    state.leg = Leg::to_destination;
    if (algorithm_ != Algorithm::valiant && algorithm_ != Algorithm::ugal) return;
    const std::uint32_t detour = outlook.random(switches_);
    if (detour == at || detour == target.at) return;
    if (algorithm_ == Algorithm::ugal) {
      const auto upper = static_cast<std::uint8_t>(escape_);
      const Hop straight = in_order(at, state, target.at, target.node, upper, outlook);
      const Hop aside = in_order(at, state, detour, target.node, 0, outlook);
      const auto length = static_cast<Time>(distance(at, target.at));
      const auto longer = static_cast<Time>(distance(at, detour) + distance(detour, target.at));
      if (!outlook.prefers_detour(outlook.load(straight.port, straight.virtual_channel), length,
                                  outlook.load(aside.port, aside.virtual_channel), longer))
        return;
    }
    state.intermediate = detour;
    state.leg = Leg::to_intermediate;
  }

  Algorithm algorithm_;
  bool wrap_;
  std::uint32_t escape_;  // virtual channels of one leg
  std::uint32_t switches_ = 0;
  std::uint32_t nodes_ = 0;
  std::uint32_t nodes_per_switch_ = 1;
  Time latency_;
  double bandwidth_;
  std::vector<Dimension> dimensions_;
  std::vector<std::uint16_t> coordinates_;
};

}  // namespace manyscale::network
