// SPDX-License-Identifier: Apache-2.0
#include "gpu/sass/cubin_lines.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <unordered_map>

namespace manyscale::sass {
namespace {

// Bytes read one after another. Past the end there are zeros, and `ok` is false.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, std::size_t at) : bytes_{bytes}, at_{at} {}

  bool ok() const { return ok_; }
  std::size_t at() const { return at_; }
  bool ended() const { return !ok_ || at_ >= bytes_.size(); }

  template <class T>
  T take() {
    T value{};
    if (at_ > bytes_.size() || bytes_.size() - at_ < sizeof value) {
      ok_ = false;
      return value;
    }
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  // A number of seven bits a byte, lowest first.
  std::uint64_t take_unsigned() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; ok_; shift += 7) {
      const auto byte = take<std::uint8_t>();
      if (shift < 64) {
        value |= std::uint64_t{byte & 0x7fU} << shift;
      }
      if ((byte & 0x80) == 0) {
        break;
      }
    }
    return value;
  }

  std::int64_t take_signed() {
    std::uint64_t value = 0;
    unsigned shift = 0;
    std::uint8_t byte = 0;
    do {
      byte = take<std::uint8_t>();
      if (shift < 64) {
        value |= std::uint64_t{byte & 0x7fU} << shift;
      }
      shift += 7;
    } while (ok_ && (byte & 0x80) != 0);
    if (shift < 64 && (byte & 0x40) != 0) {
      value |= ~std::uint64_t{0} << shift;
    }
    return static_cast<std::int64_t>(value);
  }

  std::string take_text() {
    std::string text;
    while (ok_) {
      const auto byte = take<char>();
      if (byte == 0) {
        break;
      }
      text += byte;
    }
    return readable(std::move(text));
  }

  void skip(std::uint64_t count) {
    if (count > bytes_.size() - std::min(at_, bytes_.size())) {
      ok_ = false;
    } else {
      at_ += count;
    }
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_;
  bool ok_ = true;
};

// The section holds programs that, run, give rows of (address, file, line).
class LineReader {
 public:
  using Rows = std::vector<CubinLine> CubinFunction::*;

  LineReader(Cubin& cubin, std::uint32_t section, std::span<const CubinRelocation> starts, Rows rows)
      : cubin_{cubin}, bytes_{cubin.sections[section].bytes}, rows_{rows} {
    std::unordered_map<std::string_view, std::uint32_t> functions;
    for (std::uint32_t at = 0; at < cubin.functions.size(); ++at) {
      functions.emplace(cubin.functions[at].name, at);
    }
    for (const CubinRelocation& start : starts) {
      const auto found = functions.find(cubin.symbols[start.symbol].name);
      if (start.section == section && found != functions.end()) {
        starts_[start.offset] = found->second;
      }
    }
  }

  void read() {
    std::size_t at = 0;
    while (at < bytes_.size()) {
      Cursor length{bytes_, at};
      const auto size = length.take<std::uint32_t>();
      if (!length.ok() || size > bytes_.size() - length.at()) {
        return;
      }
      const std::size_t end = length.at() + size;
      read_unit(Cursor{bytes_.first(end), length.at()});
      at = end;
    }
  }

 private:
  enum Standard : std::uint8_t {
    kCopy = 1,
    kAdvanceAddress = 2,
    kAdvanceLine = 3,
    kSetFile = 4,
    kAddConstant = 8,
    kAdvanceFixed = 9,
  };
  enum Extended : std::uint8_t { kEndSequence = 1, kSetAddress = 2 };

  struct Header {
    std::uint8_t step = 1;
    std::int8_t line_base = 0;
    std::uint8_t line_range = 1;
    std::uint8_t opcode_base = 1;
    std::vector<std::uint8_t> arguments;
  };

  void read_unit(Cursor in) {
    Header header;
    const auto version = in.take<std::uint16_t>();
    if (version < 2 || version > 4) {
      return;
    }
    const auto header_size = in.take<std::uint32_t>();
    const std::size_t after_size = in.at();
    header.step = in.take<std::uint8_t>();
    if (version >= 4) {
      in.take<std::uint8_t>();
    }
    in.take<std::uint8_t>();
    header.line_base = in.take<std::int8_t>();
    header.line_range = in.take<std::uint8_t>();
    header.opcode_base = in.take<std::uint8_t>();
    if (!in.ok() || header.line_range == 0 || header.opcode_base == 0) {
      return;
    }
    header.arguments.resize(header.opcode_base);
    for (unsigned opcode = 1; opcode < header.opcode_base; ++opcode) {
      header.arguments[opcode] = in.take<std::uint8_t>();
    }
    read_files(in);
    Cursor program = in;
    if (after_size + header_size >= in.at()) {
      program.skip(after_size + header_size - in.at());
    }
    run(program, header);
  }

