// SPDX-License-Identifier: Apache-2.0
// The part of one member in a collective, written out: for schedules that are kept, not run.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "mpi/collectives/algorithms.hpp"

namespace manyscale::mpi {

// What a collective is called with, by a group whose members are numbered from 0.
struct WrittenCall {
  std::uint32_t rank = 0;
  std::uint32_t root = 0;
  std::uint64_t bytes = 0;
  std::uint64_t segment = 0;
  const MpiLibrary* library = nullptr;
};

// All actions in their order. `nodes` has the node of each member, which hierarchical algorithms ask for.
std::vector<Action> written_out(const WrittenCall& call, OperationKind collective, Algorithm algorithm,
                                std::span<const std::uint32_t> nodes);

}  // namespace manyscale::mpi
