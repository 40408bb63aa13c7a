// SPDX-License-Identifier: Apache-2.0
// Minimal adaptive routing: each packet takes the least loaded of the shortest paths.
#include "network/routing_algorithm.hpp"

namespace manyscale::network {

namespace {

class Adaptive final : public RoutingAlgorithm {
 public:
  RoutingRules rules() const override {
    return {.selection = Selection::least_loaded, .gateway = Selection::least_loaded, .any_direction = true};
  }
};

const Registered<Adaptive> registered{"adaptive", "The least loaded of the shortest paths."};

}  // namespace

}  // namespace manyscale::network
