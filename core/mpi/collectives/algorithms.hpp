// SPDX-License-Identifier: Apache-2.0
// The algorithms of collective operations, by name, and how one is chosen. Each is a coroutine
// (schedule.hpp); the call must outlive it.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "mpi/collectives/schedule.hpp"
#include "mpi/program.hpp"

namespace manyscale::mpi {

enum class Algorithm : std::uint8_t {
  automatic,
  linear,
  scattered,
  binomial,
  knomial,
  binary,
  chain,
  pipeline,
  tree,
  recursive_doubling,
  recursive_halving,
  dissemination,
  ring,
  double_ring,
  segmented_ring,
  neighbor_exchange,
  bruck,
  pairwise,
  rabenseifner,
  scatter_allgather,
  scatter_ring,
  reduce_broadcast,
  reduce_scatter,
  hierarchical,
};

struct AlgorithmInfo {
  Kind collective;
  Algorithm algorithm;
  std::string_view name;
  Schedule (*run)(Call&);
};
// All combinations there are.
const std::vector<AlgorithmInfo>& algorithm_infos();
// One of them; nullptr where a collective has no such algorithm.
const AlgorithmInfo* find_algorithm(Kind collective, Algorithm algorithm);

Library library_named(std::string_view name);

struct Choice {
  Algorithm algorithm = Algorithm::linear;
  std::uint64_t segment = 0;  // Call::segment
  std::uint32_t window = 32;  // Call::window
};
// The library's choice for a group of so many ranks, with so many bytes as the collective counts them.
Choice choose(Library library, Kind collective, std::uint32_t size, std::uint64_t bytes, bool uniform);
Choice choose_openmpi(Kind collective, std::uint32_t size, std::uint64_t bytes, bool uniform);
Choice choose_mpich(Kind collective, std::uint32_t size, std::uint64_t bytes, bool uniform);

// The chosen or named algorithm, ready to be asked for its first action.
Schedule begin_collective(Call& call, Kind collective, Algorithm algorithm);

namespace collectives {

Schedule barrier_linear(Call& call);
Schedule barrier_double_ring(Call& call);
Schedule barrier_recursive_doubling(Call& call);
Schedule barrier_dissemination(Call& call);
Schedule barrier_tree(Call& call);

Schedule broadcast_linear(Call& call);
Schedule broadcast_binomial(Call& call);
Schedule broadcast_knomial(Call& call);
Schedule broadcast_binary(Call& call);
Schedule broadcast_chain(Call& call);
Schedule broadcast_pipeline(Call& call);
Schedule broadcast_scatter_allgather(Call& call);
Schedule broadcast_scatter_ring(Call& call);

Schedule reduce_linear(Call& call);
Schedule reduce_binomial(Call& call);
Schedule reduce_binary(Call& call);
Schedule reduce_chain(Call& call);
Schedule reduce_pipeline(Call& call);
Schedule reduce_rabenseifner(Call& call);

Schedule allreduce_linear(Call& call);
Schedule allreduce_reduce_broadcast(Call& call);
Schedule allreduce_recursive_doubling(Call& call);
Schedule allreduce_ring(Call& call);
Schedule allreduce_segmented_ring(Call& call);
Schedule allreduce_rabenseifner(Call& call);

Schedule gather_linear(Call& call);
Schedule gather_binomial(Call& call);
Schedule scatter_linear(Call& call);
Schedule scatter_binomial(Call& call);

Schedule allgather_linear(Call& call);
Schedule allgather_bruck(Call& call);
Schedule allgather_recursive_doubling(Call& call);
Schedule allgather_ring(Call& call);
Schedule allgather_neighbor_exchange(Call& call);

Schedule alltoall_linear(Call& call);
Schedule alltoall_scattered(Call& call);
Schedule alltoall_pairwise(Call& call);
Schedule alltoall_bruck(Call& call);

Schedule reduce_scatter_linear(Call& call);
Schedule reduce_scatter_recursive_halving(Call& call);
Schedule reduce_scatter_ring(Call& call);
Schedule reduce_scatter_pairwise(Call& call);

Schedule scan_linear(Call& call);
Schedule scan_recursive_doubling(Call& call);
Schedule exscan_linear(Call& call);
Schedule exscan_recursive_doubling(Call& call);

Schedule barrier_hierarchical(Call& call);
Schedule broadcast_hierarchical(Call& call);
Schedule reduce_hierarchical(Call& call);
Schedule allreduce_hierarchical(Call& call);

}  // namespace collectives

}  // namespace manyscale::mpi
