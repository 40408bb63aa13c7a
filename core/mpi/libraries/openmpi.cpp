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

constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();

// For groups below a size: the algorithm for messages below a number of bytes.
struct SizeRule {
  std::uint64_t below;
  struct BytesRule {
    std::uint64_t below;
    AlgorithmName algorithm;
  };
  std::vector<BytesRule> by_bytes;
};
using Rules = std::vector<SizeRule>;

const Rules allreduce_rules{
    {4,
     {{8, "ring"_algorithm},
      {4096, "recursive-doubling"_algorithm},
      {8192, "ring"_algorithm},
      {16384, "recursive-doubling"_algorithm},
      {65536, "ring"_algorithm},
      {262144, "segmented-ring"_algorithm},
      {all, "rabenseifner"_algorithm}}},
    {8, {{16, "ring"_algorithm}, {8192, "recursive-doubling"_algorithm}, {all, "rabenseifner"_algorithm}}},
    {16, {{8192, "recursive-doubling"_algorithm}, {all, "rabenseifner"_algorithm}}},
    {32,
     {{64, "segmented-ring"_algorithm},
      {4096, "recursive-doubling"_algorithm},
      {all, "rabenseifner"_algorithm}}},
    {64, {{128, "segmented-ring"_algorithm}, {all, "rabenseifner"_algorithm}}},
    {128, {{262144, "recursive-doubling"_algorithm}, {all, "rabenseifner"_algorithm}}},
    {256,
     {{131072, "reduce-broadcast"_algorithm},
      {262144, "recursive-doubling"_algorithm},
      {all, "rabenseifner"_algorithm}}},
    {512, {{4096, "reduce-broadcast"_algorithm}, {all, "rabenseifner"_algorithm}}},
    {2048,
     {{2048, "reduce-broadcast"_algorithm},
      {16384, "recursive-doubling"_algorithm},
      {all, "rabenseifner"_algorithm}}},
    {4096,
     {{2048, "reduce-broadcast"_algorithm},
      {4096, "segmented-ring"_algorithm},
      {16384, "recursive-doubling"_algorithm},
      {all, "rabenseifner"_algorithm}}},
    {all,
     {{2048, "reduce-broadcast"_algorithm},
      {16384, "segmented-ring"_algorithm},
      {32768, "recursive-doubling"_algorithm},
      {all, "rabenseifner"_algorithm}}}};

const Rules alltoall_rules{
    {3, {{32768, "pairwise"_algorithm}, {262144, "scattered"_algorithm}, {all, "pairwise"_algorithm}}},
    {8,
     {{8192, "scattered"_algorithm},
      {16384, "linear"_algorithm},
      {65536, "scattered"_algorithm},
      {524288, "linear"_algorithm},
      {1048576, "pairwise"_algorithm},
      {all, "linear"_algorithm}}},
    {16, {{262144, "scattered"_algorithm}, {all, "linear"_algorithm}}},
    {32,
     {{4, "scattered"_algorithm},
      {512, "bruck"_algorithm},
      {8192, "scattered"_algorithm},
      {32768, "linear"_algorithm},
      {262144, "scattered"_algorithm},
      {524288, "linear"_algorithm},
      {all, "scattered"_algorithm}}},
    {64, {{512, "bruck"_algorithm}, {524288, "linear"_algorithm}, {all, "scattered"_algorithm}}},
    {128,
     {{1024, "bruck"_algorithm},
      {2048, "linear"_algorithm},
      {4096, "scattered"_algorithm},
      {262144, "linear"_algorithm},
      {all, "pairwise"_algorithm}}},
    {256,
     {{1024, "bruck"_algorithm},
      {2048, "scattered"_algorithm},
      {262144, "linear"_algorithm},
      {all, "pairwise"_algorithm}}},
    {512,
     {{1024, "bruck"_algorithm},
      {8192, "scattered"_algorithm},
      {32768, "linear"_algorithm},
      {all, "pairwise"_algorithm}}},
    {1024,
     {{512, "bruck"_algorithm},
      {8192, "scattered"_algorithm},
      {16384, "linear"_algorithm},
      {131072, "scattered"_algorithm},
      {262144, "linear"_algorithm},
      {all, "pairwise"_algorithm}}},
    {2048,
     {{512, "bruck"_algorithm},
      {1024, "scattered"_algorithm},
      {2048, "linear"_algorithm},
      {16384, "scattered"_algorithm},
      {262144, "linear"_algorithm},
      {all, "scattered"_algorithm}}},
    {4096,
     {{1024, "bruck"_algorithm},
      {4096, "scattered"_algorithm},
      {8192, "linear"_algorithm},
      {131072, "scattered"_algorithm},
      {all, "linear"_algorithm}}},
    {all,
     {{2048, "bruck"_algorithm},
      {8192, "scattered"_algorithm},
      {16384, "linear"_algorithm},
      {32768, "scattered"_algorithm},
      {65536, "linear"_algorithm},
      {all, "scattered"_algorithm}}}};

