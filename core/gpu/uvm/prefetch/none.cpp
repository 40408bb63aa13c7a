// SPDX-License-Identifier: Apache-2.0
#include "gpu/uvm/prefetcher.hpp"

namespace manyscale::gpu {

namespace {

// Pages migrate on demand only.
class NoPrefetcher final : public Prefetcher {
 public:
  void choose(const Residency&, std::span<const PageIndex>, Random&, std::vector<PageIndex>&) override {}
};

const Registered<NoPrefetcher> registered{"none", "Prefetches nothing: pages migrate on demand."};

}  // namespace

}  // namespace manyscale::gpu
