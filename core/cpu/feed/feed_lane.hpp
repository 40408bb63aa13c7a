// SPDX-License-Identifier: Apache-2.0
// What is between a feed and one of its cores: the ring of records, and how far each of the two has come.
#pragma once
#include <cstdint>
#include <utility>

#include "cpu/feed/feed_protocol.hpp"

namespace manyscale::cpu {

struct FeedLane {
  explicit FeedLane(std::int64_t run_ahead_)
      : ring(static_cast<std::size_t>(run_ahead_)), run_ahead(static_cast<std::uint64_t>(run_ahead_)) {}

  RecordRing ring;
  std::uint64_t run_ahead;
  std::uint64_t end = 0;        // records before this number are written
  std::uint64_t announced = 0;  // … and the core was told of those before this one
  std::uint64_t taken = 0;      // … and the core is done with those before this one
  bool delayed = false;         // until a timer resumes it
  bool asleep = false;          // the core was told that there is nothing for it to do

  // The number that no record may have yet.
  std::uint64_t limit() const { return taken + run_ahead; }

  void attach(FeedPort& cores, std::uint32_t core) {
    cores.send({0, &ring, FeedAnswer::Kind::attach}, 0, core);
  }
  // Tells the core of what was written since it was told last; gives how many that are.
  std::int64_t announce(FeedPort& cores, std::uint32_t core) {
    const auto added = static_cast<std::int64_t>(end - announced);
    if (added == 0) return 0;
    announced = end;
    cores.send({end, nullptr, FeedAnswer::Kind::available}, 0, core);
    return added;
  }
  // Tells the core that there is nothing for it to do; false if it knows.
  bool sleep(FeedPort& cores, std::uint32_t core) {
    if (std::exchange(asleep, true)) return false;
    cores.send({end, nullptr, FeedAnswer::Kind::sleeps}, 0, core);
    return true;
  }
};

}  // namespace manyscale::cpu
