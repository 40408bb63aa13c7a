// SPDX-License-Identifier: Apache-2.0
// Prefetcher of one cache: an algorithm and its statistics. It has no events: the cache owns it, passes its
// accesses and fetches the candidates.
#pragma once
#include <cstdint>
#include <memory>

#include "engine/statistics.hpp"
#include "memory/prefetch/prefetch_algorithm.hpp"

namespace manyscale::memory {

struct PrefetcherStatistics {
  Counter issued;
  Counter redundant;
  Counter useful;
  Counter late;
  Counter useless;
};

class Prefetcher {
 public:
  explicit Prefetcher(const PrefetcherSpec& spec);

  // Passes one access to the algorithm, which appends lines to fetch.
  void observe(std::uint64_t address, std::uint64_t id, bool hit, PrefetchCandidates& out) {
    if (!algorithm_) return;
    const std::uint32_t before = out.count;
    algorithm_->observe(address, id, hit, out);
    statistics_.issued += out.count - before;
  }

  // What the cache reports of the lines it fetched: asked for (`late`: before it had arrived), or gone
  // without.
  void on_use(bool late = false) { ++(late ? statistics_.late : statistics_.useful); }
  void on_evict_unused() { ++statistics_.useless; }
  // A candidate that the cache held already, or was fetching.
  void on_redundant() { ++statistics_.redundant; }

  // The share of the lines with a known fate that were asked for; 0 where none is known.
  double accuracy() const {
    const auto used = statistics_.useful.value() + statistics_.late.value();
    const auto known = used + statistics_.useless.value();
    return known == 0 ? 0 : static_cast<double>(used) / static_cast<double>(known);
  }

  bool enabled() const { return algorithm_ != nullptr; }
  const PrefetcherSpec& spec() const { return spec_; }
  const PrefetcherStatistics& statistics() const { return statistics_; }

 private:
  const PrefetcherSpec spec_;
  std::unique_ptr<PrefetchAlgorithm> algorithm_;  // none: nothing is prefetched
  PrefetcherStatistics statistics_;
};

}  // namespace manyscale::memory

namespace manyscale {

template <>
struct describe<memory::PrefetcherStatistics> {
  using S = memory::PrefetcherStatistics;
  static constexpr auto fields = std::tuple{
      Statistic<S, Counter>{"issued", &S::issued, "line", "lines proposed"},
      Statistic<S, Counter>{"redundant", &S::redundant, "line", "lines proposed that the cache had already"},
      Statistic<S, Counter>{"useful", &S::useful, "line", "lines asked for after they had arrived"},
      Statistic<S, Counter>{"late", &S::late, "line", "lines asked for while they were on their way"},
      Statistic<S, Counter>{"useless", &S::useless, "line", "lines that left without being asked for"}};
};

}  // namespace manyscale
