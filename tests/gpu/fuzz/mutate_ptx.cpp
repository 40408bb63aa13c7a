// SPDX-License-Identifier: Apache-2.0
// How the fuzzer changes PTX: by words and lines, so that most of what it makes is still almost PTX.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using Random = std::minstd_rand;
using Words = std::vector<std::string>;

constexpr std::string_view kWords[] = {
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ";",
    ",",
    ":",
    "::",
    "|",
    "!",
    "-",
    "+",
    "*",
    "/",
    "%",
    "~",
    "?",
    "@",
    "=",
    "_",
    "<<",
    ">>",
    "&&",
    "==",
    "\"",
    "//",
    "/*",
    "*/",
    "#",
    "\n",
    ".reg",
    ".param",
    ".global",
    ".shared",
    ".local",
    ".const",
    ".extern",
    ".visible",
    ".weak",
    ".common",
    ".entry",
    ".func",
    ".align 8",
    ".v2",
    ".v4",
    ".b8",
    ".u32",
    ".b64",
    ".f32",
    ".f64",
    ".pred",
    ".b128",
    ".texref",
    ".ptr",
    ".attribute(.managed)",
    ".branchtargets",
    ".calltargets",
    ".callprototype",
    ".alias",
    ".pragma",
    ".file",
    ".loc",
    ".section",
    ".noreturn",
    ".maxntid",
    "generic(",
    "0xFF(",
    "WARP_SZ",
    "%tid.x",
    "%r1",
    "%rd1",
    "%p1",
    "%r<10>",
    "bra",
    "call",
    "brx.idx",
    "mov.b32",
    "vadd",
    "ret;",
    "L:",
    "(.s64)",
    "0f3F800000",
    "0d3FF0000000000000",
    "1.5",
    ".5",
    "1e9",
    "0x",
    "08",
    "%",
    "$",
    ".x",
    ".b0",
    "a<4>",
    "x[]",
};

constexpr std::string_view kNumbers[] = {
    "0",
    "1",
    "-1",
    "2",
    "31",
    "32",
    "255",
    "256",
    "65535",
    "65536",
    "4",
    "2147483647",
    "8",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "64",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "0xFFFFFFFFFFFFFFFF",
    "1000000",
    "99999",
    "0U",
};

template <class T>
const auto& any_of(const T& choices, Random& random) {
  return choices[random() % std::size(choices)];
}

// Words and what stands between them; joined they are the text again.
Words split(std::string_view text) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' || c == '.';
  };
  Words words;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    if (is_word(text[i])) {
      while (end < text.size() && is_word(text[end]) && text[end] != '.') ++end;
    }
    words.emplace_back(text.substr(i, end - i));
    i = end;
  }
  return words;
}

Words split_lines(std::string_view text) {
  Words lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

std::string joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += word;
  return text;
}

void change_pieces(Words& pieces, Random& random) {
  if (pieces.empty()) return;
  const auto at = [&]() { return pieces.begin() + static_cast<std::ptrdiff_t>(random() % pieces.size()); };
  switch (random() % 5) {
    case 0:
      pieces.erase(at());
      break;
    case 1: {
      const std::string copy = *at();
      pieces.insert(at(), copy);
      break;
    }
    case 2:
      std::iter_swap(at(), at());
      break;
    case 3:
      *at() = *at();
      break;
    default: {  // a few in a row, elsewhere
      const auto first = at();
      const auto last = first + std::min<std::ptrdiff_t>(pieces.end() - first, 1 + random() % 6);
      const Words copy(first, last);
      pieces.insert(at(), copy.begin(), copy.end());
      break;
    }
  }
}

void change_number(Words& words, Random& random) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (std::isdigit(static_cast<unsigned char>(words[i][0])) != 0) numbers.push_back(i);
  }
  if (!numbers.empty()) words[any_of(numbers, random)] = any_of(kNumbers, random);
}

std::string changed(std::string_view text, Random& random) {
  if (random() % 3 == 0) {
    Words lines = split_lines(text);
    change_pieces(lines, random);
    return joined(lines);
  }
  Words words = split(text);
  if (words.empty()) return std::string(any_of(kWords, random));
  std::string& word = words[random() % words.size()];
  switch (random() % 4) {
    case 0:
      change_number(words, random);
      break;
    case 1:
      word = any_of(kWords, random);
      break;
    case 2:
      word = std::string(any_of(kWords, random)) + " " + word;
      break;
    default:
      change_pieces(words, random);
      break;
  }
  return joined(words);
}

std::size_t write(const std::string& text, std::uint8_t* data, std::size_t most) {
  const std::size_t size = std::min(text.size(), most);
  std::memcpy(data, text.data(), size);
  return size;
}

std::string_view view(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
  Random random(seed);
  if (random() % 10 == 0) return LLVMFuzzerMutate(data, size, most);
  std::string text(view(data, size));
  for (unsigned i = 1 + random() % 3; i > 0; --i) text = changed(text, random);
  return write(text, data, most);
}

extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* first, std::size_t first_size,
                                                 const std::uint8_t* second, std::size_t second_size,
                                                 std::uint8_t* out, std::size_t most, unsigned seed) {
  Random random(seed);
  Words lines = split_lines(view(first, first_size));
  const Words others = split_lines(view(second, second_size));
  if (others.empty()) return write(joined(lines), out, most);
  const std::size_t begin = random() % others.size();
  const std::size_t end = std::min(others.size(), begin + 1 + random() % 20);
  const auto at = lines.begin() + static_cast<std::ptrdiff_t>(random() % (lines.size() + 1));
  lines.insert(at, others.begin() + static_cast<std::ptrdiff_t>(begin),
               others.begin() + static_cast<std::ptrdiff_t>(end));
  return write(joined(lines), out, most);
}
