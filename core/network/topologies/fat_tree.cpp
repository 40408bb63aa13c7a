// SPDX-License-Identifier: Apache-2.0
// Fat tree of any number of levels, tapered or not, and its smallest case, a single switch. A switch of level
// l belongs to a subtree, and within it there are `width(l)` such switches; link p upwards of the b-th of
// them leads to the (b * up + p)-th of the next level, modulo the width there. Packets go up as far as they
// must and then down, so that one virtual channel is enough.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "network/shape_text.hpp"
#include "network/topology_model.hpp"

namespace manyscale::network {

namespace {

struct FatTreeSpec {
  std::string shape = "24,24:24,24:4";
  std::int64_t roots = 0;
};

}  // namespace

}  // namespace manyscale::network

namespace manyscale {

template <>
struct describe<network::FatTreeSpec> {
  using S = network::FatTreeSpec;
  static constexpr auto fields = std::tuple{
      Field<S, std::string>{
          "shape", &S::shape, Unit::none,
          "links down and up per switch of each level from the leaves, and links down of the roots: "
          "'24,24:24,24:4'"},
      Field<S, std::int64_t>{
          "roots", &S::roots, Unit::count,
          "switches of the highest level; 0: one for each link that leads there from a subtree", 0, 1e6}};
};

}  // namespace manyscale

namespace manyscale::network {

namespace {

class FatTree : public RoutedTopology<FatTree> {
 public:
  using Spec = FatTreeSpec;

  explicit FatTree(const Spec& spec) : spec_(spec) {}

  NamedValues fit(std::uint32_t nodes, std::uint32_t ports) const override;
  void build(const NetworkDescription& description) override;
  std::uint64_t capacity() const override { return capacity_; }
  Shape shape() const override;
  std::optional<std::uint32_t> virtual_channels(const ActiveRouting&) const override { return 1; }

  template <class Context>
  Hop route(std::uint32_t at, RouteState& state, const Target& target, Context& context) const {
    const Position position = positions_[at];
    const Level& level = levels_[position.level];
    const std::uint32_t node = target.node;
    if (node / level.subtree_nodes != position.subtree) {
      return {choose(routing_, level.down_ports, level.up, node / level.up_stride, state, at, 0, context), 0};
    }
    // The links down to one child lead to different switches of its subtree. By destination, the one is taken
    // that a packet from there would have come up by.
    const Level& below = levels_[position.level - 1];
    const std::uint32_t child = node / below.subtree_nodes % level.down;
    const std::uint32_t ways = level.ways_down;
    std::uint32_t by_destination = 0;
    if (ways > 1) {
      const std::uint32_t spare = std::max(1u, ways / below.width);
      by_destination = static_cast<std::uint32_t>(std::uint64_t{node % below.width} * ways / below.width) +
                       node / below.width % spare;
    }
    return {choose(routing_, child * ways, ways, by_destination, state, at, 0, context), 0};
  }

 protected:
  void set_shape(std::string shape) { spec_.shape = std::move(shape); }

 private:
  void parse_levels();
  std::uint64_t number_switches();

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
  struct Position {
    std::uint32_t level = 0, subtree = 0, index = 0;
  };

