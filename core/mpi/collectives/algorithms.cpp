// SPDX-License-Identifier: Apache-2.0
#include "mpi/collectives/algorithms.hpp"

#include <array>
#include <stdexcept>
#include <string>

namespace manyscale::mpi {

const std::vector<AlgorithmInfo>& algorithm_infos() {
  using A = Algorithm;
  using namespace collectives;
  static const std::vector<AlgorithmInfo> infos{
      {Kind::barrier, A::linear, "linear", barrier_linear},
      {Kind::barrier, A::double_ring, "double-ring", barrier_double_ring},
      {Kind::barrier, A::recursive_doubling, "recursive-doubling", barrier_recursive_doubling},
      {Kind::barrier, A::dissemination, "dissemination", barrier_dissemination},
      {Kind::barrier, A::tree, "tree", barrier_tree},
      {Kind::barrier, A::hierarchical, "hierarchical", barrier_hierarchical},
      {Kind::broadcast, A::linear, "linear", broadcast_linear},
      {Kind::broadcast, A::binomial, "binomial", broadcast_binomial},
      {Kind::broadcast, A::knomial, "knomial", broadcast_knomial},
      {Kind::broadcast, A::binary, "binary", broadcast_binary},
      {Kind::broadcast, A::chain, "chain", broadcast_chain},
      {Kind::broadcast, A::pipeline, "pipeline", broadcast_pipeline},
      {Kind::broadcast, A::scatter_allgather, "scatter-allgather", broadcast_scatter_allgather},
      {Kind::broadcast, A::scatter_ring, "scatter-ring", broadcast_scatter_ring},
      {Kind::broadcast, A::hierarchical, "hierarchical", broadcast_hierarchical},
      {Kind::reduce, A::linear, "linear", reduce_linear},
      {Kind::reduce, A::binomial, "binomial", reduce_binomial},
      {Kind::reduce, A::binary, "binary", reduce_binary},
      {Kind::reduce, A::chain, "chain", reduce_chain},
      {Kind::reduce, A::pipeline, "pipeline", reduce_pipeline},
      {Kind::reduce, A::rabenseifner, "rabenseifner", reduce_rabenseifner},
      {Kind::reduce, A::hierarchical, "hierarchical", reduce_hierarchical},
      {Kind::allreduce, A::linear, "linear", allreduce_linear},
      {Kind::allreduce, A::reduce_broadcast, "reduce-broadcast", allreduce_reduce_broadcast},
      {Kind::allreduce, A::recursive_doubling, "recursive-doubling", allreduce_recursive_doubling},
      {Kind::allreduce, A::ring, "ring", allreduce_ring},
      {Kind::allreduce, A::segmented_ring, "segmented-ring", allreduce_segmented_ring},
      {Kind::allreduce, A::rabenseifner, "rabenseifner", allreduce_rabenseifner},
      {Kind::allreduce, A::hierarchical, "hierarchical", allreduce_hierarchical},
      {Kind::gather, A::linear, "linear", gather_linear},
      {Kind::gather, A::binomial, "binomial", gather_binomial},
      {Kind::scatter, A::linear, "linear", scatter_linear},
      {Kind::scatter, A::binomial, "binomial", scatter_binomial},
      {Kind::allgather, A::linear, "linear", allgather_linear},
      {Kind::allgather, A::bruck, "bruck", allgather_bruck},
      {Kind::allgather, A::recursive_doubling, "recursive-doubling", allgather_recursive_doubling},
      {Kind::allgather, A::ring, "ring", allgather_ring},
      {Kind::allgather, A::neighbor_exchange, "neighbor-exchange", allgather_neighbor_exchange},
      {Kind::alltoall, A::linear, "linear", alltoall_linear},
      {Kind::alltoall, A::scattered, "scattered", alltoall_scattered},
      {Kind::alltoall, A::pairwise, "pairwise", alltoall_pairwise},
      {Kind::alltoall, A::bruck, "bruck", alltoall_bruck},
      {Kind::alltoallv, A::linear, "linear", alltoall_linear},
      {Kind::alltoallv, A::scattered, "scattered", alltoall_scattered},
      {Kind::alltoallv, A::pairwise, "pairwise", alltoall_pairwise},
      {Kind::reduce_scatter, A::linear, "linear", reduce_scatter_linear},
      {Kind::reduce_scatter, A::recursive_halving, "recursive-halving", reduce_scatter_recursive_halving},
      {Kind::reduce_scatter, A::ring, "ring", reduce_scatter_ring},
      {Kind::reduce_scatter, A::pairwise, "pairwise", reduce_scatter_pairwise},
      {Kind::scan, A::linear, "linear", scan_linear},
      {Kind::scan, A::recursive_doubling, "recursive-doubling", scan_recursive_doubling},
      {Kind::exscan, A::linear, "linear", exscan_linear},
      {Kind::exscan, A::recursive_doubling, "recursive-doubling", exscan_recursive_doubling},
  };
  return infos;
}

const AlgorithmInfo* find_algorithm(Kind collective, Algorithm algorithm) {
  // Looked up at every call of a collective, so by number.
  static const auto table = [] {
    std::array<std::array<const AlgorithmInfo*, 32>, kind_count> found{};
    for (const AlgorithmInfo& info : algorithm_infos())
      found[static_cast<std::size_t>(info.collective)][static_cast<std::size_t>(info.algorithm)] = &info;
    return found;
  }();
  const auto number = static_cast<std::size_t>(algorithm);
  return number < 32 ? table[static_cast<std::size_t>(collective)][number] : nullptr;
}

Library library_named(std::string_view name) {
  if (name == "openmpi") return Library::openmpi;
  if (name == "mpich") return Library::mpich;
  throw std::invalid_argument("collectives are chosen as 'openmpi' or 'mpich', not as '" + std::string(name) +
                              "'");
}

Choice choose(Library library, Kind collective, std::uint32_t size, std::uint64_t bytes, bool uniform) {
  return library == Library::openmpi ? choose_openmpi(collective, size, bytes, uniform)
                                     : choose_mpich(collective, size, bytes, uniform);
}

Schedule begin_collective(Call& call, Kind collective, Algorithm algorithm) {
  if (algorithm == Algorithm::automatic) {
    // All members must come to the same choice, so parts that differ count with their mean.
    const bool sum = !call.uniform() && (collective == Kind::allgather || collective == Kind::reduce_scatter);
    const std::uint64_t bytes = sum ? call.parts(0, call.size()) / call.size() : call.bytes;
    const Choice choice = choose(call.library, collective, call.size(), bytes, call.uniform());
    algorithm = choice.algorithm;
    call.segment = choice.segment;
    call.window = choice.window;
  }
  return find_algorithm(collective, algorithm)->run(call);
}

}  // namespace manyscale::mpi
