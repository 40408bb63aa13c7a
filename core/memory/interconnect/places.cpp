// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include "memory/interconnect/interconnect.hpp"

namespace manyscale::memory {

std::vector<std::uint32_t> read_places(const std::string& component, const std::string& list,
                                       const std::string& nodes, std::uint32_t count, std::uint32_t limit) {
  std::vector<std::uint32_t> places;
  const char* at = list.data();
  const char* const end = at + list.size();
  const auto refuse = [&](const std::string& why) {
    throw SimulationError(component + ": " + nodes + "_places is '" + list + "': " + why);
  };
  while (at != end) {
    while (at != end && *at == ' ') ++at;
    std::uint32_t place = 0;
    const auto [next, error] = std::from_chars(at, end, place);
    if (error != std::errc{}) refuse("write whole numbers with commas between them, such as 0,3,5");
    if (place >= limit)
      refuse("there is no place " + std::to_string(place) + ", the last one is " + std::to_string(limit - 1));
    places.push_back(place);
    at = next;
    while (at != end && *at == ' ') ++at;
    if (at != end && *at++ != ',') refuse("write whole numbers with commas between them, such as 0,3,5");
  }
  if (places.size() != count) {
    refuse("it has " + std::to_string(places.size()) + " places for " + std::to_string(count) + " " + nodes +
           "s");
  }
  return places;
}

std::vector<std::uint32_t> spread_places(std::uint32_t count, std::uint32_t limit) {
  std::vector<std::uint32_t> places(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    places[i] = static_cast<std::uint32_t>((2 * std::uint64_t{i} + 1) * limit / (2 * std::uint64_t{count}));
  }
  return places;
}

}  // namespace manyscale::memory
