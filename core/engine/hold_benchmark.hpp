// SPDX-License-Identifier: Apache-2.0
// The hold model: take the first event out, put it back an exponentially distributed time later, over and
// over. The usual measure of an event queue at a given number of pending events.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace manyscale {

struct HoldResult {
  double holds_per_second = 0;
  double bytes_per_event = 0;  // host memory per pending event; 0 where the queue does not tell
  std::uint64_t checksum = 0;  // of the times in their order: equal for all right queues
};

// `queue` is a name of make_queue, or "std" for std::priority_queue on the same events.
HoldResult run_hold(std::string_view queue, std::size_t population, std::size_t holds, std::uint64_t seed);

}  // namespace manyscale
