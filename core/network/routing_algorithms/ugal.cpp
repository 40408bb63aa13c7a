// SPDX-License-Identifier: Apache-2.0
// Universal globally-adaptive load-balanced routing, UGAL-L: the choice between the shortest path and a
// detour looks at the queues of the first switch (Singh, PhD thesis, Stanford University, 2005).
#include "network/routing_algorithm.hpp"

namespace manyscale::network {

namespace {

class Ugal final : public RoutingAlgorithm {
 public:
  RoutingRules rules() const override {
    return {.selection = Selection::least_loaded,
            .gateway = Selection::least_loaded,
            .detour = Detour::if_faster};
  }
};

const Registered<Ugal> registered{"ugal",
                                  "The faster of a shortest path and a detour, as seen at the first switch."};

}  // namespace

}  // namespace manyscale::network
