// SPDX-License-Identifier: Apache-2.0
#include "memory/prefetch/prefetcher.hpp"

#include <stdexcept>

namespace manyscale::memory {

namespace {

void check(bool good, const char* what) {
  if (!good) throw std::invalid_argument(what);
}

}  // namespace

Prefetcher::Prefetcher(const PrefetcherSpec& spec) : spec_(spec) {
  if (spec.kind != "none") Registry<PrefetchAlgorithm>::get().find(spec.kind);
  check(spec.page_size >= spec.line_size, "the page of a prefetcher holds at least one line");
  check(spec.degree >= 1 && spec.degree <= PrefetchCandidates::capacity, "a prefetcher's degree is 1 to 16");
  check(spec.distance >= 1 && spec.distance <= 1024, "a prefetcher's distance is 1 to 1024");
  check(spec.entries >= 1 && spec.entries <= 4096, "a prefetcher has 1 to 4096 entries");
  check(spec.confidence >= 1 && spec.confidence <= 15, "a prefetcher's confidence is 1 to 15");
  check(spec.window >= 1 && spec.window <= 1024, "a prefetcher's window is 1 to 1024 lines");
  if (spec.kind != "none") algorithm_ = make_plugin<PrefetchAlgorithm>(spec.kind, spec);
}

}  // namespace manyscale::memory