const Rules alltoallv_rules{{4, {{all, "pairwise"_algorithm}}},    {64, {{all, "linear"_algorithm}}},
                            {128, {{all, "pairwise"_algorithm}}},  {256, {{all, "linear"_algorithm}}},
                            {1024, {{all, "pairwise"_algorithm}}}, {all, {{all, "linear"_algorithm}}}};

const Rules barrier_rules{{4, {{all, "recursive-doubling"_algorithm}}},
                          {8, {{all, "linear"_algorithm}}},
                          {64, {{all, "recursive-doubling"_algorithm}}},
                          {256, {{all, "dissemination"_algorithm}}},
                          {512, {{all, "tree"_algorithm}}},
                          {1024, {{all, "dissemination"_algorithm}}},
                          {4096, {{all, "tree"_algorithm}}},
                          {all, {{all, "dissemination"_algorithm}}}};

const Rules broadcast_rules{
    {4,
     {{32, "pipeline"_algorithm},
      {256, "binary"_algorithm},
      {512, "pipeline"_algorithm},
      {1024, "knomial"_algorithm},
      {32768, "linear"_algorithm},
      {131072, "binary"_algorithm},
      {262144, "chain"_algorithm},
      {524288, "linear"_algorithm},
      {1048576, "binomial"_algorithm},
      {all, "binary"_algorithm}}},
    {8,
     {{64, "binary"_algorithm},
      {128, "binomial"_algorithm},
      {2048, "binary"_algorithm},
      {8192, "binomial"_algorithm},
      {1048576, "linear"_algorithm},
      {all, "chain"_algorithm}}},
    {16,
     {{8, "knomial"_algorithm},
      {64, "binary"_algorithm},
      {4096, "knomial"_algorithm},
      {16384, "binary"_algorithm},
      {32768, "binomial"_algorithm},
      {all, "linear"_algorithm}}},
    {32,
     {{4096, "knomial"_algorithm}, {1048576, "binomial"_algorithm}, {all, "scatter-allgather"_algorithm}}},
    {64, {{2048, "binomial"_algorithm}, {all, "knomial"_algorithm}}},
    {128, {{all, "knomial"_algorithm}}},
    {256,
     {{2, "binomial"_algorithm},
      {16384, "binary"_algorithm},
      {32768, "linear"_algorithm},
      {65536, "binary"_algorithm},
      {all, "knomial"_algorithm}}},
    {1024, {{16384, "knomial"_algorithm}, {32768, "binary"_algorithm}, {all, "knomial"_algorithm}}},
    {2048, {{524288, "knomial"_algorithm}, {all, "scatter-allgather"_algorithm}}},
    {4096, {{262144, "knomial"_algorithm}, {all, "scatter-allgather"_algorithm}}},
    {all,
     {{8192, "knomial"_algorithm},
      {16384, "binary"_algorithm},
      {262144, "knomial"_algorithm},
      {all, "scatter-allgather"_algorithm}}}};

const Rules reduce_rules{
    {4,
     {{8, "rabenseifner"_algorithm},
      {16, "binary"_algorithm},
      {32, "pipeline"_algorithm},
      {262144, "linear"_algorithm},
      {524288, "pipeline"_algorithm},
      {1048576, "chain"_algorithm},
      {all, "pipeline"_algorithm}}},
    {8,
     {{4096, "binary"_algorithm},
      {65536, "chain"_algorithm},
      {262144, "binomial"_algorithm},
      {524288, "linear"_algorithm},
      {1048576, "binomial"_algorithm},
      {all, "linear"_algorithm}}},
    {16, {{8192, "binary"_algorithm}, {all, "binomial"_algorithm}}},
    {32, {{4096, "binary"_algorithm}, {all, "binomial"_algorithm}}},
    {256, {{all, "binomial"_algorithm}}},
    {512, {{8192, "binomial"_algorithm}, {16384, "binary"_algorithm}, {all, "binomial"_algorithm}}},
    {2048, {{all, "binomial"_algorithm}}},
    {4096,
     {{512, "binomial"_algorithm},
      {1024, "binary"_algorithm},
      {8192, "binomial"_algorithm},
      {16384, "binary"_algorithm},
      {all, "binomial"_algorithm}}},
    {all,
     {{16, "binomial"_algorithm},
      {32, "binary"_algorithm},
      {1024, "binomial"_algorithm},
      {2048, "binary"_algorithm},
      {8192, "binomial"_algorithm},
      {16384, "binary"_algorithm},
      {all, "binomial"_algorithm}}}};

