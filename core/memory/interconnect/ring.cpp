// SPDX-License-Identifier: Apache-2.0
#include "memory/interconnect/ring.hpp"

#include "engine/registry.hpp"

namespace manyscale::memory {

namespace {
const Registered<Ring> registered{"memory.ring", "A ring in both directions: messages go the shorter way."};
}

Ring::Ring(const Spec& spec) : ReservingInterconnect(spec, 1, false), spec_(spec) {
  declare(statistics_);
}

void Ring::prepare() {
  const std::uint32_t requesters = requester_count();
  const std::uint32_t responders = responder_count();
  stops_ = spec_.stops == 0 ? requesters + responders : static_cast<std::uint32_t>(spec_.stops);
  positions_[1] = spec_.responder_positions.empty()
                      ? spread_positions(responders, stops_)
                      : read_positions(name(), spec_.responder_positions, "responder", responders, stops_);
  if (!spec_.requester_positions.empty()) {
    positions_[0] = read_positions(name(), spec_.requester_positions, "requester", requesters, stops_);
  } else {
    // Stops without a responder, where there are enough of them.
    std::vector<bool> taken(stops_);
    for (const std::uint32_t stop : positions_[1]) taken[stop] = true;
    std::vector<std::uint32_t> open;
    for (std::uint32_t stop = 0; stop < stops_; ++stop) {
      if (!taken[stop]) open.push_back(stop);
    }
    if (open.size() >= requesters) {
      for (const std::uint32_t i : spread_positions(requesters, static_cast<std::uint32_t>(open.size())))
        positions_[0].push_back(open[i]);
    } else {
      positions_[0] = spread_positions(requesters, stops_);
    }
  }
  for (auto& ways : segments_) {
    for (auto& segments : ways) segments.resize(stops_);
  }
}

Passage Ring::carry(Direction direction, std::uint32_t source, std::uint32_t destination, Cycle flits,
                    Cycle now) {
  const std::uint32_t from = positions_[direction][source];
  const std::uint32_t to = positions_[1 - direction][destination];
  const std::uint32_t clockwise = to >= from ? to - from : to + stops_ - from;
  const std::uint32_t other = clockwise == 0 ? 0 : stops_ - clockwise;
  const bool back = other < clockwise || (other == clockwise && from % 2 == 1);
  const std::uint32_t hops = back ? other : clockwise;
  Timetable* const segments = segments_[direction][back ? 1 : 0].data();
  const std::uint32_t first = back ? stops_ - 1 - from : from;

  const Cycle start = first_passage(segments, first, hops, flits, now);
  for (std::uint32_t k = 0, stop = first; k < hops; ++k) {
    segments[stop].take(start + k * spec_.hop, flits, now);
    if (++stop == stops_) stop = 0;
  }
  const Cycle busy = hops * flits;
  statistics_.hops.record(hops);
  (back ? statistics_.counterclockwise_busy : statistics_.clockwise_busy) += busy * period();
  const Cycle unloaded = spec_.stop_latency + hops * spec_.hop + flits;
  return {start + flits, start + unloaded, unloaded, busy};
}

// The first cycle at which a message can get on and find each segment free when it comes there.
Cycle Ring::first_passage(Timetable* segments, std::uint32_t first, std::uint32_t hops, Cycle flits,
                          Cycle now) const {
  Cycle start = now;
  std::uint32_t passed = 0;  // segments in a row that were free
  for (std::uint32_t k = 0; passed < hops; k = k + 1 == hops ? 0 : k + 1) {
    const std::uint32_t stop = first + k < stops_ ? first + k : first + k - stops_;
    const Cycle ahead = k * spec_.hop;
    const Cycle free = segments[stop].earliest(start + ahead, flits);
    passed = free == start + ahead ? passed + 1 : 1;
    start = free - ahead;
  }
  return start;
}

}  // namespace manyscale::memory