  void read_files(Cursor& in) {
    std::vector<std::string> folders = {""};
    while (!in.ended()) {
      std::string folder = in.take_text();
      if (folder.empty()) {
        break;
      }
      folders.push_back(std::move(folder));
    }
    first_file_ = static_cast<std::uint32_t>(cubin_.files.size());
    while (!in.ended()) {
      std::string name = in.take_text();
      if (name.empty()) {
        break;
      }
      const std::uint64_t folder = in.take_unsigned();
      in.take_unsigned();
      in.take_unsigned();
      if (folder != 0 && folder < folders.size() && !name.starts_with('/')) {
        name = folders[folder] + "/" + name;
      }
      cubin_.files.push_back(std::move(name));
    }
  }

  void run(Cursor in, const Header& header) {
    reset();
    while (!in.ended()) {
      const auto opcode = in.take<std::uint8_t>();
      if (opcode >= header.opcode_base) {
        const unsigned special = opcode - header.opcode_base;
        address_ += std::uint64_t{special / header.line_range} * header.step;
        line_ += header.line_base + static_cast<int>(special % header.line_range);
        add_row();
      } else if (opcode == 0) {
        run_extended(in);
      } else {
        run_standard(in, opcode, header);
      }
    }
  }

  void run_standard(Cursor& in, std::uint8_t opcode, const Header& header) {
    switch (opcode) {
      case kCopy:
        add_row();
        break;
      case kAdvanceAddress:
        address_ += in.take_unsigned() * header.step;
        break;
      case kAdvanceLine:
        line_ += in.take_signed();
        break;
      case kSetFile:
        file_ = in.take_unsigned();
        break;
      case kAddConstant:
        address_ += std::uint64_t{(255U - header.opcode_base) / header.line_range} * header.step;
        break;
      case kAdvanceFixed:
        address_ += in.take<std::uint16_t>();
        break;
      default:
        for (unsigned left = header.arguments[opcode]; left > 0; --left) {
          in.take_unsigned();
        }
        break;
    }
  }

  void run_extended(Cursor& in) {
    const std::uint64_t size = in.take_unsigned();
    const std::size_t begin = in.at();
    if (size == 0) {
      return;
    }
    const auto opcode = in.take<std::uint8_t>();
    if (opcode == kSetAddress) {
      const std::size_t position = in.at();
      address_ = in.take<std::uint64_t>();
      const auto start = starts_.find(position);
      function_ = start == starts_.end() ? kNoFunction : start->second;
    } else if (opcode == kEndSequence) {
      reset();
    }
    const std::size_t done = in.at() - begin;
    if (size > done) {
      in.skip(size - done);
    }
  }

  void reset() {
    function_ = kNoFunction;
    address_ = 0;
    file_ = 1;
    line_ = 1;
  }

  void add_row() {
    constexpr std::int64_t kMostLines = std::numeric_limits<std::int32_t>::max();
    if (function_ == kNoFunction || line_ < 0 || line_ > kMostLines) {
      return;
    }
    // Lines of PTX are in no file.
    const bool in_file = file_ != 0 && file_ <= cubin_.files.size() - first_file_;
    if (!in_file && rows_ == &CubinFunction::lines) {
      return;
    }
    CubinFunction& function = cubin_.functions[function_];
    if (address_ < cubin_.sections[function.section].size) {
      (function.*rows_)
          .push_back({static_cast<std::uint32_t>(address_),
                      in_file ? static_cast<std::uint32_t>(first_file_ + file_ - 1) : 0,
                      static_cast<std::uint32_t>(line_)});
    }
  }

  static constexpr std::uint32_t kNoFunction = ~std::uint32_t{0};

  Cubin& cubin_;
  std::span<const std::byte> bytes_;
  Rows rows_;
  std::unordered_map<std::uint64_t, std::uint32_t> starts_;  // where an address is set: the function it is of
  std::uint32_t first_file_ = 0;
  std::uint32_t function_ = kNoFunction;
  std::uint64_t address_ = 0;
  std::uint64_t file_ = 1;
  std::int64_t line_ = 1;
};

}  // namespace

void read_lines(Cubin& cubin, std::span<const CubinRelocation> starts) {
  for (std::uint32_t at = 0; at < cubin.sections.size(); ++at) {
    const std::string& name = cubin.sections[at].name;
    if (name == ".debug_line") {
      LineReader{cubin, at, starts, &CubinFunction::lines}.read();
    } else if (name == ".nv_debug_line_sass") {
      LineReader{cubin, at, starts, &CubinFunction::ptx_lines}.read();
    } else if (name == ".nv_debug_ptx_txt") {
      Cursor text{cubin.sections[at].bytes, 0};
      while (!text.ended()) {
        cubin.ptx.push_back(text.take_text());
      }
    }
  }
  for (CubinFunction& function : cubin.functions) {
    std::ranges::stable_sort(function.lines, {}, &CubinLine::offset);
    std::ranges::stable_sort(function.ptx_lines, {}, &CubinLine::offset);
  }
}

}  // namespace manyscale::sass
