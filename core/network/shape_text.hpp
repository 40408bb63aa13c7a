// SPDX-License-Identifier: Apache-2.0
// Shapes of topologies as people write them: '5x5x4' or '24,24:24,24:4'.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace manyscale::network {

// The whole numbers of a text, separated by `separator`, each from 1 to a million. `what` and `example` are
// for the person who wrote something else.
std::vector<std::uint32_t> parse_numbers(std::string_view text, char separator, std::string_view what,
                                         std::string_view example);

// The product, refused above ten million: no network of that size fits into memory.
std::uint32_t bounded_product(const std::vector<std::uint32_t>& numbers, std::string_view what);

}  // namespace manyscale::network
