// SPDX-License-Identifier: Apache-2.0
// Translation lookaside buffers: parts without events that a core, an SM or a GMMU owns and calls.
#pragma once
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/spec.hpp"
#include "engine/statistics.hpp"

namespace manyscale::memory {

struct TlbSpec {
  std::int64_t entries = 64;
  std::int64_t ways = 0;
  std::int64_t page_size = 4096;
  std::int64_t latency = 1;
};

struct TlbStatistics {
  Counter hits;
  Counter misses;
  Counter evictions;
  Counter shootdowns;
};

// Stands for one translation buffer with true LRU replacement; leaves out permissions, global pages and the
// ports it is looked up through. Every organisation is found through one hash index, and each set is a ring
// of slots from the most to the least recently used, so the cost does not grow with entries or ways.
class Tlb {
 public:
  explicit Tlb(const TlbSpec& spec);

  // The frame number (physical address / page size) of the page, which becomes the most recently used.
  std::optional<std::uint64_t> lookup(std::uint64_t virtual_address, std::uint32_t address_space = 0) {
    const auto frame = find(virtual_address, address_space);
    if (frame != nullptr) {
      ++statistics_.hits;
      return *frame;
    }
    ++statistics_.misses;
    return std::nullopt;
  }
  // As lookup, but not counted.
  const std::uint64_t* find(std::uint64_t virtual_address, std::uint32_t address_space) {
    const std::uint32_t slot = slot_of(virtual_address >> page_shift_, address_space);
    if (slot == none) return nullptr;
    make_first(slot);
    return &entries_[slot].frame;
  }
  // Whether the page is held; counts nothing and changes no order.
  bool holds(std::uint64_t virtual_address, std::uint32_t address_space = 0) const {
    return slot_of(virtual_address >> page_shift_, address_space) != none;
  }

  // Enters a translation, or changes one that is held; true where another one had to leave for it.
  bool fill(std::uint64_t virtual_address, std::uint32_t address_space, std::uint64_t frame);

  // Each returns how many entries it removed.
  std::int64_t invalidate(std::uint64_t virtual_address, std::uint32_t address_space = 0);
  std::int64_t invalidate_range(std::uint64_t virtual_address, std::uint64_t bytes,
                                std::uint32_t address_space = 0);
  std::int64_t invalidate_address_space(std::uint32_t address_space);
  std::int64_t invalidate_all();

  std::int64_t size() const { return size_; }
  std::int64_t page_size() const { return spec_.page_size; }
  int page_shift() const { return page_shift_; }
  const TlbSpec& spec() const { return spec_; }
  const TlbStatistics& statistics() const { return statistics_; }

 private:
  static constexpr std::uint32_t none = 0xffffffff;

  struct Entry {
    std::uint64_t page = 0;
    std::uint64_t frame = 0;
    std::uint32_t address_space = 0;
    std::uint32_t set = 0;
    std::uint32_t newer = 0;  // neighbours in the ring of the set
    std::uint32_t older = 0;
    bool valid = false;
  };
  struct Cell {
    std::uint64_t page = 0;
    std::uint32_t address_space = 0;
    std::uint32_t slot = none;
  };

  std::uint32_t home_of(std::uint64_t page, std::uint32_t address_space) const {
    const std::uint64_t key = page ^ static_cast<std::uint64_t>(address_space) << 40;
    return static_cast<std::uint32_t>(key * 0x9e3779b97f4a7c15u >> index_shift_);
  }
  std::uint32_t slot_of(std::uint64_t page, std::uint32_t address_space) const {
    for (std::uint32_t cell = home_of(page, address_space);; cell = (cell + 1) & index_mask_) {
      const Cell& found = index_[cell];
      if (found.slot == none) return none;
      if (found.page == page && found.address_space == address_space) return found.slot;
    }
  }
  void make_first(std::uint32_t slot) {
    Entry& entry = entries_[slot];
    std::uint32_t& first = newest_[entry.set];
    if (first == slot) return;
    move_before(slot, first);
    first = slot;
  }
  // Puts a slot between the given one of the same ring and that one's newer neighbour.
  void move_before(std::uint32_t slot, std::uint32_t other) {
    Entry& entry = entries_[slot];
    entries_[entry.newer].older = entry.older;
    entries_[entry.older].newer = entry.newer;
    entry.newer = entries_[other].newer;
    entry.older = other;
    entries_[entry.newer].older = slot;
    entries_[other].newer = slot;
  }
  void enter_index(std::uint32_t slot);
  void leave_index(std::uint32_t slot);
  void remove(std::uint32_t slot);

  const TlbSpec spec_;
  int page_shift_ = 0;
  int index_shift_ = 0;
  std::uint32_t index_mask_ = 0;
  std::uint64_t sets_ = 1;
  std::int64_t size_ = 0;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> newest_;  // of each set; the slot before it in the ring is the oldest
  std::vector<Cell> index_;            // open addressing, at most a quarter full
  TlbStatistics statistics_;
};

// What a hierarchy answers.
struct TlbLookup {
  static constexpr int missed = -1;

