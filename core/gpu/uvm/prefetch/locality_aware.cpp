// SPDX-License-Identifier: Apache-2.0
#include "gpu/uvm/prefetcher.hpp"

namespace manyscale::gpu {

namespace {

// Prefetches the 512 KiB from each fault on, up to the end of the allocation.
class LocalityAwarePrefetcher final : public Prefetcher {
 public:
  void choose(const Residency& residency, std::span<const PageIndex> faults, Random&,
              std::vector<PageIndex>& pages) override {
    for (const PageIndex fault : faults) {
      PageIndex page = fault;
      for (int i = 1; i < kPages; ++i) {
        // Within a block the next page has the next number.
        page = (page + 1) % kPagesPerBlock != 0 && residency.managed(page + 1) ? page + 1
                                                                               : residency.following(page);
        if (page == kNoPage) break;
        pages.push_back(page);
      }
    }
  }

 private:
  static constexpr int kPages = 128;
};

const Registered<LocalityAwarePrefetcher> registered{"locality_aware",
                                                     "Prefetches the 512 KiB from each fault on."};

}  // namespace

}  // namespace manyscale::gpu
