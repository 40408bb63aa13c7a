// SPDX-License-Identifier: Apache-2.0
// Fat trees of any number of levels, tapered or not. A switch of level l belongs to a subtree, and within it
// there are `width(l)` such switches; link p upwards of the b-th of them leads to the (b * up + p)-th of the
// next level, modulo the width there. Packets go up as far as they must and then down, so that one virtual
// channel is enough.
#pragma once
#include <cstdint>
#include <vector>

#include "network/route.hpp"

namespace manyscale::network {

class FatTree {
 public:
  FatTree(const NetworkSpec& spec);

  Shape shape() const;
  static constexpr std::uint32_t virtual_channels(Algorithm) { return 1; }

  template <class Outlook>
  Hop next(std::uint32_t at, RouteState& state, const Target& target, Outlook& outlook) const {
    const Place place = places_[at];
    const Level& level = levels_[place.level];
    const std::uint32_t node = target.node;
    if (node / level.subtree_nodes != place.subtree) {
      return {choose(algorithm_, level.down_ports, level.up, node / level.up_stride, state, at, 0, outlook),
              0};
    }
    // The links down to one child lead to different switches of its subtree. By destination, the one is taken
    // that a packet from there would have come up by.
    const Level& below = levels_[place.level - 1];
    const std::uint32_t child = node / below.subtree_nodes % level.down;
    const std::uint32_t ways = level.ways_down;
    std::uint32_t by_destination = 0;
    if (ways > 1) {
      const std::uint32_t spare = std::max(1u, ways / below.width);
      by_destination = static_cast<std::uint32_t>(std::uint64_t{node % below.width} * ways / below.width) +
                       node / below.width % spare;
    }
    return {choose(algorithm_, child * ways, ways, by_destination, state, at, 0, outlook), 0};
  }

 private:
  struct Level {
    std::uint32_t down = 0, up = 0;   // children (nodes for leaves) and links up per switch
    std::uint32_t subtree_nodes = 1;  // nodes below a switch
    std::uint32_t subtrees = 1;       // of this level in all
    std::uint32_t width = 1;          // switches of this level in one subtree
    std::uint32_t first = 0;          // number of the first switch
    std::uint32_t ways_down = 1;      // links from a switch to each child's subtree
    std::uint32_t down_ports = 0;     // ports to switches below come first; of leaves none
    std::uint32_t up_stride = 1;      // product of `up` below
  };
  struct Place {
    std::uint32_t level = 0, subtree = 0, index = 0;
  };

  Algorithm algorithm_;
  Time latency_;
  double bandwidth_;
  std::uint32_t nodes_ = 0;
  std::vector<Level> levels_;
  std::vector<Place> places_;
};

}  // namespace manyscale::network
