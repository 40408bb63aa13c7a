// SPDX-License-Identifier: Apache-2.0
// MPICH's choice of algorithms: defaults of the MPIR_CVAR_* variables named below, read from
// src/mpi/coll/cvars.txt, and the order of conditions in maint/tuning/coll/mpir/generic.json of pmodels/mpich
// at commit 6a79bf6575c3, 2026-08-20. Its two-level variants (smp) are chosen by name here: "hierarchical".
#include <bit>

#include "mpi/collectives/algorithms.hpp"

namespace manyscale::mpi {

namespace {

constexpr std::uint32_t broadcast_min_procs = 8;       // BCAST_MIN_PROCS
constexpr std::uint64_t broadcast_short = 12288;       // BCAST_SHORT_MSG_SIZE
constexpr std::uint64_t broadcast_long = 524288;       // BCAST_LONG_MSG_SIZE
constexpr std::uint64_t reduce_short = 2048;           // REDUCE_SHORT_MSG_SIZE
constexpr std::uint64_t allreduce_short = 2048;        // ALLREDUCE_SHORT_MSG_SIZE
constexpr std::uint64_t allgather_short = 81920;       // ALLGATHER_SHORT_MSG_SIZE
constexpr std::uint64_t allgather_long = 524288;       // ALLGATHER_LONG_MSG_SIZE
constexpr std::uint64_t alltoall_short = 256;          // ALLTOALL_SHORT_MSG_SIZE
constexpr std::uint64_t alltoall_medium = 32768;       // ALLTOALL_MEDIUM_MSG_SIZE
constexpr std::uint32_t alltoall_throttle = 32;        // ALLTOALL_THROTTLE
constexpr std::uint32_t alltoall_few = 8;              // generic.json: alltoall, comm_size<8
constexpr std::uint64_t reduce_scatter_long = 524288;  // generic.json: reduce_scatter, total_msg_size<524288

class Mpich final : public MpiLibrary {
 public:
  Choice choose(OperationKind collective, std::uint32_t size, std::uint64_t bytes,
                bool uniform) const override {
    const bool power = std::has_single_bit(size);
    // "count<pow2": fewer elements than ranks of the power of two below; elements are taken to have 8 bytes.
    const bool few_elements = bytes / 8 < std::bit_floor(size);
    switch (collective) {
      case OperationKind::barrier:
        return {"dissemination"_algorithm};
      case OperationKind::broadcast:
        if (bytes <= broadcast_short || size < broadcast_min_procs) return {"binomial"_algorithm};
        return {power && bytes <= broadcast_long ? "scatter-allgather"_algorithm : "scatter-ring"_algorithm};
      case OperationKind::reduce:
        return {bytes <= reduce_short || few_elements ? "binomial"_algorithm : "rabenseifner"_algorithm};
      case OperationKind::allreduce:
        return {bytes <= allreduce_short || few_elements ? "recursive-doubling"_algorithm
                                                         : "rabenseifner"_algorithm};
      case OperationKind::gather:
      case OperationKind::scatter:
        return {uniform ? "binomial"_algorithm : "linear"_algorithm};
      case OperationKind::allgather:
        if (power && bytes * size < allgather_long) return {"recursive-doubling"_algorithm};
        return {!power && bytes * size < allgather_short ? "bruck"_algorithm : "ring"_algorithm};
      case OperationKind::alltoall:
        if (bytes <= alltoall_short && size >= alltoall_few) return {"bruck"_algorithm};
        return {bytes <= alltoall_medium ? "scattered"_algorithm : "pairwise"_algorithm, 0,
                alltoall_throttle};
      case OperationKind::alltoallv:
        return {"scattered"_algorithm, 0, alltoall_throttle};
      case OperationKind::reduce_scatter:
        return {bytes * size < reduce_scatter_long ? "recursive-halving"_algorithm : "pairwise"_algorithm};
      default:
        return {"recursive-doubling"_algorithm};
    }
  }
};

const Registered<Mpich> registered{"mpich", "MPICH: the defaults of its control variables."};

}  // namespace

}  // namespace manyscale::mpi
