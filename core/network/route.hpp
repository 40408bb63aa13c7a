// SPDX-License-Identifier: Apache-2.0
// Route state: what a packet carries about its path, and how one of several equal ports is chosen. Contexts
// are described in routing_context.hpp.
#pragma once
#include <cstdint>
#include <string>

#include "engine/component.hpp"
#include "engine/random.hpp"
#include "engine/time.hpp"
#include "network/routing_algorithm.hpp"
#include "network/topology.hpp"

namespace manyscale::network {

// Part of its path that a packet is on.
enum class Leg : std::uint8_t { undecided, to_intermediate, to_destination };

// What a packet carries about its path.
struct RouteState {
  std::uint32_t destination = 0;   // node
  std::uint32_t intermediate = 0;  // switch or group, on the first of two legs
  std::uint16_t flow = 0;          // hash of source and destination
  std::uint8_t virtual_channel = 0;
  Leg leg : 2 = Leg::undecided;
  bool gateway_chosen : 1 = false;  // dragonfly: has come to the switch whose link it takes to the next group
  std::uint8_t groups_left : 2 = 0;  // dragonfly: links to other groups taken so far
};
static_assert(sizeof(RouteState) == 12);

// Where a packet goes in the end: its last switch, in the numbers of one rail, and its node.
struct Target {
  std::uint32_t at = 0;
  std::uint32_t node = 0;
};

struct Hop {
  std::uint32_t port = 0;
  std::uint8_t virtual_channel = 0;
};

// A hash of source and destination: packets of one flow share it.
inline std::uint16_t flow_hash(std::uint32_t source, std::uint32_t destination) {
  return static_cast<std::uint16_t>(mix64(std::uint64_t{source} << 32 | destination));
}

// A number below n from a flow's hash, another for each salt.
inline std::uint32_t spread(std::uint16_t flow, std::uint32_t salt, std::uint32_t n) {
  const std::uint64_t hash = mix64(std::uint64_t{salt} << 16 | flow);
  return static_cast<std::uint32_t>((hash >> 32) * n >> 32);
}

// The least loaded of the ports first … first + count - 1. The search begins at one that differs between
// flows and switches, so that idle ports are used evenly.
template <class Context>
std::uint32_t least_loaded(std::uint32_t first, std::uint32_t count, std::uint32_t start,
                           std::uint8_t virtual_channel, Context& context) {
  std::uint32_t best = first + start;
  Time least = context.load(best, virtual_channel);
  for (std::uint32_t i = 1; i < count && least > 0; ++i) {
    const std::uint32_t port = first + (start + i < count ? start + i : start + i - count);
    const Time load = context.load(port, virtual_channel);
    if (load < least) {
      least = load;
      best = port;
    }
  }
  return best;
}

// One of `count` outputs by the algorithm's own selection; `load` is that of an output by its index.
template <class Context, class Load>
std::uint32_t select_own(const ActiveRouting& routing, std::uint32_t count, std::uint32_t by_destination,
                         const RouteState& state, std::uint32_t at, Context& context, Load&& load) {
  class ContextCandidates final : public Candidates {
   public:
    ContextCandidates(Context& context, Load& load) : context_(context), load_(load) {}
    Time load(std::uint32_t index) override { return load_(index); }
    std::uint32_t random(std::uint32_t n) override { return context_.random(n); }

   private:
    Context& context_;
    Load& load_;
  };
  if (count == 1) return 0;
  ContextCandidates candidates(context, load);
  candidates.count = count;
  candidates.by_destination = by_destination;
  candidates.at = at;
  candidates.flow = state.flow;
  return routing.algorithm->select(candidates) % count;
}

// One of `count` ports that are equally good, from `first` on. `by_destination` is what deterministic routing
// takes.
template <class Context>
std::uint32_t choose(const ActiveRouting& routing, std::uint32_t first, std::uint32_t count,
                     std::uint32_t by_destination, const RouteState& state, std::uint32_t salt,
                     std::uint8_t virtual_channel, Context& context) {
  if (count == 1) return first;
  switch (routing.selection) {
    case Selection::by_destination:
      return first + by_destination % count;
    case Selection::by_flow:
      return first + spread(state.flow, salt, count);
    case Selection::random:
      return first + context.random(count);
    case Selection::own:
      return first + select_own(routing, count, by_destination, state, salt, context,
                                [&](std::uint32_t i) { return context.load(first + i, virtual_channel); });
    case Selection::least_loaded:
      break;
  }
  return least_loaded(first, count, context.random(count), virtual_channel, context);
}

}  // namespace manyscale::network
