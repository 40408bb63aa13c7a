// SPDX-License-Identifier: Apache-2.0
// Algorithms of collective operations, by name, and how one is chosen. An algorithm is a coroutine
// (schedule.hpp) that registers itself as "collective.name"; the call must outlive it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/registry.hpp"
#include "mpi/collectives/schedule.hpp"
#include "mpi/program/program.hpp"

namespace manyscale::mpi {

class CollectiveAlgorithm {
 public:
  using PluginInterface = CollectiveAlgorithm;
  static constexpr std::string_view plugin_kind = "collective algorithm";
  using Create = std::unique_ptr<CollectiveAlgorithm>();

  virtual ~CollectiveAlgorithm() = default;
  // The schedule of one member.
  virtual Schedule run(Call& call) const = 0;
  // Whether it needs to know which members are on one node (Call::local and Call::leaders).
  virtual bool needs_nodes() const { return false; }
};

inline constexpr bool by_node = true;

// Registers a coroutine as an algorithm:
//   const RegisteredCollective<allreduce_ring> registered{"allreduce.ring", "…one sentence…"};
template <Schedule (*coroutine)(Call&), bool nodes = false>
class CollectiveCoroutine final : public CollectiveAlgorithm {
 public:
  Schedule run(Call& call) const override { return coroutine(call); }
  bool needs_nodes() const override { return nodes; }
};
template <Schedule (*coroutine)(Call&), bool nodes = false>
using RegisteredCollective = Registered<CollectiveCoroutine<coroutine, nodes>>;

// The number of an algorithm in the table of all; 0 leaves the choice to the MPI library.
enum class Algorithm : std::uint8_t { automatic };

// A name as a number, computed by the compiler, so that no names are compared during a run.
struct AlgorithmName {
  std::uint64_t hash = 0;

  static constexpr AlgorithmName of(std::string_view name) {
    std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
    for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
    return {hash};
  }
  bool operator==(const AlgorithmName&) const = default;
};
consteval AlgorithmName operator""_algorithm(const char* name, std::size_t length) {
  return AlgorithmName::of({name, length});
}

struct AlgorithmInfo {
  OperationKind collective;
  Algorithm algorithm;
  std::string name;
  AlgorithmName id;
  std::unique_ptr<const CollectiveAlgorithm> implementation;
};
// All combinations there are, by number from 1 on.
const std::vector<AlgorithmInfo>& algorithm_infos();
// Takes up algorithms that were registered since; called before a job is made, while none runs.
void update_algorithms();
// One of them; nullptr where a collective has no such algorithm.
const AlgorithmInfo* find_algorithm(OperationKind collective, Algorithm algorithm);

struct Choice {
  AlgorithmName algorithm = "linear"_algorithm;
  std::uint64_t segment = 0;  // Call::segment
  std::uint32_t window = 32;  // Call::window
};

// An MPI library: which algorithm it chooses for a collective. What its calls cost are parameters of the
// machine (mpi_spec.hpp). A library is one file in libraries/, or outside the tree, that registers itself.
class MpiLibrary {
 public:
  using PluginInterface = MpiLibrary;
  static constexpr std::string_view plugin_kind = "MPI library";
  using Create = std::unique_ptr<MpiLibrary>();

  virtual ~MpiLibrary() = default;
  // For a group of so many ranks, with so many bytes as the collective counts them; `uniform` where all ranks
  // have as many.
  virtual Choice choose(OperationKind collective, std::uint32_t size, std::uint64_t bytes,
                        bool uniform) const = 0;
};

// The library of that name. Throws std::invalid_argument with all names for an unknown one.
std::unique_ptr<const MpiLibrary> make_mpi_library(const std::string& name);

// The chosen or named algorithm, ready to be asked for its first action.
Schedule begin_collective(Call& call, OperationKind collective, Algorithm algorithm);

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
