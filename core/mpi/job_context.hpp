// SPDX-License-Identifier: Apache-2.0
// What all hosts of a job share and none changes during a run: the program, the parameters and where ranks
// live.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "mpi/collectives/algorithms.hpp"
#include "mpi/mpi_spec.hpp"
#include "mpi/program/program.hpp"

namespace manyscale::mpi {

// What is to be noted during a run besides statistics.
struct Recording {
  bool values = false;               // check mode: messages carry numbers, and completions are noted
  std::uint32_t waits_per_rank = 0;  // for the critical path: the last so many waits of each rank
  std::vector<bool> timeline;        // for each rank whether its operations are noted; empty: none
};

class JobContext {
 public:
  // `node_of_rank` says where each rank runs.
  JobContext(Program program, const MpiSpec& spec, std::vector<std::uint32_t> node_of_rank,
             std::uint32_t nodes, std::uint64_t seed, Recording recording);

  Program program;
  MpiSpec spec;
  std::uint64_t seed;
  Recording recording;
  std::vector<std::uint32_t> node_of_rank;
  std::vector<std::uint32_t> index_of_rank;           // among the ranks of its node
  std::vector<std::uint32_t> ranks_by_node;           // node after node
  std::vector<std::uint32_t> first_of_node;           // where each node's ranks begin in `ranks_by_node`
  std::vector<std::optional<NodeSplit>> node_splits;  // of communicators that use hierarchical algorithms
  std::unique_ptr<const MpiLibrary> library;
};

}  // namespace manyscale::mpi
