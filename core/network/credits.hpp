// SPDX-License-Identifier: Apache-2.0
// Credits: what the sending end of a virtual channel knows about the room in the buffer at the other end, now
// and in the future. Room comes back when a packet leaves the buffer, packet by packet where a train leaves
// it; both ends note when, so that nothing has to happen at that moment unless somebody waits for it.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/time.hpp"
#include "network/topology.hpp"

namespace manyscale::network {

// Room that comes back, all of it by `last`: one packet after the other, at the pace of the wire.
struct Drain {
  Time last = 0;
  std::uint32_t bytes = 0;
  std::uint32_t next = nowhere;
};

// Drains that do not fit into their Credits.
class DrainPool {
 public:
  Drain& operator[](std::uint32_t index) { return drains_[index]; }
  std::uint32_t take(const Drain& drain) {
    if (free_ == nowhere) {
      drains_.push_back(drain);
      return static_cast<std::uint32_t>(drains_.size() - 1);
    }
    const std::uint32_t index = free_;
    free_ = drains_[index].next;
    drains_[index] = drain;
    return index;
  }
  void give_back(std::uint32_t index) {
    drains_[index].next = free_;
    free_ = index;
  }

 private:
  std::vector<Drain> drains_;
  std::uint32_t free_ = nowhere;
};

// Fills a cache line. Few drains are in flight at a time as a rule: the first are kept here, others in a
// list.
struct alignas(64) Credits {
  std::int32_t available = 0;  // negative when more is promised to packets than has come back so far
  std::uint32_t kept = 0;      // drains in `first`
  std::uint32_t next_drain = nowhere, last_drain = nowhere;
  std::uint32_t last_waiting = nowhere;  // of the packets in flight that wait for room, in a circle
  std::uint32_t last_new = nowhere;      // of those from nodes, which come after them
  Time wake = never;                     // when the first of those is looked at again

  bool awaited() const { return last_waiting != nowhere || last_new != nowhere; }

  // Notes room that will have come back by `last`; packets need not leave in the order in which they came.
  void add(Time last, std::uint32_t bytes, DrainPool& pool) {
    Drain drain{last, bytes, nowhere};
    for (std::uint32_t i = 0; i < kept; ++i)
      if (drain.last < first[i].last) std::swap(drain, first[i]);
    drain.next = nowhere;
    if (next_drain == nowhere && kept < first.size()) {
      first[kept++] = drain;
      return;
    }
    const std::uint32_t index = pool.take(drain);
    if (next_drain == nowhere) {
      next_drain = last_drain = index;
    } else if (pool[last_drain].last <= drain.last) {
      pool[last_drain].next = index;
      last_drain = index;
    } else {
      std::uint32_t before = nowhere, after = next_drain;
      while (pool[after].last <= drain.last) {
        before = after;
        after = pool[after].next;
      }
      pool[index].next = after;
      (before == nowhere ? next_drain : pool[before].next) = index;
    }
  }

  // Counts what has come back by now.
  void absorb(Time now, DrainPool& pool) {
    while (kept > 0 && first[0].last <= now) {
      available += static_cast<std::int32_t>(first[0].bytes);
      first[0] = first[1];
      if (next_drain == nowhere) {
        --kept;
        continue;
      }
      const std::uint32_t index = next_drain;
      first[1] = pool[index];
      next_drain = pool[index].next;
      pool.give_back(index);
    }
  }

  // The earliest time from `time` on at which a unit can begin to leave: there is room for its first packet
  // then, and for half of the others by when they have left. Packets one by one would go on until the room is
  // used up, and on average half of a train would have left by then. `never` if the time is not known yet.
  // Packets have `packet` bytes, and `kept_free` must be free besides.
  Time when_room(std::int64_t bytes, std::int64_t kept_free, std::int64_t packet, Time time, const Rate& rate,
                 DrainPool& pool) {
    absorb(time, pool);
    const std::int64_t half = std::max<std::int64_t>(0, bytes - packet) / 2;
    const std::int64_t head = std::min(bytes, packet) + kept_free;
    if (available >= head + half) return time;
    const Time for_head = when_available(head, packet, rate, pool);
    if (for_head == never || half == 0) return std::max(time, for_head);
    const Time for_half = when_available(head + half, packet, rate, pool);
    if (for_half == never) return never;
    return std::max({time, for_head, for_half - rate(static_cast<std::uint64_t>(half))});
  }

 private:
  std::array<Drain, 2> first{};

  Time when_available(std::int64_t bytes, std::int64_t packet, const Rate& rate, DrainPool& pool) const {
    std::int64_t sum = available;
    if (sum >= bytes) return 0;
    std::uint32_t index = next_drain;
    for (std::uint32_t i = 0; i < kept || index != nowhere; ++i) {
      const Drain& drain = i < kept ? first[i] : pool[index];
      if (i >= kept) index = drain.next;
      const std::int64_t missing = bytes - sum;
      sum += drain.bytes;
      if (sum < bytes) continue;
      // What is not needed yet may come later, but no packet comes back in parts.
      const std::int64_t rest = std::min(drain.bytes - missing, drain.bytes - packet);
      return rest > 0 ? drain.last - rate(static_cast<std::uint64_t>(rest)) : drain.last;
    }
    return never;
  }
};
static_assert(sizeof(Credits) == 64);

}  // namespace manyscale::network
