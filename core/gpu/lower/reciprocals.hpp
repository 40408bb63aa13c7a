// SPDX-License-Identifier: Apache-2.0
// Divisions of whole numbers begin with a reciprocal of the divisor, which need not be computed each time.
#pragma once
#include <span>
#include <vector>

#include "gpu/lower/regions.hpp"
#include "gpu/lower/sequence.hpp"

namespace manyscale::gpu {

// A reciprocal, computed ahead of an operation for divisions that begin behind it.
struct Reciprocal {
  std::uint32_t ahead_of;  // an operation
  Source divisor;
  Expansion steps;
};

struct Reciprocals {
  std::vector<Reciprocal> list;   // by operation
  std::vector<std::uint32_t> of;  // by operation: the one it uses; kNoOperation for none
};

// Takes reciprocals out of loops in which the divisor stays the same, and out of divisions that come after
// another by the same number; their sequences become what is left.
Reciprocals move_reciprocals(const Values& values, const Regions& regions, std::span<Sequence> sequences);

}  // namespace manyscale::gpu
