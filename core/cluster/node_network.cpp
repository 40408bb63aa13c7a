// SPDX-License-Identifier: Apache-2.0
#include "cluster/node_network.hpp"

#include <memory>
#include <stdexcept>
#include <string>

namespace manyscale::cluster {

NodeNetwork::NodeNetwork(Simulation& simulation, const network::NetworkDescription& description,
                         const GatewaySpec& gateway, const std::vector<cpu::LiveSource*>& programs,
                         const std::vector<memory::Dma*>& engines)
    : network_(simulation, description) {
  if (!engines.empty() && engines.size() != programs.size())
    throw std::invalid_argument("either all nodes have an engine for direct memory access, or none");
  const auto in_flight = std::make_shared<PiecesInFlight>();
  if (programs.size() != network_.nodes())
    throw std::invalid_argument("the network has " + std::to_string(network_.nodes()) + " nodes, but " +
                                std::to_string(programs.size()) + " are simulated");
  std::vector<std::uint32_t> node_of_rank;
  for (std::uint32_t node = 0; node < programs.size(); ++node) {
    const cpu::RankRings* rings = programs[node]->rings();
    if (rings == nullptr || rings->first() != node_of_rank.size())
      throw std::invalid_argument("the program of node " + std::to_string(node) +
                                  " was not launched as the next part of a job on several nodes");
    node_of_rank.insert(node_of_rank.end(), rings->local(), node);
  }
  for (std::uint32_t node = 0; node < programs.size(); ++node) {
    auto made =
        std::make_unique<Gateway>(gateway, network_, node, *programs[node]->rings(), node_of_rank, in_flight);
    Gateway& added = *made;
    simulation.add("gateway[" + std::to_string(node) + "]", std::move(made));
    simulation.connect(programs[node]->gateway_port(), added.program_port(), 0);
    if (!engines.empty()) simulation.connect(added.dma_port(), engines[node]->device_port(), 0);
  }
  network_.connect();
}

}  // namespace manyscale::cluster
