// SPDX-License-Identifier: Apache-2.0
// Routing algorithm: the rules by which packets choose among the paths that a topology offers. An algorithm
// is one file in routing_algorithms/, or outside the tree, that registers itself. Its rules are read once,
// when a network is built; topologies follow them without a virtual call. Only an algorithm with a selection
// of its own is called for each choice:
//   class Sticky final : public RoutingAlgorithm {
//    public:
//     RoutingRules rules() const override { return {.selection = Selection::own, .gateway = Selection::own};
//     } std::uint32_t select(Candidates& candidates) const override { … }
//   };
//   const Registered<Sticky> registered{"sticky", "…one sentence…"};
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/registry.hpp"
#include "engine/time.hpp"

namespace manyscale::network {

// How one of several outputs that lead on equally well is selected.
enum class Selection : std::uint8_t {
  by_destination,  // all packets to a node take the same
  by_flow,         // by a hash of source and destination
  random,
  least_loaded,  // the search begins at a random one
  own,           // RoutingAlgorithm::select
};

// Whether a packet goes by way of a random intermediate switch, or group of a dragonfly (Valiant).
enum class Detour : std::uint8_t {
  never,
  always,
  if_faster,  // as loads and hops look at the first switch (UGAL)
};

struct RoutingRules {
  Selection selection = Selection::by_destination;  // of links to the same switch or subtree
  Selection gateway = Selection::by_destination;    // of links from one group of a dragonfly to another
  Detour detour = Detour::never;
  // Any direction that brings a packet closer, the least loaded first, where the topology has several (torus,
  // mesh). Without effect where packets take detours.
  bool any_direction = false;
};

// Outputs of a switch of which an algorithm selects one, by index.
class Candidates {
 public:
  std::uint32_t count = 0;
  std::uint32_t by_destination = 0;  // the same for all packets to a node; may be larger than count
  std::uint32_t at = 0;              // switch
  std::uint16_t flow = 0;            // hash of source and destination

  virtual Time load(std::uint32_t index) = 0;  // how long the backlog of an output takes
  virtual std::uint32_t random(std::uint32_t n) = 0;

 protected:
  ~Candidates() = default;
};

class RoutingAlgorithm {
 public:
  using PluginInterface = RoutingAlgorithm;
  static constexpr std::string_view plugin_kind = "routing algorithm";
  using Create = std::unique_ptr<RoutingAlgorithm>();

  virtual ~RoutingAlgorithm() = default;
  virtual RoutingRules rules() const = 0;
  // The index of one of the candidates, of which there are at least two.
  virtual std::uint32_t select(Candidates&) const { return 0; }
};

// The algorithm of that name. Throws SimulationError with all names for an unknown one.
std::unique_ptr<const RoutingAlgorithm> make_routing_algorithm(const std::string& name);

// What a topology routes by: the rules, and the algorithm for its own selection.
struct ActiveRouting : RoutingRules {
  ActiveRouting() = default;
  explicit ActiveRouting(const RoutingAlgorithm& made) : RoutingRules(made.rules()), algorithm(&made) {
    any_direction = any_direction && detour == Detour::never;
  }

  bool detours() const { return detour != Detour::never; }
  // Whether choices depend on load, so that they must not be made early.
  bool by_load() const { return selection == Selection::least_loaded || selection == Selection::own; }

  const RoutingAlgorithm* algorithm = nullptr;
};

}  // namespace manyscale::network
