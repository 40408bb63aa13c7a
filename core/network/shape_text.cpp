// SPDX-License-Identifier: Apache-2.0
#include "network/shape_text.hpp"

#include <charconv>

#include "engine/component.hpp"

namespace manyscale::network {

std::vector<std::uint32_t> parse_numbers(std::string_view text, char separator, std::string_view what,
                                         std::string_view example) {
  constexpr std::uint32_t most = 1'000'000;
  constexpr std::size_t most_numbers = 64;
  std::vector<std::uint32_t> numbers;
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    std::uint32_t number = 0;
    const auto [rest, error] = std::from_chars(text.data() + begin, text.data() + end, number);
    if (error != std::errc{} || rest != text.data() + end || number == 0 || number > most ||
        numbers.size() == most_numbers) {
      throw SimulationError(std::string(what) + " is '" + std::string(text.substr(0, 80)) +
                            "'; it takes whole numbers from 1 to 1000000 such as '" + std::string(example) +
                            "'");
    }
    numbers.push_back(number);
    if (end == text.size()) return numbers;
    begin = end + 1;
  }
}

std::uint32_t bounded_product(const std::vector<std::uint32_t>& numbers, std::string_view what) {
  constexpr std::uint64_t most = 10'000'000;
  std::uint64_t product = 1;
  for (const std::uint32_t number : numbers) {
    product *= number;
    if (product > most)
      throw SimulationError(std::string(what) + " comes to more than ten million; make it smaller");
  }
  return static_cast<std::uint32_t>(product);
}

}  // namespace manyscale::network
