// SPDX-License-Identifier: Apache-2.0
// Valiant's algorithm: every packet takes a detour, which spreads any pattern evenly (Valiant, SIAM J.
// Computing 11(2), 1982).
#include "network/routing_algorithm.hpp"

namespace manyscale::network {

namespace {

class Valiant final : public RoutingAlgorithm {
 public:
  RoutingRules rules() const override {
    return {.selection = Selection::random, .gateway = Selection::least_loaded, .detour = Detour::always};
  }
};

const Registered<Valiant> registered{"valiant", "By way of a random switch, or group of a dragonfly."};

}  // namespace

}  // namespace manyscale::network
