// SPDX-License-Identifier: Apache-2.0
// Torus and mesh: grids of any number of dimensions, with one or several links per direction. Packets correct
// one dimension after the other. In a torus two virtual channels per leg break the cycle: a packet is on the
// lower one until it has taken the wrap-around link. Adaptive packets have one more, on which they correct
// dimensions in any order; they fall back on the others when it is full.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "network/shape_text.hpp"
#include "network/topology_model.hpp"

namespace manyscale::network {

namespace {

struct GridSpec {
  std::string shape = "24x24x4";
  std::int64_t nodes_per_switch = 1;
  std::string links = "1";
};

}  // namespace

}  // namespace manyscale::network

namespace manyscale {

template <>
struct describe<network::GridSpec> {
  using S = network::GridSpec;
  static constexpr auto fields =
      std::tuple{Field<S, std::string>{"shape", &S::shape, Unit::none, "extents, such as '5x5x4'"},
                 Field<S, std::int64_t>{"nodes_per_switch", &S::nodes_per_switch, Unit::count,
                                        "nodes at each switch", 1, 4096},
                 Field<S, std::string>{"links", &S::links, Unit::none,
                                       "links per direction, one number or one per dimension ('4x4x2')"}};
};

}  // namespace manyscale

namespace manyscale::network {

namespace {

class Grid : public RoutedTopology<Grid> {
 public:
  using Spec = GridSpec;

  NamedValues fit(std::uint32_t nodes, std::uint32_t ports) const override;
  void build(const NetworkDescription& description) override;
  std::uint64_t capacity() const override { return std::uint64_t{switches_} * nodes_per_switch_; }
  Shape shape() const override;
  Layout layout() const override;
  std::optional<std::uint32_t> virtual_channels(const ActiveRouting& routing) const override;
  bool mixes_new_packets() const override { return true; }

  template <class Context>
  Hop route(std::uint32_t at, RouteState& state, const Target& target, Context& context) const {
    if (state.leg == Leg::undecided) decide(at, state, target, context);
    if (state.leg == Leg::to_intermediate && state.intermediate == at) state.leg = Leg::to_destination;
    if (routing_.any_direction) return adaptive(at, state, target.at, context);
    const bool first_leg = state.leg == Leg::to_intermediate;
    const auto base = static_cast<std::uint8_t>(routing_.detours() && !first_leg ? escape_ : 0);
    return in_order(at, state, first_leg ? state.intermediate : target.at, target.node, base, context);
  }

 protected:
  Grid(const Spec& spec, std::string_view name, bool wrap)
      : spec_(spec), name_(name), wrap_(wrap), escape_(wrap ? 2 : 1) {}

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
  template <class Context>
  Hop in_order(std::uint32_t at, const RouteState& state, std::uint32_t to, std::uint32_t node,
               std::uint8_t base, Context& context) const {
    std::size_t d = 0;
    while (coordinate(at, d) == coordinate(to, d)) ++d;
    const Dimension& dimension = dimensions_[d];
    const Direction way = direction(dimension, coordinate(at, d), coordinate(to, d), state.flow);
    const auto channel = static_cast<std::uint8_t>(base + (wrap_ && !way.wraps ? 1 : 0));
    const std::uint32_t first = dimension.first_port + (way.backwards ? dimension.links : 0);
    return {choose(routing_, first, dimension.links, node, state, at, channel, context), channel};
  }

  template <class Context>
  Hop adaptive(std::uint32_t at, const RouteState& state, std::uint32_t to, Context& context) const {
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
        if (!context.room(port, free)) continue;
        const Time load = context.load(port, free);
        if (load < least) {
          least = load;
          best = port;
        }
      }
    }
    if (best != nowhere) return {best, free};
    return in_order(at, state, to, state.destination, 0, context);
  }

  // At its first switch a packet chooses whether to take a detour.
  template <class Context>
  void decide(std::uint32_t at, RouteState& state, const Target& target, Context& context) const {
    state.leg = Leg::to_destination;
    if (!routing_.detours()) return;
    const std::uint32_t detour = context.random(switches_);
    if (detour == at || detour == target.at) return;
    if (routing_.detour == Detour::if_faster) {
      const auto upper = static_cast<std::uint8_t>(escape_);
      const Hop straight = in_order(at, state, target.at, target.node, upper, context);
      const Hop aside = in_order(at, state, detour, target.node, 0, context);
      const auto length = static_cast<Time>(distance(at, target.at));
      const auto longer = static_cast<Time>(distance(at, detour) + distance(detour, target.at));
      if (!context.prefers_detour(context.load(straight.port, straight.virtual_channel), length,
                                  context.load(aside.port, aside.virtual_channel), longer))
        return;
    }
    state.intermediate = detour;
    state.leg = Leg::to_intermediate;
  }

