// SPDX-License-Identifier: Apache-2.0
// Core stream: the stream of one core as its source keeps it: the ring of records, and how far the source and
// the core have come.
#pragma once
#include <cstdint>
#include <utility>

#include "cpu/stream/stream_protocol.hpp"

namespace manyscale::cpu {

struct CoreStream {
  explicit CoreStream(std::int64_t run_ahead_, RecordRing::Contents contents = RecordRing::Contents::executed)
      : ring(static_cast<std::size_t>(run_ahead_), contents),
        run_ahead(static_cast<std::uint64_t>(run_ahead_)) {}

  RecordRing ring;
  std::uint64_t run_ahead;
  std::uint64_t end = 0;        // records before this number are written
  std::uint64_t announced = 0;  // records before this number were announced to the core
  std::uint64_t taken = 0;      // records before this number were taken by the core
  bool delayed = false;         // until a timer resumes it
  bool asleep = false;          // the core knows that it has no thread to run

  // The first number that may not be written yet.
  std::uint64_t limit() const { return taken + run_ahead; }

  void attach(SourcePort& cores, std::uint32_t core) {
    cores.send({0, &ring, StreamReply::Type::attach}, 0, core);
  }
  // Announces the records written since the last announcement; returns how many.
  std::int64_t announce(SourcePort& cores, std::uint32_t core) {
    const auto added = static_cast<std::int64_t>(end - announced);
    if (added == 0) return 0;
    announced = end;
    cores.send({end, nullptr, StreamReply::Type::available}, 0, core);
    return added;
  }
  // Announces that the core has no thread to run; false if that was announced already.
  bool sleep(SourcePort& cores, std::uint32_t core) {
    if (std::exchange(asleep, true)) return false;
    cores.send({end, nullptr, StreamReply::Type::sleeps}, 0, core);
    return true;
  }
};

}  // namespace manyscale::cpu
