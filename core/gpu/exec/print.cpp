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
    // %[flags][width][.precision][length]conversion, made anew so that nothing else reaches snprintf.
    std::size_t end = at + 1;
    std::string specification = "%";
    while (end < format.size() && std::strchr("-+ #0", format[end]) != nullptr && specification.size() < 8)
      specification.push_back(format[end++]);
    auto number = [&] {
      int value = 0;
      if (end < format.size() && format[end] == '*') {
        ++end;
        value = arguments.next<std::int32_t>();
      } else {
        while (end < format.size() && format[end] >= '0' && format[end] <= '9')
          value = std::min(value * 10 + (format[end++] - '0'), kWidest);
      }
      specification += std::to_string(std::clamp(value, -kWidest, kWidest));
    };
    if (end < format.size() && (format[end] == '*' || (format[end] >= '1' && format[end] <= '9'))) number();
    if (end < format.size() && format[end] == '.') {
      ++end;
      specification.push_back('.');
      number();
    }
    bool wide = false;
    unsigned narrow = 0;
    while (end < format.size() && std::strchr("hljztL", format[end]) != nullptr) {
      narrow += format[end] == 'h' ? 1 : 0;
      wide |= format[end] != 'h';
      ++end;
    }
    const char conversion = end < format.size() ? format[end] : '\0';
    const std::string wide_specification = specification + "ll" + conversion;
    switch (conversion) {
      case 'd':
      case 'i': {
        std::int64_t value = wide ? arguments.next<std::int64_t>() : arguments.next<std::int32_t>();
        if (narrow == 1) value = static_cast<std::int16_t>(value);
        if (narrow >= 2) value = static_cast<std::int8_t>(value);
        append(output, wide_specification, static_cast<long long>(value));
        break;
      }
      case 'u':
      case 'o':
      case 'x':
      case 'X': {
        std::uint64_t value = wide ? arguments.next<std::uint64_t>() : arguments.next<std::uint32_t>();
        if (narrow == 1) value = static_cast<std::uint16_t>(value);
        if (narrow >= 2) value = static_cast<std::uint8_t>(value);
        append(output, wide_specification, static_cast<unsigned long long>(value));
        break;
      }
      case 'f':
      case 'F':
      case 'e':
      case 'E':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        append(output, specification + conversion, arguments.next<double>());
        break;
      case 'c':
        append(output, specification + conversion, static_cast<int>(arguments.next<std::int32_t>()));
        break;
      case 's': {
        const auto address = arguments.next<std::uint64_t>();
        const std::string text = address == 0 ? "(null)" : read_string(warp, lane, address, kMostOutput);
        append(output, specification + conversion, text.c_str());
        break;
      }
      case 'p': {
        char text[32];
        std::snprintf(text, sizeof text, "0x%llx",
                      static_cast<unsigned long long>(arguments.next<std::uint64_t>()));
        append(output, specification + 's', text);
        break;
      }
      case '%':
        output.push_back('%');
        at = end + 1;
        continue;
      default:  // not a conversion: it stands for itself, as on hardware
        output.append(format, at, end - at + (conversion != '\0' ? 1 : 0));
        at = end + (conversion != '\0' ? 1 : 0);
        continue;
    }
    ++conversions;
    at = end + 1;
  }
  return conversions;
}

}  // namespace manyscale::gpu
