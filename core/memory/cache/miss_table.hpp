// SPDX-License-Identifier: Apache-2.0
// Outstanding lines and the accesses that wait for each (MSHRs). The waiters of all lines share one pool.
#pragma once
#include <cstdint>

#include "engine/time.hpp"
#include "memory/flat_map.hpp"
#include "memory/list_pool.hpp"
#include "memory/protocol.hpp"

namespace manyscale::memory {

template <class Waiter>
class MissTable {
 public:
  struct Entry {
    Time since = 0;                        // it is outstanding
    Time since_first = 0;                  // the L1 knew of the miss
    typename ListPool<Waiter>::List list;  // of those who wait
    std::uint32_t waiters = 0;
    Origin origin = nobody;        // of the first who asked for it
    std::uint8_t asked = 0;        // sectors
    std::uint8_t arrived = 0;      // sectors
    bool for_write = false;        // asked with write permission
    bool prefetch = false;         // nobody asked for it yet
    bool to_first = false;         // of prefetch: into the L1, too
    bool outdated = false;         // written meanwhile: not to be kept
    bool fetch = false;            // a fetch of instructions asked for it
    bool alone = false;            // and no level of data reserves an entry for it
    Served served = Served::dram;  // where it was found, once it has arrived
  };

  MissTable(std::int64_t lines, std::int64_t waiters_per_line)
      : lines_(static_cast<std::size_t>(lines)),
        waiters_per_line_(static_cast<std::uint32_t>(waiters_per_line)),
        entries_(static_cast<std::size_t>(lines)) {}

  bool full() const { return entries_.size() >= lines_; }
  std::size_t capacity() const { return lines_; }
  std::size_t size() const { return entries_.size(); }
  Entry* find(std::uint64_t line) { return entries_.find(line); }
  Entry& open(std::uint64_t line, Time now) {
    Entry& entry = entries_[line];
    entry.since = now;
    return entry;
  }
  void close(std::uint64_t line) { entries_.erase(line); }

  template <class Visit>
  void for_each(Visit&& visit) {
    entries_.for_each(visit);
  }

  bool can_wait(const Entry& entry) const { return entry.waiters < waiters_per_line_; }
  void wait(Entry& entry, const Waiter& waiter) {
    waiters_.push(entry.list, waiter);
    ++entry.waiters;
  }
  // The first waiter of an entry that has some.
  const Waiter& front(const Entry& entry) const { return waiters_.front(entry.list); }
  Waiter pop(Entry& entry) {
    --entry.waiters;
    return waiters_.pop(entry.list);
  }

 private:
  std::size_t lines_;
  std::uint32_t waiters_per_line_;
  FlatMap<Entry> entries_;
  ListPool<Waiter> waiters_;
};

}  // namespace manyscale::memory
