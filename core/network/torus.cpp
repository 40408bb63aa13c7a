// SPDX-License-Identifier: Apache-2.0
#include "network/torus.hpp"

#include <algorithm>

#include "network/shape_text.hpp"

namespace manyscale::network {

Torus::Torus(const NetworkSpec& spec)
    : algorithm_(parse_algorithm(spec.routing.algorithm)),
      wrap_(spec.topology.kind == "torus"),
      escape_(wrap_ ? 2 : 1),
      nodes_per_switch_(static_cast<std::uint32_t>(spec.topology.nodes_per_switch)),
      latency_(spec.link.latency),
      bandwidth_(static_cast<double>(spec.link.bandwidth)) {
  const std::string what = "topology.shape of a " + spec.topology.kind;
  const auto sizes = parse_numbers(spec.topology.shape, 'x', what, "5x5x4");
  auto links = parse_numbers(spec.topology.links, 'x', "topology.links", "4 or 4x4x2");
  if (links.size() == 1) links.resize(sizes.size(), links[0]);
  if (links.size() != sizes.size()) {
    throw SimulationError("topology.links is '" + spec.topology.links + "', but the " + spec.topology.kind +
                          " " + spec.topology.shape + " has " + std::to_string(sizes.size()) + " dimensions");
  }
  switches_ = bounded_product(sizes, "the number of switches");
  const std::uint32_t places = bounded_product({switches_, nodes_per_switch_}, "the number of nodes");
  nodes_ = spec.topology.nodes > 0 ? static_cast<std::uint32_t>(spec.topology.nodes) : places;
  if (nodes_ > places) {
    throw SimulationError("topology.nodes is " + std::to_string(nodes_) + ", but the " + spec.topology.kind +
                          " has room for " + std::to_string(places));
  }
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

std::uint32_t Torus::virtual_channels(Algorithm algorithm) const {
  switch (algorithm) {
    case Algorithm::deterministic:
    case Algorithm::ecmp:
      return escape_;
    case Algorithm::adaptive:
      return escape_ + 1;
    case Algorithm::valiant:
    case Algorithm::ugal:
      return 2 * escape_;
  }
  return escape_;
}

Shape Torus::shape() const {
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

}  // namespace manyscale::network
