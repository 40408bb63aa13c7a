// SPDX-License-Identifier: Apache-2.0
// Equal-cost multi-path: all packets of a flow take the same of the shortest paths.
#include "network/routing_algorithm.hpp"

namespace manyscale::network {

namespace {

class Ecmp final : public RoutingAlgorithm {
 public:
  RoutingRules rules() const override {
    return {.selection = Selection::by_flow, .gateway = Selection::by_flow};
  }
};

const Registered<Ecmp> registered{"ecmp", "Shortest paths, by a hash of source and destination."};

}  // namespace

}  // namespace manyscale::network
