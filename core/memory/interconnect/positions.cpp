// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include "memory/interconnect/interconnect.hpp"

namespace manyscale::memory {

std::vector<std::uint32_t> read_positions(const std::string& component, const std::string& list,
                                          const std::string& nodes, std::uint32_t count,
                                          std::uint32_t limit) {
  std::vector<std::uint32_t> positions;
  const char* at = list.data();
  const char* const end = at + list.size();
  const auto refuse = [&](const std::string& why) {
    throw SimulationError(component + ": " + nodes + "_positions is '" + list + "': " + why);
  };
  while (at != end) {
    while (at != end && *at == ' ') ++at;
    std::uint32_t position = 0;
    const auto [next, error] = std::from_chars(at, end, position);
    if (error != std::errc{}) refuse("write whole numbers with commas between them, such as 0,3,5");
    if (position >= limit)
      refuse("there is no position " + std::to_string(position) + ", the last one is " +
             std::to_string(limit - 1));
    positions.push_back(position);
    at = next;
    while (at != end && *at == ' ') ++at;
    if (at != end && *at++ != ',') refuse("write whole numbers with commas between them, such as 0,3,5");
  }
  if (positions.size() != count) {
    refuse("it has " + std::to_string(positions.size()) + " positions for " + std::to_string(count) + " " +
           nodes + "s");
  }
  return positions;
}

std::vector<std::uint32_t> spread_positions(std::uint32_t count, std::uint32_t limit) {
  std::vector<std::uint32_t> positions(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    positions[i] =
        static_cast<std::uint32_t>((2 * std::uint64_t{i} + 1) * limit / (2 * std::uint64_t{count}));
  }
  return positions;
}

}  // namespace manyscale::memory
