// SPDX-License-Identifier: Apache-2.0
// How long compute phases last when they vary: distributions of times, and the order in which a phase runs
// through them, as detailed simulations of a node or measurements give them.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/random.hpp"
#include "engine/time.hpp"

namespace manyscale::mpi {

// A distribution of times in up to `most_bins` bins; within a bin all times are equally likely.
struct Distribution {
  static constexpr std::size_t most_bins = 100;

  std::vector<Time> low, high;     // of each bin
  std::vector<double> cumulative;  // up to and with each bin; the last is the total weight

  Time draw(Random& random) const {
    const double wanted = random.uniform() * cumulative.back();
    const auto found = std::lower_bound(cumulative.begin(), cumulative.end(), wanted);
    const auto bin = static_cast<std::size_t>(
        std::min<std::ptrdiff_t>(found - cumulative.begin(), std::ssize(cumulative) - 1));
    const Time width = high[bin] - low[bin];
    if (width == 0) return low[bin];
    return low[bin] + static_cast<Time>(random.below(static_cast<std::uint64_t>(width) + 1));
  }
};

// A phase whose n-th run takes a time of the cluster that the n-th entry of the sequence names, over and
// over.
struct ComputePattern {
  std::vector<Distribution> clusters;
  std::vector<std::uint32_t> sequence;

  // The time of a rank's run of a phase: a function of these numbers alone.
  Time draw(std::uint64_t seed, std::uint32_t rank, std::uint32_t phase, std::uint32_t occurrence) const {
    Random random(seed, mix64(std::uint64_t{rank} << 32 | phase) + occurrence);
    return clusters[sequence[occurrence % sequence.size()]].draw(random);
  }
};

}  // namespace manyscale::mpi
