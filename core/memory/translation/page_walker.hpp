// SPDX-License-Identifier: Apache-2.0
// The page walker: says which entries to read; the component around it reads them through its caches.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/spec.hpp"
#include "engine/statistics.hpp"
#include "memory/translation/page_table.hpp"
#include "memory/translation/tlb.hpp"

namespace manyscale::memory {

struct WalkCacheSpec {
  std::int64_t entries = 16;
  std::int64_t ways = 0;
  std::int64_t latency = 1;
};

struct PageWalkerSpec {
  std::int64_t concurrent_walks = 8;
};

struct PageWalkerStatistics {
  Counter walks;
  Counter merged;
  Counter refused;
  Counter faults;
  Counter reads;
  Histogram reads_per_walk;
  Histogram start_level;
};

// Stands for the walkers of an MMU with their paging-structure caches, one for each level but the last;
// leaves out the time of the reads, which the component around it knows, and the merging of reads of
// different walks. A walk reads its entries one after the other, each depending on the one before.
class PageWalker {
 public:
  enum class Outcome : std::uint8_t {
    started,  // read what reads() lists, then call finish()
    merged,   // there is an outstanding walk to this page: wait for it
    full,     // no walker is free: try again when one has finished
  };
  struct Ticket {
    Outcome outcome = Outcome::full;
    std::uint32_t walk = 0;  // of started and merged: the number of the walk
  };
  struct Result {
    std::optional<Translation> translation;  // nothing: a page fault
    std::uint32_t merged = 0;                // requests that waited for this walk besides the first
  };

  // The tables it walks all have the same shape.
  PageWalker(const PageWalkerSpec& spec, const WalkCacheSpec& cache, const PageTableSpec& shape);

  // The table is borrowed until the walk has finished.
  Ticket begin(const PageTable& table, std::uint64_t virtual_address, std::uint32_t address_space = 0);
  // Physical addresses of the entries to read, in order. Ends with an empty entry where nothing is mapped.
  std::span<const std::uint64_t> reads(std::uint32_t walk) const {
    const PageTable::Path& path = walks_[walk].path;
    return {path.entry_address.data(), static_cast<std::size_t>(path.count)};
  }
  // All entries were read: the walk caches learn them and the walker is free again.
  Result finish(std::uint32_t walk);

  // Forgets the tables on the way to the address, or all; returns how many entries that were.
  std::int64_t invalidate(std::uint64_t virtual_address, std::uint32_t address_space = 0);
  std::int64_t invalidate_all();

  std::int64_t active() const { return static_cast<std::int64_t>(walks_.size() - free_.size()); }
  bool full() const { return free_.empty(); }
  // Cycles to consult the walk caches, at the beginning of each walk.
  std::int64_t cache_latency() const { return caches_.empty() ? 0 : cache_spec_.latency; }
  const PageWalkerSpec& spec() const { return spec_; }
  const PageWalkerStatistics& statistics() const { return statistics_; }
  // Walks whose longest cached way ended with the entry of this level, 0 being the root.
  std::int64_t cache_hits(int level) const {
    return statistics_.start_level.in_bucket(Histogram::bucket_of(level + 1));
  }

 private:
  struct Key {
    std::uint64_t page = 0;
    std::uint32_t address_space = 0;
    bool active = false;
  };
  struct Walk {
    const PageTable* table = nullptr;
    std::uint64_t virtual_address = 0;
    std::uint32_t merged = 0;
    PageTable::Path path;
  };

  const PageWalkerSpec spec_;
  const WalkCacheSpec cache_spec_;
  int page_shift_ = 0;
  std::vector<Tlb> caches_;  // of each level but the last; the "frame" is the number of the next table
  std::vector<Key> keys_;    // of the walks, apart from them because every request looks at all
  std::vector<Walk> walks_;
  std::vector<std::uint32_t> free_;
  PageWalkerStatistics statistics_;
};

}  // namespace manyscale::memory

namespace manyscale {

template <>
struct describe<memory::WalkCacheSpec> {
  using Spec = memory::WalkCacheSpec;
  static constexpr auto fields = std::tuple{
      Field<Spec, std::int64_t>{"entries", &Spec::entries, Unit::count,
                                "table entries held for each level but the last; 0: no walk cache", 0,
                                1 << 20},
      Field<Spec, std::int64_t>{
          "ways", &Spec::ways, Unit::count,
          "entries of a set, of which the least recently used leaves; 0: one set of all", 0, 1 << 20},
      Field<Spec, std::int64_t>{"latency", &Spec::latency, Unit::cycles, "of a lookup in all levels", 0,
                                1e6}};
};

template <>
struct describe<memory::PageWalkerSpec> {
  using Spec = memory::PageWalkerSpec;
  static constexpr auto fields =
      std::tuple{Field<Spec, std::int64_t>{"concurrent_walks", &Spec::concurrent_walks, Unit::count,
                                           "outstanding walks to different pages", 1, 4096}};
};

template <>
struct describe<memory::PageWalkerStatistics> {
  using S = memory::PageWalkerStatistics;
  static constexpr auto fields = std::tuple{
      Statistic<S, Counter>{"walks", &S::walks, "walk", "walks begun"},
      Statistic<S, Counter>{"merged", &S::merged, "request", "requests that joined an outstanding walk"},
      Statistic<S, Counter>{"refused", &S::refused, "request", "requests that found no walker free"},
      Statistic<S, Counter>{"faults", &S::faults, "walk", "walks that found nothing mapped"},
      Statistic<S, Counter>{"reads", &S::reads, "read", "reads of table entries"},
      Statistic<S, Histogram>{"reads_per_walk", &S::reads_per_walk, "read", "reads that a walk needed"},
      Statistic<S, Histogram>{"start_level", &S::start_level, "level",
                              "level a walk began at: 0 without help of the walk caches, else one below the "
                              "cached entry"}};
};

}  // namespace manyscale