  std::uint64_t physical_address = 0;  // of the byte asked for
  std::int64_t page_size = 0;          // of the entry that knew it
  std::int64_t latency = 0;            // cycles in all levels asked
  int level = missed;                  // that knew it, counted from 0

  bool hit() const { return level != missed; }
};

// Stands for the levels of translation buffers before a page walk; leaves out contention between levels. A
// level holds one buffer or several for different page sizes, looked up at the same time. A page larger than
// any size a level has is held there as a piece of the largest size that fits.
class TlbHierarchy {
 public:
  explicit TlbHierarchy(const std::vector<std::vector<TlbSpec>>& levels);

  // Asks level after level; what a later level knows is filled into those before it.
  TlbLookup lookup(std::uint64_t virtual_address, std::uint32_t address_space = 0) {
    const int count = static_cast<int>(levels_.size());
    for (int number = 0; number < count; ++number) {
      Level& level = levels_[static_cast<std::size_t>(number)];
      for (Tlb& tlb : level.tlbs) {
        if (tlb.size() == 0) continue;  // most often that of a page size that nobody uses
        const std::uint64_t* frame = tlb.find(virtual_address, address_space);
        if (frame == nullptr) continue;
        ++level.statistics.hits;
        const std::uint64_t offset = virtual_address & (static_cast<std::uint64_t>(tlb.page_size()) - 1);
        const TlbLookup found{*frame << tlb.page_shift() | offset, tlb.page_size(), level.latency, number};
        for (int above = 0; above < number; ++above) {
          fill_level(levels_[static_cast<std::size_t>(above)], virtual_address, address_space,
                     found.physical_address, found.page_size);
        }
        return found;
      }
      ++level.statistics.misses;
    }
    return {0, 0, levels_.back().latency, TlbLookup::missed};
  }
  // Enters the translation of the page around the address into all levels.
  void fill(std::uint64_t virtual_address, std::uint32_t address_space, std::uint64_t physical_address,
            std::int64_t page_size) {
    for (Level& level : levels_) {
      fill_level(level, virtual_address, address_space, physical_address, page_size);
    }
  }

  // Shootdowns: of a page of the given size with all its pieces, of an address space, of everything. Each
  // returns how many entries it removed.
  std::int64_t invalidate(std::uint64_t virtual_address, std::uint32_t address_space, std::int64_t page_size);
  std::int64_t invalidate_address_space(std::uint32_t address_space);
  std::int64_t invalidate_all();

  int levels() const { return static_cast<int>(levels_.size()); }
  const TlbStatistics& statistics(int level) const {
    return levels_.at(static_cast<std::size_t>(level)).statistics;
  }

 private:
  struct Level {
    std::vector<Tlb> tlbs;     // from small to large pages
    std::int64_t latency = 0;  // cycles up to and including this level
    TlbStatistics statistics;  // of the level as a whole
  };

  static void fill_level(Level& level, std::uint64_t virtual_address, std::uint32_t address_space,
                         std::uint64_t physical_address, std::int64_t page_size) {
    for (auto tlb = level.tlbs.rbegin(); tlb != level.tlbs.rend(); ++tlb) {
      if (tlb->page_size() > page_size) continue;
      if (tlb->fill(virtual_address, address_space, physical_address >> tlb->page_shift())) {
        ++level.statistics.evictions;
      }
      return;
    }
  }
  template <class Action>
  std::int64_t shoot_down(Action&& action);

  std::vector<Level> levels_;
};

}  // namespace manyscale::memory

namespace manyscale {

template <>
struct describe<memory::TlbSpec> {
  using Spec = memory::TlbSpec;
  static constexpr auto fields = std::tuple{
      Field<Spec, std::int64_t>{"entries", &Spec::entries, Unit::count, "translations held", 1, 1 << 24},
      Field<Spec, std::int64_t>{
          "ways", &Spec::ways, Unit::count,
          "entries of a set, of which the least recently used leaves; 0: one set of all", 0, 1 << 24},
      Field<Spec, std::int64_t>{"page_size", &Spec::page_size, Unit::bytes,
                                "bytes an entry translates, a power of two", 64, 1LL << 40},
      Field<Spec, std::int64_t>{"latency", &Spec::latency, Unit::cycles, "of a lookup, hit or miss", 0, 1e6}};
};

template <>
struct describe<memory::TlbStatistics> {
  using S = memory::TlbStatistics;
  static constexpr auto fields =
      std::tuple{Statistic<S, Counter>{"hits", &S::hits, "lookup", "lookups that found the page"},
                 Statistic<S, Counter>{"misses", &S::misses, "lookup", "lookups that did not"},
                 Statistic<S, Counter>{"evictions", &S::evictions, "entry", "entries that left to make room"},
                 Statistic<S, Counter>{"shootdowns", &S::shootdowns, "entry",
                                       "entries removed because they were invalid"}};
};

}  // namespace manyscale