  Spec spec_;
  Time latency_ = 0;
  double bandwidth_ = 0;
  std::uint64_t capacity_ = 0;
  std::uint32_t nodes_ = 0;
  std::vector<Level> levels_;
  std::vector<Position> positions_;
};

NamedValues FatTree::fit(std::uint32_t nodes, std::uint32_t ports) const {
  // From the leaves up, half of the ports down and half up, and as many levels as are needed.
  const std::uint64_t half = ports / 2;
  std::uint64_t below = half;
  const std::string level = std::to_string(half) + "," + std::to_string(half) + ":";
  std::string shape = level;
  for (; below * ports < nodes; below *= half) shape += level;
  return {{"shape", shape + std::to_string((nodes + below - 1) / below)}, {"roots", std::int64_t{0}}};
}

// Reads the levels from the text of the shape.
void FatTree::parse_levels() {
  constexpr std::string_view what = "topology.shape of a fat tree";
  constexpr std::string_view example = "24,24:24,24:4";
  std::string_view text = spec_.shape;
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    const auto pair = parse_numbers(text.substr(begin, end - begin), ',', what, example);
    const bool root = end == text.size();
    if (pair.size() != (root ? 1u : 2u)) {
      throw SimulationError(
          std::string(what) + " is '" + spec_.shape +
          "'; it takes links down and up per switch for each level, and for the roots links down "
          "only, such as '" +
          std::string(example) + "'");
    }
    Level level;
    level.down = pair[0];
    level.up = root ? 0 : pair[1];
    levels_.push_back(level);
    if (root) break;
    begin = end + 1;
  }
}

// Computes the switches of each level; returns how many there are in all.
std::uint64_t FatTree::number_switches() {
  std::uint64_t switches = 0, channels = 0;
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    Level& level = levels_[l];
    level.subtree_nodes = level.down * (l > 0 ? levels_[l - 1].subtree_nodes : 1);
    level.subtrees = static_cast<std::uint32_t>(capacity_) / level.subtree_nodes;
    if (l > 0) {
      const Level& below = levels_[l - 1];
      const std::uint64_t links = std::uint64_t{below.width} * below.up;
      level.up_stride = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(std::uint64_t{below.up_stride} * below.up, std::uint64_t{1} << 31));
      const bool root = l + 1 == levels_.size();
      const std::uint64_t width = root && spec_.roots > 0 ? static_cast<std::uint64_t>(spec_.roots) : links;
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
  return switches;
}

void FatTree::build(const NetworkDescription& description) {
  latency_ = description.spec.link.latency;
  bandwidth_ = static_cast<double>(description.spec.link.bandwidth);
  parse_levels();
  std::vector<std::uint32_t> downs;
  for (const Level& level : levels_) downs.push_back(level.down);
  const std::uint32_t capacity = bounded_product(downs, "the number of nodes of the fat tree");
  capacity_ = capacity;
  nodes_ = nodes_of(description, capacity, "the fat tree " + spec_.shape);
  const std::uint64_t switches = number_switches();
  positions_.resize(switches);
  for (std::uint32_t l = 0; l < levels_.size(); ++l) {
    const Level& level = levels_[l];
    for (std::uint32_t i = 0; i < level.subtrees * level.width; ++i)
      positions_[level.first + i] = {l, i / level.width, i % level.width};
  }
}

Shape FatTree::shape() const {
  Shape shape;
  shape.outlets.resize(positions_.size());
  shape.domain.resize(positions_.size());
  // Subtrees below the roots stay together; the roots are spread over the domains.
  const Level& root = levels_.back();
  const std::uint32_t pods = levels_.size() > 1 ? root.down : 1;
  shape.domains = std::min(pods, 8u);
  for (std::uint32_t at = 0; at < positions_.size(); ++at) {
    const Position position = positions_[at];
    const Level& level = levels_[position.level];
    auto& outlets = shape.outlets[at];
    if (position.level > 0) {
      const Level& below = levels_[position.level - 1];
      for (std::uint32_t child = 0; child < level.down; ++child) {
        for (std::uint32_t way = 0; way < level.ways_down; ++way) {
          const std::uint32_t index = (position.index + way * level.width) / below.up;
          const std::uint32_t subtree = position.subtree * level.down + child;
          outlets.push_back({below.first + subtree * below.width + index, latency_, bandwidth_});
        }
      }
    }
    if (position.level + 1 < levels_.size()) {
      const Level& above = levels_[position.level + 1];
      for (std::uint32_t p = 0; p < level.up; ++p) {
        const std::uint32_t index = (position.index * level.up + p) % above.width;
        outlets.push_back(
            {above.first + position.subtree / above.down * above.width + index, latency_, bandwidth_});
      }
      const std::uint32_t pod = position.subtree / (level.subtrees / pods);
      shape.domain[at] = pod * shape.domains / pods;
    } else {
      shape.domain[at] =
          static_cast<std::uint32_t>(std::uint64_t{position.index} * shape.domains / level.width);
    }
  }
  for (std::uint32_t node = 0; node < nodes_; ++node)
    shape.node_switch.push_back(levels_[0].first + node / levels_[0].down);
  return shape;
}

// All nodes at one switch: a fat tree of one level.
class SingleSwitch final : public FatTree {
 public:
  struct Spec {};  // it has no parameters

  explicit SingleSwitch(const NamedValues&) : FatTree(FatTreeSpec{}) {}

  NamedValues fit(std::uint32_t, std::uint32_t) const override { return {}; }
  void build(const NetworkDescription& description) override {
    const std::int64_t nodes = description.spec.topology.nodes;
    if (nodes == 0) throw SimulationError("a topology of kind 'switch' needs topology.nodes");
    set_shape(std::to_string(nodes));
    FatTree::build(description);
  }
  bool fixes_nodes() const override { return false; }
};

const Registered<FatTree> fat_tree{"fat-tree", "A fat tree of any number of levels, tapered or not."};
const Registered<SingleSwitch> single_switch{"switch", "All nodes at one switch."};

}  // namespace

}  // namespace manyscale::network
