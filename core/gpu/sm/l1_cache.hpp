// SPDX-License-Identifier: Apache-2.0
// The L1 data cache of an SM: sectored lines, write-through, and the MSHRs: outstanding lines with the loads
// that wait for them. Values are not kept: the functional model has them. Leaves out: the limit of merged
// loads per line.
#pragma once
#include <cstdint>
#include <vector>

#include "memory/flat_map.hpp"

namespace manyscale::gpu {

class L1Cache {
 public:
  L1Cache(std::uint64_t bytes, std::uint64_t line_bytes, std::uint64_t ways)
      : line_bytes_(line_bytes), ways_(ways) {
    resize(bytes);
  }

  // Changes the capacity (shared memory takes more or less of it) and forgets all lines.
  void resize(std::uint64_t bytes) {
    sets_ = bytes / line_bytes_ / ways_;
    if (sets_ == 0) sets_ = 1;
    lines_.assign(sets_ * ways_, Line{});
  }
  void invalidate() { std::fill(lines_.begin(), lines_.end(), Line{}); }

  // Which of the wanted sectors are there; the line becomes the one used last.
  std::uint8_t look_up(std::uint64_t line, std::uint8_t wanted) {
    Line* found = find(line);
    if (found == nullptr) return 0;
    found->used = ++time_;
    return static_cast<std::uint8_t>(found->sectors & wanted);
  }

  // Sectors have arrived.
  void fill(std::uint64_t line, std::uint8_t sectors) {
    Line* found = find(line);
    if (found == nullptr) {
      Line* set = set_of(line);
      found = set;
      for (std::uint64_t way = 1; way < ways_; ++way)
        if (set[way].used < found->used) found = &set[way];
      *found = {line, 0, 0};
    }
    found->sectors |= sectors;
    found->used = ++time_;
  }

  // Sectors are written elsewhere (an atomic operation at the L2): this copy is out of date.
  void drop(std::uint64_t line, std::uint8_t sectors) {
    if (Line* found = find(line)) found->sectors &= static_cast<std::uint8_t>(~sectors);
  }

 private:
  struct Line {
    std::uint64_t address = ~std::uint64_t{0};
    std::uint64_t used = 0;
    std::uint8_t sectors = 0;
  };

  // The address above the line is folded in, so that strides of powers of two meet all sets.
  Line* set_of(std::uint64_t line) {
    const std::uint64_t number = line / line_bytes_;
    return &lines_[(number ^ number / sets_ ^ number / sets_ / sets_) % sets_ * ways_];
  }
  Line* find(std::uint64_t line) {
    Line* set = set_of(line);
    for (std::uint64_t way = 0; way < ways_; ++way)
      if (set[way].address == line) return &set[way];
    return nullptr;
  }

  std::uint64_t line_bytes_;
  std::uint64_t ways_;
  std::uint64_t sets_ = 1;
  std::uint64_t time_ = 0;
  std::vector<Line> lines_;
};

// Lines on their way from the L2, and who waits for which of their sectors.
class PendingLines {
 public:
  struct Waiter {
    std::uint32_t load;  // the SM's number for it
    std::uint32_t next;  // in the list of the line; kEnd: the last
    std::uint8_t sectors;
  };
  static constexpr std::uint32_t kEnd = ~std::uint32_t{0};

  std::size_t lines() const { return pending_.size(); }
  bool contains(std::uint64_t line) { return pending_.find(line) != nullptr; }

  // The sectors of the line that nobody has asked for yet.
  std::uint8_t not_asked(std::uint64_t line, std::uint8_t wanted) {
    const Pending* found = pending_.find(line);
    return found == nullptr ? wanted : static_cast<std::uint8_t>(wanted & ~found->asked);
  }
  // The load waits for sectors of the line, of which `asked` are newly asked for.
  void wait(std::uint64_t line, std::uint8_t wanted, std::uint8_t asked, std::uint32_t load) {
    Pending& pending = pending_[line];
    if (pending.asked == 0) pending.waiters = kEnd;
    pending.asked |= asked;
    std::uint32_t id = free_;
    if (id == kEnd) {
      id = static_cast<std::uint32_t>(waiters_.size());
      waiters_.push_back({});
    } else {
      free_ = waiters_[id].next;
    }
    waiters_[id] = {load, pending.waiters, wanted};
    pending.waiters = id;
  }
  // Sectors have arrived: calls done(load) for each load that waits for none of this line any more.
  template <class Done>
  void arrive(std::uint64_t line, std::uint8_t sectors, Done done) {
    Pending* pending = pending_.find(line);
    if (pending == nullptr) return;
    pending->arrived |= sectors;
    std::uint32_t* link = &pending->waiters;
    while (*link != kEnd) {
      const std::uint32_t id = *link;
      Waiter& waiter = waiters_[id];
      if ((waiter.sectors & ~pending->arrived) != 0) {
        link = &waiter.next;
        continue;
      }
      *link = waiter.next;
      const std::uint32_t load = waiter.load;
      waiter.next = free_;
      free_ = id;
      done(load);
    }
    if (pending->arrived == pending->asked) pending_.erase(line);
  }

 private:
  struct Pending {
    std::uint32_t waiters = kEnd;
    std::uint8_t asked = 0;
    std::uint8_t arrived = 0;
  };
  memory::FlatMap<Pending> pending_;
  std::vector<Waiter> waiters_;
  std::uint32_t free_ = kEnd;
};

}  // namespace manyscale::gpu
