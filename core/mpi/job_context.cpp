// SPDX-License-Identifier: Apache-2.0
#include "mpi/job_context.hpp"

#include <utility>

namespace manyscale::mpi {

JobContext::JobContext(Program made, const MpiSpec& parameters, std::vector<std::uint32_t> given_nodes,
                       std::uint32_t nodes, std::uint64_t number, Recording what)
    : program(std::move(made)),
      spec(parameters),
      seed(number),
      recording(std::move(what)),
      node_of_rank(std::move(given_nodes)) {
  program.prepare();
  if (node_of_rank.size() != program.ranks) {
    throw std::invalid_argument("the job has " + std::to_string(program.ranks) + " ranks, but " +
                                std::to_string(node_of_rank.size()) + " have a node");
  }
  if (!recording.timeline.empty() && recording.timeline.size() != program.ranks)
    throw std::invalid_argument("the timeline needs one flag per rank");
  first_of_node.assign(nodes + 1, 0);
  for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
    const std::uint32_t node = node_of_rank[rank];
    if (node >= nodes) {
      throw std::invalid_argument("rank " + std::to_string(rank) + " is on node " + std::to_string(node) +
                                  ", but the network has " + std::to_string(nodes) + " nodes");
    }
    ++first_of_node[node + 1];
  }
  for (std::uint32_t node = 0; node < nodes; ++node) first_of_node[node + 1] += first_of_node[node];
  std::vector<std::uint32_t> next(first_of_node.begin(), first_of_node.end() - 1);
  ranks_by_node.resize(program.ranks);
  index_of_rank.resize(program.ranks);
  for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
    const std::uint32_t node = node_of_rank[rank];
    index_of_rank[rank] = next[node] - first_of_node[node];
    ranks_by_node[next[node]++] = rank;
  }
  update_algorithms();
  library = make_mpi_library(spec.collectives);
  node_splits.resize(program.communicators.size());
  for (const Operation& operation : program.operations) {
    if (operation.kind < OperationKind::barrier || operation.algorithm == 0) continue;
    const AlgorithmInfo* const algorithm =
        find_algorithm(operation.kind, static_cast<Algorithm>(operation.algorithm));
    if (algorithm == nullptr) {
      throw std::invalid_argument("operation " + std::to_string(&operation - program.operations.data()) +
                                  ": " + std::string(kind_name(operation.kind)) +
                                  " has no algorithm number " + std::to_string(operation.algorithm));
    }
    auto& split = node_splits[operation.communicator];
    if (algorithm->implementation->needs_nodes() && !split)
      split = split_by_node(program.communicators[operation.communicator], node_of_rank);
  }
}

}  // namespace manyscale::mpi
