// SPDX-License-Identifier: Apache-2.0
// The address translation of one core: two levels of TLB, one page walker and the page table behind it. The
// core that embeds it reads the page-table entries of a walk through its own caches.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/component.hpp"
#include "memory/translation/page_table.hpp"
#include "memory/translation/page_walker.hpp"
#include "memory/translation/tlb.hpp"

namespace manyscale::memory {

struct TranslationSpec {
  bool enabled = false;
  TlbSpec l1{.entries = 64, .ways = 4, .latency = 0};
  TlbSpec l2{.entries = 1536, .ways = 12, .latency = 7};
  WalkCacheSpec walk_cache{};
  PageTableSpec page_table{};
  std::int64_t memory_size = std::int64_t{1} << 40;
  std::string placement = "identity";
};

class Translator {
 public:
  explicit Translator(const TranslationSpec& spec)
      : frames_({.memory_size = spec.memory_size, .placement = spec.placement}),
        table_(spec.page_table, frames_),
        tlbs_({{spec.l1}, {spec.l2}}),
        walker_({.concurrent_walks = 1}, spec.walk_cache, spec.page_table) {}

  TlbLookup lookup(std::uint64_t virtual_address) { return tlbs_.lookup(virtual_address); }

  // Begins a walk, mapping the page if it is touched for the first time: the entries to read, one after the
  // other.
  std::span<const std::uint64_t> begin_walk(std::uint64_t virtual_address) {
    try {
      table_.touch(virtual_address);
    } catch (const std::runtime_error& error) {
      throw SimulationError(error.what());
    }
    walk_ = walker_.begin(table_, virtual_address).walk;
    return walker_.reads(walk_);
  }
  // All entries were read: the translation is in the TLBs.
  void finish_walk(std::uint64_t virtual_address) {
    const auto result = walker_.finish(walk_);
    tlbs_.fill(virtual_address, 0, result.translation->of(virtual_address),
               static_cast<std::int64_t>(result.translation->page_size));
  }

  // Cycles to look into the walk caches before the first read.
  std::int64_t walk_latency() const { return walker_.cache_latency(); }

  const TlbStatistics& tlb_statistics(int level) const { return tlbs_.statistics(level); }
  const PageWalkerStatistics& walker_statistics() const { return walker_.statistics(); }

 private:
  FrameAllocator frames_;
  PageTable table_;
  TlbHierarchy tlbs_;
  PageWalker walker_;
  std::uint32_t walk_ = 0;
};

}  // namespace manyscale::memory

namespace manyscale {

template <>
struct describe<memory::TranslationSpec> {
  using S = memory::TranslationSpec;
  static constexpr auto fields = std::tuple{
      Field<S, bool>{"enabled", &S::enabled, Unit::none, "whether addresses are virtual"},
      Section<S, memory::TlbSpec>{"l1", &S::l1, "L1 TLB"},
      Section<S, memory::TlbSpec>{"l2", &S::l2, "L2 TLB"},
      Section<S, memory::WalkCacheSpec>{"walk_cache", &S::walk_cache, "caches of upper page-table entries"},
      Section<S, memory::PageTableSpec>{"page_table", &S::page_table, "shape of the page table"},
      Field<S, std::int64_t>{"memory_size", &S::memory_size, Unit::bytes,
                             "physical memory that holds the pages", 4096, 1e15},
      Field<S, std::string>{"placement", &S::placement, Unit::none,
                            "where pages go on first touch: identity, sequential or random"}};
};

}  // namespace manyscale
