// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "memory/prefetch/prefetch_algorithm.hpp"

namespace manyscale::memory {

namespace {

// A table of strides by instruction. It runs up to `distance` steps ahead of the access and keeps how far it
// got, so that in the steady state each access adds one line and none twice.
class StridePrefetcher final : public PrefetchAlgorithm {
 public:
  explicit StridePrefetcher(const PrefetcherSpec& spec)
      : PrefetchAlgorithm(spec),
        id_shift_(64 - shift_of(spec.entries, "number of entries")),
        strides_(static_cast<std::size_t>(spec.entries)) {}

  void observe(std::uint64_t address, std::uint64_t id, bool, PrefetchCandidates& out) override {
    const std::uint64_t index = id_shift_ == 64 ? 0 : id * 0x9e3779b97f4a7c15u >> id_shift_;
    Stride& entry = strides_[index];
    if (!entry.valid || entry.id != id) {
      entry = {id, address, 0, 0, 0, true};
      return;
    }
    const auto step = static_cast<std::int64_t>(address - entry.last);
    if (step == 0) return;
    const std::uint64_t last = entry.last;
    entry.last = address;
    if (step != entry.step) {
      entry.ahead = 0;
      // One odd step, such as the end of a row, does not replace a settled stride.
      if (entry.confidence > 1) {
        --entry.confidence;
      } else {
        entry.step = step;
        entry.confidence = 1;
      }
      return;
    }
    entry.confidence = std::min<std::uint8_t>(entry.confidence + 1, 15);
    if (entry.confidence < spec_.confidence) return;

    // Strides within a line advance by lines, and only when the access does.
    const std::int64_t line_size = spec_.line_size;
    std::int64_t advance = step;
    if (step < line_size && step > -line_size) {
      advance = step > 0 ? line_size : -line_size;
      if (!same_line(address, last)) entry.ahead = std::max(entry.ahead - 1, 0);
    } else {
      entry.ahead = std::max(entry.ahead - 1, 0);
    }
    if (!same_page(address, last)) entry.ahead = 0;
    entry.ahead = run_ahead(address, advance, entry.ahead, out);
  }

 private:
  // One instruction's accesses. `ahead` is how many steps beyond the last access are fetched already.
  struct Stride {
    std::uint64_t id = 0;
    std::uint64_t last = 0;
    std::int64_t step = 0;  // bytes
    std::int32_t ahead = 0;
    std::uint8_t confidence = 0;
    bool valid = false;
  };

  int id_shift_;
  std::vector<Stride> strides_;
};

const Registered<StridePrefetcher> registered{"stride", "Follows the strides of instructions, in a table."};

}  // namespace

}  // namespace manyscale::memory
