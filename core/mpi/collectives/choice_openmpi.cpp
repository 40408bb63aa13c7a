// SPDX-License-Identifier: Apache-2.0
// Open MPI's choice of algorithms: the switch points of its `tuned` component, read from
// ompi/mca/coll/tuned/coll_tuned_decision_fixed.c (functions ompi_coll_tuned_*_intra_dec_fixed, commutative
// operations) of open-mpi/ompi at commit 8efebee745e1, 2026-08-21; the same stand in 4.1 and 5.0. Where Open
// MPI has a variant that is not modelled, its nearest relative stands for it: binary for split_binary_tree
// and in-order_binary, linear for linear_sync and linear_nb, recursive halving for butterfly, exchanges with
// a window for alltoall's linear_sync.
#include <limits>
#include <vector>

#include "mpi/collectives/algorithms.hpp"

namespace manyscale::mpi {

namespace {

using A = Algorithm;
constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();

// For groups below a size: the algorithm for messages below a number of bytes.
struct SizeRule {
  std::uint64_t below;
  struct BytesRule {
    std::uint64_t below;
    Algorithm algorithm;
  };
  std::vector<BytesRule> by_bytes;
};
using Rules = std::vector<SizeRule>;

const Rules allreduce_rules{
    {4,
     {{8, A::ring},
      {4096, A::recursive_doubling},
      {8192, A::ring},
      {16384, A::recursive_doubling},
      {65536, A::ring},
      {262144, A::segmented_ring},
      {all, A::rabenseifner}}},
    {8, {{16, A::ring}, {8192, A::recursive_doubling}, {all, A::rabenseifner}}},
    {16, {{8192, A::recursive_doubling}, {all, A::rabenseifner}}},
    {32, {{64, A::segmented_ring}, {4096, A::recursive_doubling}, {all, A::rabenseifner}}},
    {64, {{128, A::segmented_ring}, {all, A::rabenseifner}}},
    {128, {{262144, A::recursive_doubling}, {all, A::rabenseifner}}},
    {256, {{131072, A::reduce_broadcast}, {262144, A::recursive_doubling}, {all, A::rabenseifner}}},
    {512, {{4096, A::reduce_broadcast}, {all, A::rabenseifner}}},
    {2048, {{2048, A::reduce_broadcast}, {16384, A::recursive_doubling}, {all, A::rabenseifner}}},
    {4096,
     {{2048, A::reduce_broadcast},
      {4096, A::segmented_ring},
      {16384, A::recursive_doubling},
      {all, A::rabenseifner}}},
    {all,
     {{2048, A::reduce_broadcast},
      {16384, A::segmented_ring},
      {32768, A::recursive_doubling},
      {all, A::rabenseifner}}}};

const Rules alltoall_rules{
    {3, {{32768, A::pairwise}, {262144, A::scattered}, {all, A::pairwise}}},
    {8,
     {{8192, A::scattered},
      {16384, A::linear},
      {65536, A::scattered},
      {524288, A::linear},
      {1048576, A::pairwise},
      {all, A::linear}}},
    {16, {{262144, A::scattered}, {all, A::linear}}},
    {32,
     {{4, A::scattered},
      {512, A::bruck},
      {8192, A::scattered},
      {32768, A::linear},
      {262144, A::scattered},
      {524288, A::linear},
      {all, A::scattered}}},
    {64, {{512, A::bruck}, {524288, A::linear}, {all, A::scattered}}},
    {128,
     {{1024, A::bruck}, {2048, A::linear}, {4096, A::scattered}, {262144, A::linear}, {all, A::pairwise}}},
    {256, {{1024, A::bruck}, {2048, A::scattered}, {262144, A::linear}, {all, A::pairwise}}},
    {512, {{1024, A::bruck}, {8192, A::scattered}, {32768, A::linear}, {all, A::pairwise}}},
    {1024,
     {{512, A::bruck},
      {8192, A::scattered},
      {16384, A::linear},
      {131072, A::scattered},
      {262144, A::linear},
      {all, A::pairwise}}},
    {2048,
     {{512, A::bruck},
      {1024, A::scattered},
      {2048, A::linear},
      {16384, A::scattered},
      {262144, A::linear},
      {all, A::scattered}}},
    {4096,
     {{1024, A::bruck}, {4096, A::scattered}, {8192, A::linear}, {131072, A::scattered}, {all, A::linear}}},
    {all,
     {{2048, A::bruck},
      {8192, A::scattered},
      {16384, A::linear},
      {32768, A::scattered},
      {65536, A::linear},
      {all, A::scattered}}}};

const Rules alltoallv_rules{{4, {{all, A::pairwise}}},    {64, {{all, A::linear}}},
                            {128, {{all, A::pairwise}}},  {256, {{all, A::linear}}},
                            {1024, {{all, A::pairwise}}}, {all, {{all, A::linear}}}};

const Rules barrier_rules{{4, {{all, A::recursive_doubling}}},
                          {8, {{all, A::linear}}},
                          {64, {{all, A::recursive_doubling}}},
                          {256, {{all, A::dissemination}}},
                          {512, {{all, A::tree}}},
                          {1024, {{all, A::dissemination}}},
                          {4096, {{all, A::tree}}},
                          {all, {{all, A::dissemination}}}};

const Rules broadcast_rules{
    {4,
     {{32, A::pipeline},
      {256, A::binary},
      {512, A::pipeline},
      {1024, A::knomial},
      {32768, A::linear},
      {131072, A::binary},
      {262144, A::chain},
      {524288, A::linear},
      {1048576, A::binomial},
      {all, A::binary}}},
    {8,
     {{64, A::binary},
      {128, A::binomial},
      {2048, A::binary},
      {8192, A::binomial},
      {1048576, A::linear},
      {all, A::chain}}},
    {16,
     {{8, A::knomial},
      {64, A::binary},
      {4096, A::knomial},
      {16384, A::binary},
      {32768, A::binomial},
      {all, A::linear}}},
    {32, {{4096, A::knomial}, {1048576, A::binomial}, {all, A::scatter_allgather}}},
    {64, {{2048, A::binomial}, {all, A::knomial}}},
    {128, {{all, A::knomial}}},
    {256, {{2, A::binomial}, {16384, A::binary}, {32768, A::linear}, {65536, A::binary}, {all, A::knomial}}},
    {1024, {{16384, A::knomial}, {32768, A::binary}, {all, A::knomial}}},
    {2048, {{524288, A::knomial}, {all, A::scatter_allgather}}},
    {4096, {{262144, A::knomial}, {all, A::scatter_allgather}}},
    {all, {{8192, A::knomial}, {16384, A::binary}, {262144, A::knomial}, {all, A::scatter_allgather}}}};

const Rules reduce_rules{
    {4,
     {{8, A::rabenseifner},
      {16, A::binary},
      {32, A::pipeline},
      {262144, A::linear},
      {524288, A::pipeline},
      {1048576, A::chain},
      {all, A::pipeline}}},
    {8,
     {{4096, A::binary},
      {65536, A::chain},
      {262144, A::binomial},
      {524288, A::linear},
      {1048576, A::binomial},
      {all, A::linear}}},
    {16, {{8192, A::binary}, {all, A::binomial}}},
    {32, {{4096, A::binary}, {all, A::binomial}}},
    {256, {{all, A::binomial}}},
    {512, {{8192, A::binomial}, {16384, A::binary}, {all, A::binomial}}},
    {2048, {{all, A::binomial}}},
    {4096,
     {{512, A::binomial}, {1024, A::binary}, {8192, A::binomial}, {16384, A::binary}, {all, A::binomial}}},
    {all,
     {{16, A::binomial},
      {32, A::binary},
      {1024, A::binomial},
      {2048, A::binary},
      {8192, A::binomial},
      {16384, A::binary},
      {all, A::binomial}}}};

const Rules reduce_scatter_rules{{4, {{65536, A::ring}, {131072, A::recursive_halving}, {all, A::ring}}},
                                 {8, {{8, A::linear}, {262144, A::recursive_halving}, {all, A::ring}}},
                                 {32, {{262144, A::recursive_halving}, {all, A::ring}}},
                                 {64, {{64, A::linear}, {524288, A::recursive_halving}, {all, A::ring}}},
                                 {512, {{256, A::linear}, {all, A::recursive_halving}}},
                                 {4096, {{512, A::linear}, {all, A::recursive_halving}}},
                                 {all, {{1024, A::linear}, {all, A::recursive_halving}}}};

const Rules allgather_rules{
    {32, {{all, A::recursive_doubling}}},
    {64, {{1024, A::recursive_doubling}, {65536, A::neighbor_exchange}, {all, A::ring}}},
    {128, {{512, A::recursive_doubling}, {65536, A::neighbor_exchange}, {all, A::ring}}},
    {256,
     {{512, A::recursive_doubling},
      {131072, A::neighbor_exchange},
      {524288, A::ring},
      {1048576, A::neighbor_exchange},
      {all, A::ring}}},
    {512,
     {{32, A::recursive_doubling},
      {128, A::bruck},
      {1024, A::recursive_doubling},
      {131072, A::neighbor_exchange},
      {524288, A::ring},
      {1048576, A::neighbor_exchange},
      {all, A::ring}}},
    {1024,
     {{64, A::recursive_doubling},
      {256, A::bruck},
      {2048, A::recursive_doubling},
      {all, A::neighbor_exchange}}},
    {2048,
     {{4, A::recursive_doubling},
      {8, A::bruck},
      {16, A::recursive_doubling},
      {32, A::bruck},
      {256, A::recursive_doubling},
      {512, A::bruck},
      {4096, A::recursive_doubling},
      {all, A::neighbor_exchange}}},
    {4096,
     {{32, A::bruck},
      {128, A::recursive_doubling},
      {512, A::bruck},
      {4096, A::recursive_doubling},
      {all, A::neighbor_exchange}}},
    {all,
     {{2, A::recursive_doubling},
      {8, A::bruck},
      {16, A::recursive_doubling},
      {512, A::bruck},
      {4096, A::recursive_doubling},
      {all, A::neighbor_exchange}}}};

const Rules allgatherv_rules{
    {3, {{2048, A::ring}, {4096, A::recursive_doubling}, {8192, A::ring}, {all, A::recursive_doubling}}},
    {8,
     {{256, A::linear},
      {4096, A::neighbor_exchange},
      {8192, A::ring},
      {16384, A::neighbor_exchange},
      {262144, A::bruck},
      {all, A::neighbor_exchange}}},
    {16, {{1024, A::linear}, {all, A::bruck}}},
    {32, {{128, A::linear}, {262144, A::bruck}, {all, A::ring}}},
    {64, {{256, A::linear}, {8192, A::bruck}, {all, A::ring}}},
    {128, {{256, A::linear}, {4096, A::bruck}, {all, A::ring}}},
    {256, {{1024, A::bruck}, {65536, A::neighbor_exchange}, {all, A::ring}}},
    {512, {{1024, A::bruck}, {all, A::ring}}},
    {1024,
     {{512, A::bruck}, {1024, A::linear}, {4096, A::bruck}, {1048576, A::neighbor_exchange}, {all, A::ring}}},
    {all, {{4096, A::bruck}, {all, A::neighbor_exchange}}}};

const Rules gather_rules{
    {4, {{4, A::linear}, {32768, A::binomial}, {65536, A::linear}, {131072, A::binomial}, {all, A::linear}}},
    {8, {{1024, A::binomial}, {8192, A::linear}, {32768, A::binomial}, {all, A::linear}}},
    {256, {{all, A::binomial}}},
    {512, {{2048, A::binomial}, {8192, A::linear}, {all, A::binomial}}},
    {all, {{all, A::binomial}}}};

const Rules scatter_rules{
    {4, {{all, A::linear}}},
    {8, {{2048, A::binomial}, {4096, A::linear}, {8192, A::binomial}, {all, A::linear}}},
    {32, {{16384, A::binomial}, {all, A::linear}}},
    {64, {{512, A::binomial}, {8192, A::linear}, {16384, A::binomial}, {all, A::linear}}},
    {all, {{512, A::binomial}, {all, A::linear}}}};

Algorithm look_up(const Rules& rules, std::uint32_t size, std::uint64_t bytes) {
  for (const SizeRule& rule : rules) {
    if (size >= rule.below) continue;
    for (const auto& [below, algorithm] : rule.by_bytes)
      if (bytes < below || below == all) return algorithm;
  }
  return Algorithm::linear;
}

// Ring and Rabenseifner cut the operand into elements; where there are fewer than ranks (of 8 bytes, as the
// size of an element is not known here), coll_base_allreduce.c goes over to recursive doubling.
Algorithm allreduce_choice(std::uint32_t size, std::uint64_t bytes) {
  const Algorithm algorithm = look_up(allreduce_rules, size, bytes);
  const bool cuts = algorithm == A::ring || algorithm == A::segmented_ring || algorithm == A::rabenseifner;
  return cuts && bytes / 8 < size ? A::recursive_doubling : algorithm;
}

}  // namespace

Choice choose_openmpi(Kind collective, std::uint32_t size, std::uint64_t bytes, bool uniform) {
  // coll_tuned_component.c: init_max_requests.
  constexpr std::uint32_t most_requests = 128;
  switch (collective) {
    case Kind::barrier:
      return {look_up(barrier_rules, size, 0)};
    case Kind::broadcast:
      return {look_up(broadcast_rules, size, bytes)};
    case Kind::reduce:
      return {look_up(reduce_rules, size, bytes)};
    case Kind::allreduce:
      return {allreduce_choice(size, bytes)};
    case Kind::gather:
      return {uniform ? look_up(gather_rules, size, bytes) : A::linear};
    case Kind::scatter:
      return {uniform ? look_up(scatter_rules, size, bytes) : A::linear};
    case Kind::allgather:
      return {look_up(uniform ? allgather_rules : allgatherv_rules, size, bytes)};
    case Kind::alltoall:
      return {look_up(alltoall_rules, size, bytes), 0, most_requests};
    case Kind::alltoallv:
      return {look_up(alltoallv_rules, size, bytes)};
    case Kind::reduce_scatter:
      return {look_up(reduce_scatter_rules, size, bytes * size)};
    default:  // scan and exscan: coll_basic_scan.c and coll_basic_exscan.c know one way only
      return {A::linear};
  }
}

}  // namespace manyscale::mpi
