// SPDX-License-Identifier: Apache-2.0
// Which pages of memory several threads touched.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace manyscale::cpu {

// A range of addresses that several threads touched.
struct SharedRange {
  std::uint64_t begin = 0, end = 0;
};

class SharedPages {
 public:
  static constexpr int page_bits = 12;

  // Whether several threads have touched the page by now.
  bool touch(std::uint16_t thread, std::uint64_t address) {
    const std::uint64_t page = address >> page_bits;
    // Threads go back to the pages they were at: most touches change nothing.
    Seen& seen = seen_[(page ^ std::uint64_t{thread} * 61) % seen_.size()];
    if (seen.page == page && seen.thread == thread) return seen.shared;
    const auto [entry, added] = owners_.try_emplace(page, thread);
    if (!added && entry->second != thread && entry->second != several) {
      entry->second = several;
      for (Seen& each : seen_) each.shared |= each.page == page;
    }
    seen = {page, thread, entry->second == several};
    return seen.shared;
  }

  // In the order of addresses; what lies side by side is one range.
  std::vector<SharedRange> shared() const {
    std::vector<std::uint64_t> pages;
    for (const auto& [page, owner] : owners_) {
      if (owner == several) pages.push_back(page);
    }
    std::ranges::sort(pages);
    std::vector<SharedRange> ranges;
    for (const std::uint64_t page : pages) {
      const std::uint64_t begin = page << page_bits, end = (page + 1) << page_bits;
      if (!ranges.empty() && ranges.back().end == begin) {
        ranges.back().end = end;
      } else {
        ranges.push_back({begin, end});
      }
    }
    return ranges;
  }

 private:
  static constexpr std::uint32_t several = ~0u;
  struct Seen {
    std::uint64_t page = ~std::uint64_t{0};
    std::uint16_t thread = 0;
    bool shared = false;
  };
  std::array<Seen, 256> seen_{};
  std::unordered_map<std::uint64_t, std::uint32_t> owners_;  // the thread that touched it, or several
};

}  // namespace manyscale::cpu
