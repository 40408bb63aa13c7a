// SPDX-License-Identifier: Apache-2.0
// What a feed (the source of records: a running program or a recorded trace) and a core tell each other. The
// records themselves lie in a RecordRing that both know. A feed serves many cores and is one component, so
// that everything a program does happens in one order, that of the messages, on any number of host threads.
#pragma once
#include <cstdint>

#include "cpu/feed/record_ring.hpp"
#include "engine/port.hpp"

namespace manyscale::cpu {

// From core to feed.
struct FeedRequest {
  enum class Kind : std::uint8_t {
    wants_more,  // records before `number` were taken and their places in the ring are free
    reached,     // record `number`, which halts the feed, is about to take effect: do it, and go on
  };
  std::uint64_t number = 0;
  Kind kind = Kind::wants_more;
};

// From feed to core.
struct FeedAnswer {
  enum class Kind : std::uint8_t {
    attach,     // comes first: `ring` is where records will be
    available,  // records before `number` are there; after them the feed runs on, or halts at the last one
    sleeps,     // no thread of the program can run on this core now; `available` will come when one can
    ends,       // there will be nothing more for this core
  };
  std::uint64_t number = 0;
  RecordRing* ring = nullptr;
  Kind kind = Kind::available;
};

struct FeedProtocol {
  static constexpr std::string_view name = "work";
  static constexpr std::array<std::string_view, 2> roles{"core", "feed"};
  using First = FeedRequest;
  using Second = FeedAnswer;
};

using CorePort = Port<FeedProtocol, 0>;
using FeedPort = Port<FeedProtocol, 1>;

}  // namespace manyscale::cpu