  const Spec spec_;
  const std::string name_;
  const bool wrap_;
  const std::uint32_t escape_;  // virtual channels of one leg
  std::uint32_t switches_ = 0;
  std::uint32_t nodes_ = 0;
  std::uint32_t nodes_per_switch_ = 1;
  Time latency_ = 0;
  double bandwidth_ = 0;
  std::vector<Dimension> dimensions_;
  std::vector<std::uint16_t> coordinates_;
};

NamedValues Grid::fit(std::uint32_t nodes, std::uint32_t) const {
  std::array<std::uint64_t, 3> sides{1, 1, 1};
  while (sides[0] * sides[1] * sides[2] < nodes) ++*std::ranges::min_element(sides);
  std::ranges::sort(sides, std::greater{});
  const std::string shape =
      std::to_string(sides[0]) + "x" + std::to_string(sides[1]) + "x" + std::to_string(sides[2]);
  return {{"shape", shape}, {"nodes_per_switch", std::int64_t{1}}, {"links", std::string("1")}};
}

void Grid::build(const NetworkDescription& description) {
  nodes_per_switch_ = static_cast<std::uint32_t>(spec_.nodes_per_switch);
  latency_ = description.spec.link.latency;
  bandwidth_ = static_cast<double>(description.spec.link.bandwidth);
  const std::string what = "topology.shape of a " + name_;
  const auto sizes = parse_numbers(spec_.shape, 'x', what, "5x5x4");
  auto links = parse_numbers(spec_.links, 'x', "topology.links", "4 or 4x4x2");
  if (links.size() == 1) links.resize(sizes.size(), links[0]);
  if (links.size() != sizes.size()) {
    throw SimulationError("topology.links is '" + spec_.links + "', but the " + name_ + " " + spec_.shape +
                          " has " + std::to_string(sizes.size()) + " dimensions");
  }
  switches_ = bounded_product(sizes, "the number of switches");
  nodes_ = nodes_of(description, bounded_product({switches_, nodes_per_switch_}, "the number of nodes"),
                    "the " + name_);
  std::uint32_t stride = 1, port = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 65535 || links[d] > 64)
      throw SimulationError(what +
                            " has a dimension of more than 65535, or more than 64 links per direction");
    dimensions_.push_back({sizes[d], stride, links[d], port});
    stride *= sizes[d];
    if (sizes[d] > 1) port += 2 * links[d];
  }
  check_size(std::uint64_t{switches_} * port, "channels");
  coordinates_.reserve(std::size_t{switches_} * dimensions_.size());
  for (std::uint32_t at = 0; at < switches_; ++at)
    for (const Dimension& dimension : dimensions_)
      coordinates_.push_back(static_cast<std::uint16_t>(at / dimension.stride % dimension.size));
}

std::optional<std::uint32_t> Grid::virtual_channels(const ActiveRouting& routing) const {
  if (routing.detours()) return 2 * escape_;
  return routing.any_direction ? escape_ + 1 : escape_;
}

Layout Grid::layout() const {
  Layout layout;
  for (const Dimension& dimension : dimensions_) layout.box.push_back(dimension.size);
  return layout;
}

Shape Grid::shape() const {
  Shape shape;
  shape.outlets.resize(switches_);
  shape.domains = std::min(switches_, 8u);
  for (std::uint32_t at = 0; at < switches_; ++at) {
    shape.domain.push_back(static_cast<std::uint32_t>(std::uint64_t{at} * shape.domains / switches_));
    for (std::size_t d = 0; d < dimensions_.size(); ++d) {
      const Dimension& dimension = dimensions_[d];
      if (dimension.size == 1) continue;
      const std::uint32_t here = coordinate(at, d);
      for (const bool backwards : {false, true}) {
        const bool rim = here == (backwards ? 0 : dimension.size - 1);
        const std::uint32_t there =
            backwards ? (here + dimension.size - 1) % dimension.size : (here + 1) % dimension.size;
        Outlet outlet{at + (there - here) * dimension.stride, latency_, bandwidth_};
        if (rim && !wrap_) outlet.to = nowhere;
        for (std::uint32_t link = 0; link < dimension.links; ++link) shape.outlets[at].push_back(outlet);
      }
    }
  }
  for (std::uint32_t node = 0; node < nodes_; ++node) shape.node_switch.push_back(node / nodes_per_switch_);
  return shape;
}

class Torus final : public Grid {
 public:
  explicit Torus(const Spec& spec) : Grid(spec, "torus", true) {}
};
class Mesh final : public Grid {
 public:
  explicit Mesh(const Spec& spec) : Grid(spec, "mesh", false) {}
};

const Registered<Torus> torus{"torus", "A grid of switches with wrap-around links."};
const Registered<Mesh> mesh{"mesh", "A grid of switches without wrap-around links."};

}  // namespace

}  // namespace manyscale::network
