// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/print.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "gpu/exec/memory_access.hpp"
#include "gpu/exec/warp.hpp"

namespace manyscale::gpu {
namespace {

constexpr int kWidest = 4096;                 // of one conversion
constexpr std::size_t kMostOutput = 1 << 20;  // of the buffer CUDA gives a kernel's output, by default

// Reads the arguments one after the other.
class Arguments {
 public:
  Arguments(Warp& warp, unsigned lane, std::uint64_t address) : warp_(warp), lane_(lane), address_(address) {}

  template <class T>
  T next() {
    address_ = (address_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value{};
    read_bytes(warp_, lane_, address_, &value, sizeof value);
    address_ += sizeof(T);
    return value;
  }

 private:
  Warp& warp_;
  unsigned lane_;
  std::uint64_t address_;
};

template <class... Values>
void append(std::string& output, const std::string& specification, Values... values) {
  char text[kWidest + 512];
  const int length = std::snprintf(text, sizeof text, specification.c_str(), values...);
  if (length > 0)
    output.append(text, std::min<std::size_t>(static_cast<std::size_t>(length), sizeof text - 1));
}

// %[flags][width][.precision][length]conversion of a format.
struct Conversion {
  std::string
      specification;  // without length and letter, written again so that nothing else reaches snprintf
  char letter = '\0';
  bool wide = false;    // 64 bits
  unsigned halves = 0;  // times that `h` halves 32 bits
  std::size_t end = 0;  // of its text: where the letter is, or the format ends
};

// A number of a conversion, or the argument that it names.
void read_number(const std::string& format, Arguments& arguments, Conversion& conversion) {
  std::size_t& end = conversion.end;
  int value = 0;
  if (end < format.size() && format[end] == '*') {
    ++end;
    value = arguments.next<std::int32_t>();
  } else {
    while (end < format.size() && format[end] >= '0' && format[end] <= '9')
      value = std::min(value * 10 + (format[end++] - '0'), kWidest);
  }
  conversion.specification += std::to_string(std::clamp(value, -kWidest, kWidest));
}

// The conversion that begins at a `%`.
Conversion read_conversion(const std::string& format, std::size_t at, Arguments& arguments) {
  Conversion found{.specification = "%", .end = at + 1};
  std::size_t& end = found.end;
  while (end < format.size() && std::strchr("-+ #0", format[end]) != nullptr &&
         found.specification.size() < 8)
    found.specification.push_back(format[end++]);
  if (end < format.size() && (format[end] == '*' || (format[end] >= '1' && format[end] <= '9')))
    read_number(format, arguments, found);
  if (end < format.size() && format[end] == '.') {
    ++end;
    found.specification.push_back('.');
    read_number(format, arguments, found);
  }
  for (; end < format.size() && std::strchr("hljztL", format[end]) != nullptr; ++end) {
    found.halves += format[end] == 'h' ? 1 : 0;
    found.wide |= format[end] != 'h';
  }
  if (end < format.size()) found.letter = format[end];
  return found;
}

// The argument of a conversion of an integer, cut to its length.
template <class Whole, class Word, class Half, class Byte>
Whole read_integer(const Conversion& conversion, Arguments& arguments) {
  const Whole value = conversion.wide ? arguments.next<Whole>() : arguments.next<Word>();
  if (conversion.halves == 1) return static_cast<Half>(value);
  return conversion.halves >= 2 ? static_cast<Byte>(value) : value;
}

// Prints the argument of a conversion; false if the letter is none of a conversion.
bool convert(Warp& warp, unsigned lane, const Conversion& conversion, Arguments& arguments,
             std::string& output) {
  const std::string whole = conversion.specification + "ll" + conversion.letter;
  const std::string other = conversion.specification + conversion.letter;
  switch (conversion.letter) {
    case 'd':
    case 'i':
      append(output, whole,
             static_cast<long long>(
                 read_integer<std::int64_t, std::int32_t, std::int16_t, std::int8_t>(conversion, arguments)));
      return true;
    case 'u':
    case 'o':
    case 'x':
    case 'X':
      append(output, whole,
             static_cast<unsigned long long>(
                 read_integer<std::uint64_t, std::uint32_t, std::uint16_t, std::uint8_t>(conversion,
                                                                                         arguments)));
      return true;
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
      append(output, other, arguments.next<double>());
      return true;
    case 'c':
      append(output, other, static_cast<int>(arguments.next<std::int32_t>()));
      return true;
    case 's': {
      const auto address = arguments.next<std::uint64_t>();
      const std::string text = address == 0 ? "(null)" : read_string(warp, lane, address, kMostOutput);
      append(output, other, text.c_str());
      return true;
    }
    case 'p': {
      char text[32];
      std::snprintf(text, sizeof text, "0x%llx",
                    static_cast<unsigned long long>(arguments.next<std::uint64_t>()));
      append(output, conversion.specification + 's', text);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace

int format_print(Warp& warp, unsigned lane, const std::string& format, std::uint64_t values,
                 std::string& output) {
  Arguments arguments(warp, lane, values);
  int conversions = 0;
  for (std::size_t at = 0; at < format.size();) {
    if (output.size() > kMostOutput) return conversions;
    if (format[at] != '%') {
      output.push_back(format[at++]);
      continue;
    }
    const Conversion conversion = read_conversion(format, at, arguments);
    const std::size_t next = conversion.end + (conversion.letter != '\0' ? 1 : 0);
    if (conversion.letter == '%')
      output.push_back('%');
    else if (convert(warp, lane, conversion, arguments, output))
      ++conversions;
    else  // not a conversion: it stands for itself, as on hardware
      output.append(format, at, next - at);
    at = next;
  }
  return conversions;
}

}  // namespace manyscale::gpu
