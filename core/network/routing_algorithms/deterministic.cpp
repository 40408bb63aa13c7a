// SPDX-License-Identifier: Apache-2.0
// Deterministic routing: all packets to a node take the same path from a switch.
#include "network/routing_algorithm.hpp"

namespace manyscale::network {

namespace {

class Deterministic final : public RoutingAlgorithm {
 public:
  RoutingRules rules() const override {
    return {.selection = Selection::by_destination, .gateway = Selection::by_destination};
  }
};

const Registered<Deterministic> registered{"deterministic", "Shortest paths, by destination."};

}  // namespace

}  // namespace manyscale::network
