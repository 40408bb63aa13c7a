// SPDX-License-Identifier: Apache-2.0
// The address translation of one core: a TLB for instructions, one for data, an L2 TLB for both, and
// page walkers that read page tables through the core's caches. Addresses are those of records, which are
// unique over all processes, so pages of different processes never meet. The tables of each level lie in a
// range of addresses of their own, in the order of the pages they translate, so that all cores that walk to a
// page read the same entries. Leaves out: large pages beside small ones, permissions and faults.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/spec.hpp"
#include "engine/statistics.hpp"
#include "memory/cache/private_caches.hpp"
#include "memory/translation/tlb.hpp"

namespace manyscale::cpu {

struct TlbSizeSpec {
  std::int64_t entries = 64;
  std::int64_t ways = 4;
  std::int64_t latency = 0;
};

struct TranslationUnitSpec {
  bool enabled = false;
  TlbSizeSpec instruction{.entries = 128, .ways = 4, .latency = 0};
  TlbSizeSpec data{.entries = 64, .ways = 4, .latency = 0};
  TlbSizeSpec second{.entries = 1536, .ways = 12, .latency = 7};
  TlbSizeSpec walk_cache{.entries = 16, .ways = 0, .latency = 0};
  std::int64_t page_size = 4096;
  std::int64_t levels = 3;
  std::int64_t walkers = 1;
  std::int64_t walk_penalty = 0;
};

struct TranslationUnitStatistics {
  Counter instruction_hits, instruction_misses, data_hits, data_misses, second_hits, second_misses;
  Counter walks, walk_reads, joined, refused;
};

class TranslationUnit {
 public:
  enum class Side : std::uint8_t { instruction, data };

  struct Lookup {
    enum class Outcome : std::uint8_t {
      known,   // the address is translated after `cycles`
      walk,    // a walk begins after `cycles`: call proceed() until it is done
      joined,  // a walk to this page is outstanding: wait for it
      full,    // no walker is free: look up again when a walk is done
    };
    Outcome outcome = Outcome::known;
    std::int64_t cycles = 0;
    std::uint32_t walk = 0;  // of walk and joined
  };

  // Where a walk has got to.
  struct Progress {
    enum class Status : std::uint8_t {
      done,     // at `ready` the page is in the TLBs and the walker is free
      waiting,  // the owner's access_done will come for the token: then call proceed() again
      blocked,  // the caches had no free MSHR: call proceed() again when they are unblocked
    };
    Status status = Status::done;
    Time ready = 0;
  };

  explicit TranslationUnit(const TranslationUnitSpec& spec);

  Lookup lookup(std::uint64_t address, Side side) {
    if (!spec_.enabled) return {};
    const std::uint64_t page = address >> page_shift_;
    std::uint64_t& last = last_page_[static_cast<std::size_t>(side)];
    if (page == last) {  // nothing else was used since, so the order of use stays as it is
      ++(side == Side::instruction ? statistics_.instruction_hits : statistics_.data_hits);
      return {Lookup::Outcome::known, first_latency_[static_cast<std::size_t>(side)], 0};
    }
    return look_up_page(address, side);
  }
  // Reads the entries that are left, as far as the caches answer at once, from `when` on. `token` is what the
  // owner knows the walk's accesses by.
  Progress proceed(std::uint32_t walk, memory::PrivateCaches& caches, Time when, std::uint32_t token);

  std::int64_t active() const { return static_cast<std::int64_t>(walks_.size() - free_.size()); }
  const TranslationUnitStatistics& statistics() const { return statistics_; }

 private:
  struct Walk {
    std::uint64_t address = 0;
    bool for_side[2] = {false, false};  // whose TLB it fills
    int level = 0;                      // whose entry is read next, 0 being the root
    bool active = false;
  };

  Lookup look_up_page(std::uint64_t address, Side side);
  void finish(std::uint32_t walk);
  void fill(std::uint64_t address, Side side);
  int shift_of(int level) const { return page_shift_ + bits_per_level * (levels_ - 1 - level); }
  std::uint64_t entry_address(std::uint64_t address, int level) const;