const Rules reduce_scatter_rules{
    {4, {{65536, "ring"_algorithm}, {131072, "recursive-halving"_algorithm}, {all, "ring"_algorithm}}},
    {8, {{8, "linear"_algorithm}, {262144, "recursive-halving"_algorithm}, {all, "ring"_algorithm}}},
    {32, {{262144, "recursive-halving"_algorithm}, {all, "ring"_algorithm}}},
    {64, {{64, "linear"_algorithm}, {524288, "recursive-halving"_algorithm}, {all, "ring"_algorithm}}},
    {512, {{256, "linear"_algorithm}, {all, "recursive-halving"_algorithm}}},
    {4096, {{512, "linear"_algorithm}, {all, "recursive-halving"_algorithm}}},
    {all, {{1024, "linear"_algorithm}, {all, "recursive-halving"_algorithm}}}};

const Rules allgather_rules{{32, {{all, "recursive-doubling"_algorithm}}},
                            {64,
                             {{1024, "recursive-doubling"_algorithm},
                              {65536, "neighbor-exchange"_algorithm},
                              {all, "ring"_algorithm}}},
                            {128,
                             {{512, "recursive-doubling"_algorithm},
                              {65536, "neighbor-exchange"_algorithm},
                              {all, "ring"_algorithm}}},
                            {256,
                             {{512, "recursive-doubling"_algorithm},
                              {131072, "neighbor-exchange"_algorithm},
                              {524288, "ring"_algorithm},
                              {1048576, "neighbor-exchange"_algorithm},
                              {all, "ring"_algorithm}}},
                            {512,
                             {{32, "recursive-doubling"_algorithm},
                              {128, "bruck"_algorithm},
                              {1024, "recursive-doubling"_algorithm},
                              {131072, "neighbor-exchange"_algorithm},
                              {524288, "ring"_algorithm},
                              {1048576, "neighbor-exchange"_algorithm},
                              {all, "ring"_algorithm}}},
                            {1024,
                             {{64, "recursive-doubling"_algorithm},
                              {256, "bruck"_algorithm},
                              {2048, "recursive-doubling"_algorithm},
                              {all, "neighbor-exchange"_algorithm}}},
                            {2048,
                             {{4, "recursive-doubling"_algorithm},
                              {8, "bruck"_algorithm},
                              {16, "recursive-doubling"_algorithm},
                              {32, "bruck"_algorithm},
                              {256, "recursive-doubling"_algorithm},
                              {512, "bruck"_algorithm},
                              {4096, "recursive-doubling"_algorithm},
                              {all, "neighbor-exchange"_algorithm}}},
                            {4096,
                             {{32, "bruck"_algorithm},
                              {128, "recursive-doubling"_algorithm},
                              {512, "bruck"_algorithm},
                              {4096, "recursive-doubling"_algorithm},
                              {all, "neighbor-exchange"_algorithm}}},
                            {all,
                             {{2, "recursive-doubling"_algorithm},
                              {8, "bruck"_algorithm},
                              {16, "recursive-doubling"_algorithm},
                              {512, "bruck"_algorithm},
                              {4096, "recursive-doubling"_algorithm},
                              {all, "neighbor-exchange"_algorithm}}}};

const Rules allgatherv_rules{
    {3,
     {{2048, "ring"_algorithm},
      {4096, "recursive-doubling"_algorithm},
      {8192, "ring"_algorithm},
      {all, "recursive-doubling"_algorithm}}},
    {8,
     {{256, "linear"_algorithm},
      {4096, "neighbor-exchange"_algorithm},
      {8192, "ring"_algorithm},
      {16384, "neighbor-exchange"_algorithm},
      {262144, "bruck"_algorithm},
      {all, "neighbor-exchange"_algorithm}}},
    {16, {{1024, "linear"_algorithm}, {all, "bruck"_algorithm}}},
    {32, {{128, "linear"_algorithm}, {262144, "bruck"_algorithm}, {all, "ring"_algorithm}}},
    {64, {{256, "linear"_algorithm}, {8192, "bruck"_algorithm}, {all, "ring"_algorithm}}},
    {128, {{256, "linear"_algorithm}, {4096, "bruck"_algorithm}, {all, "ring"_algorithm}}},
    {256, {{1024, "bruck"_algorithm}, {65536, "neighbor-exchange"_algorithm}, {all, "ring"_algorithm}}},
    {512, {{1024, "bruck"_algorithm}, {all, "ring"_algorithm}}},
    {1024,
     {{512, "bruck"_algorithm},
      {1024, "linear"_algorithm},
      {4096, "bruck"_algorithm},
      {1048576, "neighbor-exchange"_algorithm},
      {all, "ring"_algorithm}}},
    {all, {{4096, "bruck"_algorithm}, {all, "neighbor-exchange"_algorithm}}}};

