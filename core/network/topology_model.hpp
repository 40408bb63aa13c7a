// SPDX-License-Identifier: Apache-2.0
// Topology model: a kind of topology, with its parameters, its switches and links, and its routing. A kind is
// one file in topologies/ that registers itself; nothing else knows it.
//
// A kind that routes by shortest paths derives from TopologyModel and gives its shape only. A kind with a
// routing of its own derives from RoutedTopology<itself> and has a method
//   template <class Context>
//   Hop route(std::uint32_t at, RouteState& state, const Target& target, Context& context) const
// for a packet at a switch that is not its last; routing_context.hpp says what a context offers, and
// `routing_` has the rules of the routing algorithm.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/registry.hpp"
#include "network/route.hpp"
#include "network/routing_context.hpp"

namespace manyscale::network {

// How a picture arranges switches: in rows by their distance from the nodes unless one of these is stated.
struct Layout {
  std::vector<std::uint32_t> box;  // extents of a grid, the first coordinate fastest
  std::uint32_t group = 0;         // switches of a group; groups lie around a circle
};

class TopologyModel {
 public:
  using PluginInterface = TopologyModel;
  static constexpr std::string_view plugin_kind = "topology";
  using Create = std::unique_ptr<TopologyModel>(const NamedValues& parameters);

  virtual ~TopologyModel() = default;

  // Parameters with which this kind has at least so many nodes, of switches with so many ports. Those that
  // are not named keep their values.
  virtual NamedValues fit(std::uint32_t nodes, std::uint32_t ports) const = 0;
  // Computes what the parameters imply; called once, before all that follows. Throws SimulationError for
  // parameters that do not fit together.
  virtual void build(const NetworkDescription& description) = 0;
  // Whether the parameters alone determine how many nodes can be attached, and how many they are.
  virtual bool fixes_nodes() const { return true; }
  virtual std::uint64_t capacity() const { return 0; }
  virtual Shape shape() const = 0;
  virtual Layout layout() const { return {}; }
  // Whether two nodes may be without a path even where no link is down.
  virtual bool may_be_disconnected() const { return false; }

  // Virtual channels that the routing of this kind needs; none if packets take shortest paths from a table.
  virtual std::optional<std::uint32_t> virtual_channels(const ActiveRouting&) const { return std::nullopt; }
  // The routing algorithm, which outlives this; called once, after build().
  virtual void route_by(const ActiveRouting&) {}
  // Whether packets that come from a node use the same virtual channels as those in the network.
  virtual bool mixes_new_packets() const { return false; }
  // The next hop of a packet. One call for each hop; contexts are concrete types so that the calls within are
  // none.
  virtual Hop next(std::uint32_t, RouteState&, const Target&, PacketContext&) const { return {}; }
  virtual Hop next(std::uint32_t, RouteState&, const Target&, FlowContext&) const { return {}; }
  virtual Hop next(std::uint32_t, RouteState&, const Target&, ProbeContext&) const { return {}; }
};

// A kind with a routing of its own.
template <class Implementation>
class RoutedTopology : public TopologyModel {
 public:
  void route_by(const ActiveRouting& routing) final { routing_ = routing; }
  Hop next(std::uint32_t at, RouteState& state, const Target& target, PacketContext& context) const final {
    return static_cast<const Implementation&>(*this).route(at, state, target, context);
  }
  Hop next(std::uint32_t at, RouteState& state, const Target& target, FlowContext& context) const final {
    return static_cast<const Implementation&>(*this).route(at, state, target, context);
  }
  Hop next(std::uint32_t at, RouteState& state, const Target& target, ProbeContext& context) const final {
    return static_cast<const Implementation&>(*this).route(at, state, target, context);
  }

 protected:
  ActiveRouting routing_;
};

// The number of nodes that a description asks for, or all that there is room for. Throws SimulationError if
// it asks for more.
inline std::uint32_t nodes_of(const NetworkDescription& description, std::uint32_t capacity,
                              const std::string& what) {
  const std::int64_t wanted = description.spec.topology.nodes;
  if (wanted > capacity) {
    throw SimulationError("topology.nodes is " + std::to_string(wanted) + ", but " + what +
                          " takes at most " + std::to_string(capacity));
  }
  return wanted > 0 ? static_cast<std::uint32_t>(wanted) : capacity;
}

// The model of the kind that is named, with those of the parameters that the kind declares.
std::unique_ptr<TopologyModel> make_topology(const TopologySpec& spec);

// All parameters of a network, with those of all kinds of topology as "topology.name".
std::vector<FieldInfo> network_fields();
// A network's parameters by these names.
NetworkSpec network_spec(const NamedValues& values);

}  // namespace manyscale::network
