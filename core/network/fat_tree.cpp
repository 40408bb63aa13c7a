// SPDX-License-Identifier: Apache-2.0
#include "network/fat_tree.hpp"

#include <algorithm>

#include "network/shape_text.hpp"

namespace manyscale::network {

FatTree::FatTree(const NetworkSpec& spec)
    : algorithm_(parse_algorithm(spec.routing.algorithm)),
      latency_(spec.link.latency),
      bandwidth_(static_cast<double>(spec.link.bandwidth)) {
  constexpr std::string_view what = "topology.shape of a fat tree";
  constexpr std::string_view example = "24,24:24,24:4";
  std::string_view text = spec.topology.shape;
  std::vector<std::uint32_t> downs;
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    const auto pair = parse_numbers(text.substr(begin, end - begin), ',', what, example);
    const bool root = end == text.size();
    if (pair.size() != (root ? 1u : 2u)) {
      throw SimulationError(
          std::string(what) + " is '" + spec.topology.shape +
          "'; it takes links down and up per switch for each level, and for the roots links down "
          "only, such as '" +
          std::string(example) + "'");
    }
    Level level;
    level.down = pair[0];
    level.up = root ? 0 : pair[1];
    levels_.push_back(level);
    downs.push_back(level.down);
    if (root) break;
    begin = end + 1;
  }
  const std::uint32_t places = bounded_product(downs, "the number of nodes of the fat tree");
  nodes_ = spec.topology.nodes > 0 ? static_cast<std::uint32_t>(spec.topology.nodes) : places;
  if (nodes_ > places) {
    throw SimulationError("topology.nodes is " + std::to_string(nodes_) + ", but the fat tree " +
                          spec.topology.shape + " has room for " + std::to_string(places));
  }
  std::uint64_t switches = 0, channels = 0;
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    Level& level = levels_[l];
    level.subtree_nodes = level.down * (l > 0 ? levels_[l - 1].subtree_nodes : 1);
    level.subtrees = places / level.subtree_nodes;
    if (l > 0) {
      const Level& below = levels_[l - 1];
      const std::uint64_t links = std::uint64_t{below.width} * below.up;
      level.up_stride = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(std::uint64_t{below.up_stride} * below.up, std::uint64_t{1} << 31));
      const bool root = l + 1 == levels_.size();
      const std::uint64_t width =
          root && spec.topology.roots > 0 ? static_cast<std::uint64_t>(spec.topology.roots) : links;
      if (links % width != 0) {
        throw SimulationError("topology.roots is " + std::to_string(width) + "; it must divide the " +
                              std::to_string(links) + " links that lead up from each subtree");
      }
      if (width > 10'000'000) throw SimulationError("the fat tree has more than ten million switches");
      level.width = static_cast<std::uint32_t>(width);
      level.ways_down = static_cast<std::uint32_t>(links / width);
      level.down_ports = level.down * level.ways_down;
    }
    level.first = static_cast<std::uint32_t>(switches);
    channels += std::uint64_t{level.subtrees} * level.width * (std::uint64_t{level.down_ports} + level.up);
    check_size(channels, "channels");
    switches += std::uint64_t{level.subtrees} * level.width;
    if (switches > 10'000'000) throw SimulationError("the fat tree has more than ten million switches");
  }
  places_.resize(switches);
  for (std::uint32_t l = 0; l < levels_.size(); ++l) {
    const Level& level = levels_[l];
    for (std::uint32_t i = 0; i < level.subtrees * level.width; ++i)
      places_[level.first + i] = {l, i / level.width, i % level.width};
  }
}

Shape FatTree::shape() const {
  Shape shape;
  shape.outlets.resize(places_.size());
  shape.domain.resize(places_.size());
  // Subtrees below the roots stay together; the roots are dealt out.
  const Level& root = levels_.back();
  const std::uint32_t pods = levels_.size() > 1 ? root.down : 1;
  shape.domains = std::min(pods, 8u);
  for (std::uint32_t at = 0; at < places_.size(); ++at) {
    const Place place = places_[at];
    const Level& level = levels_[place.level];
    auto& outlets = shape.outlets[at];
    if (place.level > 0) {
      const Level& below = levels_[place.level - 1];
      for (std::uint32_t child = 0; child < level.down; ++child) {
        for (std::uint32_t way = 0; way < level.ways_down; ++way) {
          const std::uint32_t index = (place.index + way * level.width) / below.up;
          const std::uint32_t subtree = place.subtree * level.down + child;
          outlets.push_back({below.first + subtree * below.width + index, latency_, bandwidth_});
        }
      }
    }
    if (place.level + 1 < levels_.size()) {
      const Level& above = levels_[place.level + 1];
      for (std::uint32_t p = 0; p < level.up; ++p) {
        const std::uint32_t index = (place.index * level.up + p) % above.width;
        outlets.push_back(
            {above.first + place.subtree / above.down * above.width + index, latency_, bandwidth_});
      }
      const std::uint32_t pod = place.subtree / (level.subtrees / pods);
      shape.domain[at] = pod * shape.domains / pods;
    } else {
      shape.domain[at] = static_cast<std::uint32_t>(std::uint64_t{place.index} * shape.domains / level.width);
    }
  }
  for (std::uint32_t node = 0; node < nodes_; ++node)
    shape.node_switch.push_back(levels_[0].first + node / levels_[0].down);
  return shape;
}

}  // namespace manyscale::network
