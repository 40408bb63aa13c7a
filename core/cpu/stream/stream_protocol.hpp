// SPDX-License-Identifier: Apache-2.0
// Stream protocol: the messages between a stream source (a live program or the replay of a trace) and a core.
// The records themselves are in a RecordRing that both access. A source serves many cores and is one
// component, so the actions of a program have one order, that of the messages, on any number of host threads.
#pragma once
#include <cstdint>

#include "cpu/stream/record_ring.hpp"
#include "engine/port.hpp"

namespace manyscale::cpu {

// From a core to its source.
struct StreamRequest {
  enum class Type : std::uint8_t {
    wants_more,  // records before `number` were taken and their slots in the ring are free
    reached,     // record `number`, which halts the stream, is about to take effect: do it, and go on
  };
  std::uint64_t number = 0;
  Type type = Type::wants_more;
};

// From a source to a core.
struct StreamReply {
  enum class Type : std::uint8_t {
    attach,     // comes first: `ring` is where records will be
    available,  // records before `number` are written; the last one may halt the stream
    sleeps,     // no thread of the program can run on this core now; `available` will come when one can
    ends,       // there will be nothing more for this core
  };
  std::uint64_t number = 0;
  RecordRing* ring = nullptr;
  Type type = Type::available;
};

struct StreamProtocol {
  static constexpr std::string_view name = "work";
  static constexpr std::array<std::string_view, 2> roles{"core", "source"};
  using First = StreamRequest;
  using Second = StreamReply;
};

using CorePort = Port<StreamProtocol, 0>;
using SourcePort = Port<StreamProtocol, 1>;

}  // namespace manyscale::cpu
