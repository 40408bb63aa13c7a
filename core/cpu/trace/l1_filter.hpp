// SPDX-License-Identifier: Apache-2.0
// The L1 filter cache: which loads and stores of a thread are certain to hit the L1 cache of any machine that
// a trace is replayed on, namely those to lines that the same stream touched lately. Each thread has a small
// two-way cache with FIFO replacement: lines in use leave it again and again, so that a replay touches them.
// Other threads invalidate lines when they write them, and downgrade them when they read them.
#pragma once
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "cpu/stream/record.hpp"

namespace manyscale::cpu {

// The results of the filters of code and data for an instruction.
struct FilterResult {
  bool misses_l1i = false;  // its line of code may have to be fetched
  bool is_hit = false;      // of a load or a store: it is certain to hit the L1 cache
  // How many instructions back in its stream is what it may have to wait for; 0: nothing.
  std::uint16_t fill = 0;   // the access that missed its line
  std::uint16_t store = 0;  // of a load: the last store to its bytes
};

class L1Filter {
 public:
  // A cache of about so many bytes; of none, nothing hits. Accesses more than `window` instructions back
  // are over. No more than `few_stores` among so many instructions do not fill the store queue.
  L1Filter(std::uint64_t bytes, std::uint64_t line, std::uint64_t window, std::uint64_t few_stores = 0);
  L1Filter() : L1Filter(0, 64, 0) {}

  std::uint64_t bytes() const { return sets_ << (line_bits_ + 1); }

  // An access of a thread: the instruction at this position of a stream. Whether `others` may have its line.
  FilterResult touch(const Record& record, std::uint32_t stream, std::uint64_t position, bool others);

 private:
  static constexpr std::uint64_t no_line = ~std::uint64_t{0};
  static constexpr std::uint64_t stores_kept = 64;  // by address: one for each word of a page's part

  struct Line {
    std::uint64_t line = no_line;
    std::uint64_t position = 0;  // of the access that asked for it
    std::uint32_t stream = 0;
    std::uint64_t first_store = 0;  // position, if it was written
    bool readable = false;          // it was asked for by a load, or long ago
    bool written = false;
  };
  struct Store {
    std::uint64_t word = no_line;
    std::uint64_t position = 0;
    std::uint32_t stream = 0;
  };
  using Set = std::array<Line, 2>;  // the one that came last first
  struct Thread {
    std::vector<Set> sets;
    std::array<Store, stores_kept> stores{};
    std::vector<Store> last_stores;  // a ring
    std::uint64_t next_store = 0;
  };

  Thread& thread_of(const Record& record);
  bool stores_are_few(Thread& thread, std::uint32_t stream, std::uint64_t position) const;
  std::uint16_t last_store(const Thread& thread, const Record& record, std::uint32_t stream,
                           std::uint64_t position) const;
  void take_from_others(std::uint16_t thread, std::uint64_t line, bool writes);

  std::uint64_t sets_, line_mask_, window_, few_stores_;
  int line_bits_;
  std::vector<Thread> threads_;
  // How often threads took lines from each other. Where they do it again and again, how they take turns
  // follows from the machine, and nothing is sure.
  std::unordered_map<std::uint64_t, std::uint32_t> conflicts_;
};

}  // namespace manyscale::cpu
