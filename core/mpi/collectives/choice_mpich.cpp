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

}  // namespace

Choice choose_mpich(Kind collective, std::uint32_t size, std::uint64_t bytes, bool uniform) {
  using A = Algorithm;
  const bool power = std::has_single_bit(size);
  // "count<pow2": fewer elements than ranks of the power of two below; elements are taken to have 8 bytes.
  const bool few_elements = bytes / 8 < std::bit_floor(size);
  switch (collective) {
    case Kind::barrier:
      return {A::dissemination};
    case Kind::broadcast:
      if (bytes <= broadcast_short || size < broadcast_min_procs) return {A::binomial};
      return {power && bytes <= broadcast_long ? A::scatter_allgather : A::scatter_ring};
    case Kind::reduce:
      return {bytes <= reduce_short || few_elements ? A::binomial : A::rabenseifner};
    case Kind::allreduce:
      return {bytes <= allreduce_short || few_elements ? A::recursive_doubling : A::rabenseifner};
    case Kind::gather:
    case Kind::scatter:
      return {uniform ? A::binomial : A::linear};
    case Kind::allgather:
      if (power && bytes * size < allgather_long) return {A::recursive_doubling};
      return {!power && bytes * size < allgather_short ? A::bruck : A::ring};
    case Kind::alltoall:
      if (bytes <= alltoall_short && size >= alltoall_few) return {A::bruck};
      return {bytes <= alltoall_medium ? A::scattered : A::pairwise, 0, alltoall_throttle};
    case Kind::alltoallv:
      return {A::scattered, 0, alltoall_throttle};
    case Kind::reduce_scatter:
      return {bytes * size < reduce_scatter_long ? A::recursive_halving : A::pairwise};
    default:
      return {A::recursive_doubling};
  }
}

}  // namespace manyscale::mpi