  static constexpr int bits_per_level = 9;
  static constexpr std::uint64_t no_page = ~std::uint64_t{0};

  const TranslationUnitSpec spec_;
  int page_shift_ = 12;
  int levels_ = 3;
  std::uint64_t last_page_[2] = {no_page, no_page};
  std::int64_t first_latency_[2] = {0, 0};
  memory::Tlb first_[2];
  std::optional<memory::Tlb> second_;
  std::vector<memory::Tlb> walk_caches_;  // of each level but the last: tables that are known
  std::vector<Walk> walks_;
  std::vector<std::uint32_t> free_;
  TranslationUnitStatistics statistics_;
};

}  // namespace manyscale::cpu

namespace manyscale {

template <>
struct describe<cpu::TlbSizeSpec> {
  using S = cpu::TlbSizeSpec;
  static constexpr auto fields = std::tuple{
      Field<S, std::int64_t>{"entries", &S::entries, Unit::count, "translations held; 0: there is none", 0,
                             1 << 20},
      Field<S, std::int64_t>{"ways", &S::ways, Unit::count,
                             "entries of a set, of which the least recently used leaves; 0: one set of all",
                             0, 1 << 20},
      Field<S, std::int64_t>{"latency", &S::latency, Unit::cycles,
                             "cycles that a look-up adds, hit or miss; 0: it is hidden", 0, 1e6}};
};

template <>
struct describe<cpu::TranslationUnitSpec> {
  using S = cpu::TranslationUnitSpec;
  static constexpr auto fields = std::tuple{
      Field<S, bool>{"enabled", &S::enabled, Unit::none, "whether translation takes time"},
      Section<S, cpu::TlbSizeSpec>{"instruction", &S::instruction, "L1 instruction TLB"},
      Section<S, cpu::TlbSizeSpec>{"data", &S::data, "L1 data TLB"},
      Section<S, cpu::TlbSizeSpec>{"second", &S::second, "L2 TLB, for both"},
      Section<S, cpu::TlbSizeSpec>{"walk_cache", &S::walk_cache,
                                   "cache of table entries, one for each level but the last"},
      Field<S, std::int64_t>{"page_size", &S::page_size, Unit::bytes, "of all pages, a power of two", 4096,
                             1LL << 30},
      Field<S, std::int64_t>{"levels", &S::levels, Unit::count,
                             "tables on the way to a page, each selected from by 9 bits", 1, 6},
      Field<S, std::int64_t>{"walkers", &S::walkers, Unit::count, "outstanding page walks", 1, 64},
      Field<S, std::int64_t>{"walk_penalty", &S::walk_penalty, Unit::cycles,
                             "what a walk takes, whatever the caches hold; 0: it reads its entries through "
                             "the caches",
                             0, 1e6}};
};

template <>
struct describe<cpu::TranslationUnitStatistics> {
  using S = cpu::TranslationUnitStatistics;
  static constexpr auto fields = std::tuple{
      Statistic<S, Counter>{"instruction_hits", &S::instruction_hits, "lookup",
                            "look-ups that the TLB of instructions knew"},
      Statistic<S, Counter>{"instruction_misses", &S::instruction_misses, "lookup",
                            "look-ups that it did not know"},
      Statistic<S, Counter>{"data_hits", &S::data_hits, "lookup", "look-ups that the TLB of data knew"},
      Statistic<S, Counter>{"data_misses", &S::data_misses, "lookup", "look-ups that it did not know"},
      Statistic<S, Counter>{"second_hits", &S::second_hits, "lookup", "look-ups that hit the L2 TLB"},
      Statistic<S, Counter>{"second_misses", &S::second_misses, "lookup", "look-ups that it did not know"},
      Statistic<S, Counter>{"walks", &S::walks, "walk", "page walks"},
      Statistic<S, Counter>{"walk_reads", &S::walk_reads, "read", "reads of table entries"},
      Statistic<S, Counter>{"joined", &S::joined, "lookup", "look-ups that waited for a walk to their page"},
      Statistic<S, Counter>{"refused", &S::refused, "lookup", "look-ups that found no walker free"}};
};

}  // namespace manyscale
