// SPDX-License-Identifier: Apache-2.0
// Several nodes that are simulated in detail, and the network between them: what the ranks of one program
// write for ranks on another node crosses the network, and then is in their memory.
#pragma once
#include <cstdint>
#include <vector>

#include "cluster/gateway.hpp"
#include "engine/simulation.hpp"
#include "memory/dma/dma.hpp"
#include "network/network.hpp"

namespace manyscale::cluster {

class NodeNetwork {
 public:
  // Joins programs that were launched as parts of one job, node by node, in the order of their ranks.
  // `engines` is empty, or has what reads and writes each node's memory for its gateway.
  NodeNetwork(Simulation& simulation, const network::NetworkDescription& description,
              const GatewaySpec& gateway, const std::vector<cpu::LiveSource*>& programs,
              const std::vector<memory::Dma*>& engines);

  const network::Network& network() const { return network_; }

 private:
  network::Network network_;
};

}  // namespace manyscale::cluster
