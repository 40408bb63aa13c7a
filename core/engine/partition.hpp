// SPDX-License-Identifier: Apache-2.0
// A partition: components that one thread runs together, with their pending events and what they send to
// other partitions.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "engine/event.hpp"
#include "engine/queue.hpp"

namespace manyscale {

// Aligned so that two threads never write to one cache line.
struct alignas(128) Partition {
  std::uint32_t index = 0;
  Time now = 0;
  bool stop_requested = false;
  std::uint64_t events = 0;
  std::unique_ptr<EventQueue> queue;

  // Events for other partitions, two sets used in turn: while the others read one, this thread fills the
  // other.
  struct Outgoing {
    std::vector<std::vector<Event>> to;
    Time earliest = never;
    std::uint64_t receivers = 0;  // a bit for each, those 64 apart sharing one
  };
  std::array<Outgoing, 2> outgoing;
  std::uint32_t turn = 0;

  // What a handler threw, and the event it was handling.
  std::exception_ptr error;
  Time error_time = 0;
  std::uint64_t error_order = 0;

  static std::uint64_t receiver_bit(std::uint32_t partition) { return std::uint64_t{1} << partition % 64; }
  void deliver(std::uint32_t partition, const Event& event) {
    if (partition == index) {
      queue->push(event);
    } else {
      Outgoing& out = outgoing[turn];
      out.to[partition].push_back(event);
      out.earliest = std::min(out.earliest, event.time);
      out.receivers |= receiver_bit(partition);
    }
  }
};

}  // namespace manyscale
