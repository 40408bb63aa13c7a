// SPDX-License-Identifier: Apache-2.0
// Route state: what a packet carries about its path, and how one of several equal ports is chosen. Contexts
// are described in routing_context.hpp.
#pragma once
#include <cstdint>
#include <string>

#include "engine/component.hpp"
#include "engine/random.hpp"
#include "engine/time.hpp"
#include "network/topology.hpp"

namespace manyscale::network {

enum class Algorithm : std::uint8_t { deterministic, ecmp, adaptive, valiant, ugal };

inline Algorithm parse_algorithm(const std::string& name) {
  if (name == "deterministic") return Algorithm::deterministic;
  if (name == "ecmp") return Algorithm::ecmp;
  if (name == "adaptive") return Algorithm::adaptive;
  if (name == "valiant") return Algorithm::valiant;
  if (name == "ugal") return Algorithm::ugal;
  throw SimulationError("routing.algorithm is '" + name +
                        "'; it must be 'deterministic', 'ecmp', 'adaptive', 'valiant' or 'ugal'");
}

// Part of the way that a packet is on.
enum class Leg : std::uint8_t { undecided, to_intermediate, to_destination };

// What a packet carries about its way.
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

// One of `count` ports that are equally good, from `first` on. `by_destination` is what deterministic routing
// takes.
template <class Context>
std::uint32_t choose(Algorithm algorithm, std::uint32_t first, std::uint32_t count,
                     std::uint32_t by_destination, const RouteState& state, std::uint32_t salt,
                     std::uint8_t virtual_channel, Context& context) {
  if (count == 1) return first;
  switch (algorithm) {
    case Algorithm::deterministic:
      return first + by_destination % count;
    case Algorithm::ecmp:
      return first + spread(state.flow, salt, count);
    case Algorithm::valiant:
      return first + context.random(count);
    case Algorithm::adaptive:
    case Algorithm::ugal:
      break;
  }
  return least_loaded(first, count, context.random(count), virtual_channel, context);
}

}  // namespace manyscale::network
