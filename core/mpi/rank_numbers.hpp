// SPDX-License-Identifier: Apache-2.0
// Rank numbers: what a program keeps for each rank of a node, a row of numbers for each: a request in each
// slot, the iteration of each loop, how often it came to each compute phase, and how often it began a
// collective of each communicator.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "mpi/program/program.hpp"

namespace manyscale::mpi {

class RankNumbers {
 public:
  // All slots are empty, everything else is 0.
  RankNumbers(const Program& program, std::size_t ranks) : program_(program), numbers_(ranks * row_length()) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) std::fill_n(slots(rank), program.slots, none);
  }

  std::uint32_t* slots(std::uint32_t rank) { return numbers_.data() + rank * row_length(); }
  std::uint32_t* iterations(std::uint32_t rank) { return slots(rank) + program_.slots; }
  const std::uint32_t* iterations(std::uint32_t rank) const {
    return numbers_.data() + rank * row_length() + program_.slots;
  }
  std::uint32_t* occurrences(std::uint32_t rank) { return iterations(rank) + program_.depth; }
  std::uint32_t* collectives(std::uint32_t rank) { return occurrences(rank) + program_.phases; }

 private:
  std::size_t row_length() const {
    return std::size_t{program_.slots} + program_.depth + program_.phases + program_.communicators.size();
  }

  const Program& program_;
  std::vector<std::uint32_t> numbers_;
};

}  // namespace manyscale::mpi