const Rules gather_rules{
    {4,
     {{4, "linear"_algorithm},
      {32768, "binomial"_algorithm},
      {65536, "linear"_algorithm},
      {131072, "binomial"_algorithm},
      {all, "linear"_algorithm}}},
    {8,
     {{1024, "binomial"_algorithm},
      {8192, "linear"_algorithm},
      {32768, "binomial"_algorithm},
      {all, "linear"_algorithm}}},
    {256, {{all, "binomial"_algorithm}}},
    {512, {{2048, "binomial"_algorithm}, {8192, "linear"_algorithm}, {all, "binomial"_algorithm}}},
    {all, {{all, "binomial"_algorithm}}}};

const Rules scatter_rules{{4, {{all, "linear"_algorithm}}},
                          {8,
                           {{2048, "binomial"_algorithm},
                            {4096, "linear"_algorithm},
                            {8192, "binomial"_algorithm},
                            {all, "linear"_algorithm}}},
                          {32, {{16384, "binomial"_algorithm}, {all, "linear"_algorithm}}},
                          {64,
                           {{512, "binomial"_algorithm},
                            {8192, "linear"_algorithm},
                            {16384, "binomial"_algorithm},
                            {all, "linear"_algorithm}}},
                          {all, {{512, "binomial"_algorithm}, {all, "linear"_algorithm}}}};

AlgorithmName look_up(const Rules& rules, std::uint32_t size, std::uint64_t bytes) {
  for (const SizeRule& rule : rules) {
    if (size >= rule.below) continue;
    for (const auto& [below, algorithm] : rule.by_bytes)
      if (bytes < below || below == all) return algorithm;
  }
  return "linear"_algorithm;
}

// Ring and Rabenseifner cut the operand into elements; where there are fewer than ranks (of 8 bytes, as the
// size of an element is not known here), coll_base_allreduce.c goes over to recursive doubling.
AlgorithmName allreduce_choice(std::uint32_t size, std::uint64_t bytes) {
  const AlgorithmName algorithm = look_up(allreduce_rules, size, bytes);
  const bool cuts = algorithm == "ring"_algorithm || algorithm == "segmented-ring"_algorithm ||
                    algorithm == "rabenseifner"_algorithm;
  return cuts && bytes / 8 < size ? "recursive-doubling"_algorithm : algorithm;
}

class OpenMpi final : public MpiLibrary {
 public:
  Choice choose(OperationKind collective, std::uint32_t size, std::uint64_t bytes,
                bool uniform) const override {
    // coll_tuned_component.c: init_max_requests.
    constexpr std::uint32_t most_requests = 128;
    switch (collective) {
      case OperationKind::barrier:
        return {look_up(barrier_rules, size, 0)};
      case OperationKind::broadcast:
        return {look_up(broadcast_rules, size, bytes)};
      case OperationKind::reduce:
        return {look_up(reduce_rules, size, bytes)};
      case OperationKind::allreduce:
        return {allreduce_choice(size, bytes)};
      case OperationKind::gather:
        return {uniform ? look_up(gather_rules, size, bytes) : "linear"_algorithm};
      case OperationKind::scatter:
        return {uniform ? look_up(scatter_rules, size, bytes) : "linear"_algorithm};
      case OperationKind::allgather:
        return {look_up(uniform ? allgather_rules : allgatherv_rules, size, bytes)};
      case OperationKind::alltoall:
        return {look_up(alltoall_rules, size, bytes), 0, most_requests};
      case OperationKind::alltoallv:
        return {look_up(alltoallv_rules, size, bytes)};
      case OperationKind::reduce_scatter:
        return {look_up(reduce_scatter_rules, size, bytes * size)};
      default:  // scan and exscan: coll_basic_scan.c and coll_basic_exscan.c know one way only
        return {"linear"_algorithm};
    }
  }
};

const Registered<OpenMpi> registered{"openmpi", "Open MPI: the switch points of its tuned component."};

}  // namespace

}  // namespace manyscale::mpi
