// SPDX-License-Identifier: Apache-2.0
#include "gpu/uvm/prefetcher.hpp"

namespace manyscale::gpu {

namespace {

// Prefetches for each fault a random page of the same block of 2 MiB; none if that page is resident.
class RandomPrefetcher final : public Prefetcher {
 public:
  void choose(const Residency& residency, std::span<const PageIndex> faults, Random& random,
              std::vector<PageIndex>& pages) override {
    for (const PageIndex fault : faults) {
      const BlockIndex block = fault / kPagesPerBlock;
      const std::uint32_t managed = residency.ranges().pages_of(block);
      pages.push_back(block * kPagesPerBlock + static_cast<PageIndex>(random.below(managed)));
    }
  }
};

const Registered<RandomPrefetcher> registered{
    "random", "Prefetches a random page of the same block of 2 MiB for each fault."};

}  // namespace

}  // namespace manyscale::gpu
