// SPDX-License-Identifier: Apache-2.0
// Parameters whose values are words.
#pragma once
#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

namespace manyscale::gpu {

// The index of a word among those that a parameter can be. Throws std::invalid_argument for any other word.
template <std::size_t count>
std::size_t one_of(std::string_view parameter, std::string_view word,
                   const std::array<std::string_view, count>& words) {
  const auto found = std::ranges::find(words, word);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  std::string text =
      "'" + std::string(parameter) + "' of unified memory cannot be '" + std::string(word) + "', but one of:";
  for (const std::string_view known : words) text += " " + std::string(known);
  throw std::invalid_argument(text);
}

}  // namespace manyscale::gpu
