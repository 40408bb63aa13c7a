// SPDX-License-Identifier: Apache-2.0
#include "memory/prefetch/prefetch_algorithm.hpp"

namespace manyscale::memory {

namespace {

class NextLine final : public PrefetchAlgorithm {
 public:
  using PrefetchAlgorithm::PrefetchAlgorithm;

  void observe(std::uint64_t address, std::uint64_t, bool, PrefetchCandidates& out) override {
    const std::uint64_t line = address >> line_shift_;
    if (line == last_line_) return;
    last_line_ = line;
    for (std::int64_t step = 1; step <= spec_.degree; ++step) {
      const std::uint64_t target = (line + static_cast<std::uint64_t>(step)) << line_shift_;
      if (!same_page(target, address) || !add(target, out)) return;
    }
  }

 private:
  std::uint64_t last_line_ = ~std::uint64_t{0};
};

const Registered<NextLine> registered{"next_line", "Fetches the lines that follow the one accessed."};

}  // namespace

}  // namespace manyscale::memory
