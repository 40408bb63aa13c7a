// SPDX-License-Identifier: Apache-2.0
// Pending-translation queue of an SM: accesses of lines that wait for the translation of their page.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "gpu/uvm/managed_ranges.hpp"
#include "memory/flat_map.hpp"

namespace manyscale::gpu {

// An access of one line, with all that is needed to resume it.
struct PendingAccess {
  enum class Operation : std::uint8_t { read, write, atomic, reduction };

  std::uint64_t line = 0;   // address
  std::uint32_t owner = 0;  // the load that waits for it; of writes and reductions the warp
  std::uint8_t sectors = 0;
  std::uint8_t tag = 0;  // as LineAccess::tag
  Operation operation = Operation::read;

  bool writes() const { return operation != Operation::read; }
  // Whether a load waits for it.
  bool has_result() const { return operation == Operation::read || operation == Operation::atomic; }
};

// The pending accesses by page; each page has one outstanding translation request.
class PendingTranslations {
 public:
  struct Page {
    std::vector<PendingAccess> accesses;  // in the order of their arrival
    std::uint64_t number = 0;
    bool faulted = false;  // the page has to migrate from the host
  };

  // The entry of the page around an address, and whether it is new.
  std::pair<std::uint32_t, bool> entry_of(std::uint64_t address) {
    const std::uint64_t number = address / kPageBytes;
    if (const std::uint32_t* found = by_page_.find(number)) return {*found, false};
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(pages_.size()));
      pages_.emplace_back();
    }
    const std::uint32_t entry = free_.back();
    free_.pop_back();
    pages_[entry].number = number;
    by_page_.insert_new(number, entry);
    return {entry, true};
  }
  Page& at(std::uint32_t entry) { return pages_[entry]; }
  // Frees an entry and returns its accesses.
  std::vector<PendingAccess> take(std::uint32_t entry) {
    Page& page = pages_[entry];
    by_page_.erase(page.number);
    free_.push_back(entry);
    page.faulted = false;
    return std::exchange(page.accesses, {});
  }
  std::size_t pages() const { return by_page_.size(); }

 private:
  memory::FlatMap<std::uint32_t> by_page_;
  std::vector<Page> pages_;
  std::vector<std::uint32_t> free_;
};

}  // namespace manyscale::gpu
