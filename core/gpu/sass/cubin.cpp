// SPDX-License-Identifier: Apache-2.0
#include "gpu/sass/cubin.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "gpu/sass/cubin_lines.hpp"

namespace manyscale::sass {
namespace {

constexpr std::uint16_t kMachineCuda = 190;
constexpr std::size_t kHeaderBytes = 64;
constexpr std::size_t kSectionBytes = 64;
constexpr std::size_t kSymbolBytes = 24;
constexpr std::uint64_t kMostSharedBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 32;         // of sections without contents, together
constexpr std::uint32_t kMostLocalBytes = std::uint32_t{512} << 10;  // that hardware gives a thread

enum SectionType : std::uint32_t { kSymbols = 2, kRelocationsWithAddend = 4, kNoBits = 8, kRelocations = 9 };

// Bytes of the file, with every access checked.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  template <class T>
  T at(std::uint64_t offset) const {
    T value;
    std::memcpy(&value, part(offset, sizeof value).data(), sizeof value);
    return value;
  }
  std::span<const std::byte> part(std::uint64_t offset, std::uint64_t size) const {
    if (offset > bytes_.size() || bytes_.size() - offset < size)
      fail("it is cut off, or a table points outside of it");
    return bytes_.subspan(offset, size);
  }
  std::string text(std::uint64_t offset) const {
    if (offset >= bytes_.size()) fail("a name lies outside of its table");
    const auto rest = bytes_.subspan(offset);
    const auto end = std::ranges::find(rest, std::byte{0});
    if (end == rest.end()) fail("a name has no end");
    return readable(
        {reinterpret_cast<const char*>(rest.data()), static_cast<std::size_t>(end - rest.begin())});
  }
  std::uint64_t size() const { return bytes_.size(); }
  Reader inside(std::span<const std::byte> bytes) const { return {bytes, name_}; }
  [[noreturn]] void fail(const std::string& what) const {
    throw CubinError(name_ + ": this is no cubin: " + what);
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& name_;
};

struct RawSection {
  std::uint32_t type = 0;
  std::uint32_t link = 0;
};

// What .nv.info calls its facts.
enum Attribute : std::uint8_t {
  kMaximumThreads = 0x05,
  kParameterBank = 0x0a,
  kRequiredThreads = 0x10,
  kFrameSize = 0x11,
  kMinimumStack = 0x12,
  kParameter = 0x17,
  kParameterBytes = 0x19,
  kRegisters = 0x2f,
  kParameterOfLarge = 0x45,  // of a kernel with more than 4 KiB of parameters
};

class CubinReader {
 public:
  CubinReader(std::span<const std::byte> file, std::string name) : name_(name), file_(file, name_) {
    cubin_.name = std::move(name);
  }

  Cubin read() {
    read_header();
    read_sections();
    read_symbols();
    read_relocations();
    find_functions();
    read_info();
    read_lines(cubin_, line_starts_);
    return std::move(cubin_);
  }

 private:
  void read_header() {
    if (file_.size() < kHeaderBytes || file_.at<std::uint32_t>(0) != 0x464c457f)
      file_.fail("it does not begin as one");
    if (file_.at<std::uint8_t>(4) != 2 || file_.at<std::uint8_t>(5) != 1)
      file_.fail("it is not of 64 bits, little endian");
    if (file_.at<std::uint16_t>(18) != kMachineCuda) file_.fail("its code is for another kind of processor");
    const auto flags = file_.at<std::uint32_t>(48);
    const std::uint32_t low = flags & 0xff;
    const std::uint32_t high = flags >> 8 & 0xff;
    // Of files of later assemblers the architecture stands one byte higher.
    cubin_.architecture.number = static_cast<std::uint16_t>(low >= 50 && low < 200 ? low : high);
  }

  void read_sections() {
    const auto table = file_.at<std::uint64_t>(40);
    const auto count = file_.at<std::uint16_t>(60);
    const auto names_index = file_.at<std::uint16_t>(62);
    if (file_.at<std::uint16_t>(58) != kSectionBytes || names_index >= count)
      file_.fail("its table of sections is broken");
    file_.part(table, std::uint64_t{count} * kSectionBytes);
    const std::uint64_t names_at = table + names_index * kSectionBytes;
    const Reader names = file_.inside(
        file_.part(file_.at<std::uint64_t>(names_at + 24), file_.at<std::uint64_t>(names_at + 32)));
    std::uint64_t stored = 0;
    std::uint64_t empty = 0;
    for (unsigned i = 0; i < count; ++i) {
      const std::uint64_t at = table + i * kSectionBytes;
      CubinSection section;
      RawSection raw{file_.at<std::uint32_t>(at + 4), file_.at<std::uint32_t>(at + 40)};
      if (i != 0) section.name = names.text(file_.at<std::uint32_t>(at));
      section.size = file_.at<std::uint64_t>(at + 32);
      section.info = file_.at<std::uint32_t>(at + 44);
      section.alignment = std::clamp<std::uint64_t>(file_.at<std::uint64_t>(at + 48), 1, 4096);
      if (i != 0 && raw.type != kNoBits) {
        const auto bytes = file_.part(file_.at<std::uint64_t>(at + 24), section.size);
        // Sections that share their bytes could ask for far more memory than the file has.
        stored += section.size;
        if (stored > 2 * file_.size()) file_.fail("its sections overlap");
        section.bytes.assign(bytes.begin(), bytes.end());
      } else if (i != 0) {
        empty += std::min(section.size, kMostBytes + 1);
        if (empty > kMostBytes) file_.fail("section " + section.name + " is too large");
      }
      cubin_.sections.push_back(std::move(section));
      raw_.push_back(raw);
    }
    for (std::uint32_t i = 0; i < cubin_.sections.size(); ++i) by_name_.emplace(cubin_.sections[i].name, i);
  }

  void read_symbols() {
    for (std::size_t i = 0; i < raw_.size(); ++i) {
      if (raw_[i].type != kSymbols) continue;
      if (!cubin_.symbols.empty()) file_.fail("it has two tables of symbols");
      if (raw_[i].link >= raw_.size()) file_.fail("the names of its symbols are missing");
      const Reader names = file_.inside(cubin_.sections[raw_[i].link].bytes);
      const Reader table = file_.inside(cubin_.sections[i].bytes);
      for (std::uint64_t at = 0; at + kSymbolBytes <= table.size(); at += kSymbolBytes) {
        CubinSymbol symbol;
        symbol.name = names.text(table.at<std::uint32_t>(at));
        const unsigned type = table.at<std::uint8_t>(at + 4) & 15;
        symbol.kind = type == 1   ? CubinSymbolKind::object
                      : type == 2 ? CubinSymbolKind::function
                      : type == 3 ? CubinSymbolKind::section
                                  : CubinSymbolKind::other;
        symbol.is_entry = (table.at<std::uint8_t>(at + 5) & 0x10) != 0;
        symbol.is_managed = type == 1 && (table.at<std::uint8_t>(at + 5) & 4) != 0;
        symbol.section = table.at<std::uint16_t>(at + 6);
        symbol.value = table.at<std::uint64_t>(at + 8);
        symbol.size = table.at<std::uint64_t>(at + 16);
        if (symbol.section >= raw_.size()) symbol.section = CubinSymbol::kUndefined;
        cubin_.symbols.push_back(std::move(symbol));
      }
    }
  }

  void read_relocations() {
    for (std::size_t i = 0; i < raw_.size(); ++i) {
      const bool with_addend = raw_[i].type == kRelocationsWithAddend;
      if (!with_addend && raw_[i].type != kRelocations) continue;
      const std::string& own = cubin_.sections[i].name;
      const bool is_debugging =
          own.find(".debug") != std::string::npos || own.find("nv_debug") != std::string::npos;
      const bool is_lines = own.ends_with(".debug_line") || own.ends_with(".nv_debug_line_sass");
      if (is_debugging && !is_lines) continue;
      // Its name says what it changes; where it says so by number, that may be another thing.
      const std::string target = own.starts_with(".rela")  ? own.substr(5)
                                 : own.starts_with(".rel") ? own.substr(4)
                                                           : own;
      const auto changed = by_name_.find(target);
      if (changed == by_name_.end()) continue;
      const Reader table = file_.inside(cubin_.sections[i].bytes);
      const std::uint64_t entry = with_addend ? 24 : 16;
      for (std::uint64_t at = 0; at + entry <= table.size(); at += entry) {
        CubinRelocation relocation;
        relocation.section = changed->second;
        relocation.offset = table.at<std::uint64_t>(at);
        const auto info = table.at<std::uint64_t>(at + 8);
        relocation.type = static_cast<std::uint32_t>(info);
        relocation.symbol = static_cast<std::uint32_t>(info >> 32);
        if (with_addend) relocation.addend = table.at<std::int64_t>(at + 16);
        if (relocation.symbol >= cubin_.symbols.size())
          file_.fail("a relocation names a symbol that is not there");
        (is_lines ? line_starts_ : cubin_.relocations).push_back(relocation);
      }
    }
  }

  void find_functions() {
    constexpr std::string_view kText = ".text.";
    for (std::uint32_t i = 0; i < cubin_.sections.size(); ++i) {
      const CubinSection& section = cubin_.sections[i];
      if (!section.name.starts_with(kText) || section.bytes.empty()) continue;
      CubinFunction function;
      function.name = section.name.substr(kText.size());
      function.section = i;
      function.registers = section.info >> 24;  // all that older assemblers say
      if (const auto found = by_name_.find(".nv.shared." + function.name); found != by_name_.end()) {
        const CubinSection& shared = cubin_.sections[found->second];
        if (shared.size > kMostSharedBytes)
          file_.fail("kernel " + function.name + " has too much shared memory");
        function.shared_bytes = shared.size;
        function.shared_alignment = shared.alignment;
      }
      functions_.emplace(function.name, cubin_.functions.size());
      cubin_.functions.push_back(std::move(function));
    }
    for (const CubinSymbol& symbol : cubin_.symbols) {
      CubinFunction* function = function_named(symbol.name);
      if (function != nullptr && symbol.section == function->section) function->is_kernel = symbol.is_entry;
    }
  }

  CubinFunction* function_named(const std::string& name) {
    const auto found = functions_.find(name);
    return found == functions_.end() ? nullptr : &cubin_.functions[found->second];
  }

  CubinFunction* function_of(std::uint32_t symbol) {
    if (symbol >= cubin_.symbols.size()) return nullptr;
    return function_named(cubin_.symbols[symbol].name);
  }

  // Facts about all functions are in .nv.info and name them; those in .nv.info.<function> are of it.
  void read_info() {
    constexpr std::string_view kInfo = ".nv.info";
    for (const CubinSection& section : cubin_.sections) {
      if (!section.name.starts_with(kInfo)) continue;
      CubinFunction* own = section.name.size() > kInfo.size()
                               ? function_named(section.name.substr(kInfo.size() + 1))
                               : nullptr;
      const Reader table = file_.inside(section.bytes);
      for (std::uint64_t at = 0; at + 4 <= table.size();) {
        const auto format = table.at<std::uint8_t>(at);
        const auto attribute = table.at<std::uint8_t>(at + 1);
        const auto size = table.at<std::uint16_t>(at + 2);
        if (format != 4) {
          if (attribute == kParameterBytes && own != nullptr) own->parameter_bytes = size;
          at += 4;
          continue;
        }
        read_fact(table.inside(table.part(at + 4, size)), attribute, own);
        at += 4 + std::uint64_t{size};
      }
    }
    for (CubinFunction& function : cubin_.functions) {
      std::ranges::sort(function.parameters, {}, &CubinParameter::offset);
      for (const CubinParameter& parameter : function.parameters)
        if (parameter.offset > 0x10000 || parameter.size > 0x10000)
          file_.fail("a parameter of " + function.name + " is too large");
    }
  }

  void read_fact(const Reader& fact, std::uint8_t attribute, CubinFunction* own) {
    const auto word = [&](unsigned index) { return fact.at<std::uint32_t>(4 * index); };
    switch (attribute) {
      case kRegisters:
        if (CubinFunction* function = function_of(word(0))) function->registers = std::min(word(1), 255U);
        break;
      case kFrameSize:
        if (CubinFunction* function = function_of(word(0))) function->frame_bytes = local_bytes(word(1));
        break;
      case kMinimumStack:
        if (CubinFunction* function = function_of(word(0)))
          if (word(1) != ~std::uint32_t{0}) function->stack_bytes = local_bytes(word(1));
        break;
      case kParameterBank:
        if (own == nullptr) break;
        own->parameter_base = fact.at<std::uint16_t>(4);
        own->parameter_bytes = fact.at<std::uint16_t>(6);
        break;
      case kParameter:
        if (own != nullptr)
          own->parameters.push_back({fact.at<std::uint16_t>(6), fact.at<std::uint32_t>(8) >> 18});
        break;
      case kParameterOfLarge:
        if (own != nullptr) own->parameters.push_back({fact.at<std::uint16_t>(6), word(2)});
        break;
      case kMaximumThreads:
      case kRequiredThreads:
        if (own != nullptr)
          (attribute == kMaximumThreads ? own->maximum_threads : own->required_threads) = {word(0), word(1),
                                                                                           word(2)};
        break;
      default:
        break;
    }
  }

  std::uint32_t local_bytes(std::uint32_t bytes) const {
    if (bytes > kMostLocalBytes) file_.fail("a function has too large a stack");
    return bytes;
  }

  std::string name_;
  Reader file_;
  Cubin cubin_;
  std::vector<RawSection> raw_;
  std::unordered_map<std::string, std::uint32_t> by_name_;  // sections
  std::unordered_map<std::string, std::size_t> functions_;
  std::vector<CubinRelocation> line_starts_;
};

}  // namespace

const CubinSection* Cubin::find(std::string_view section) const {
  const auto found = std::ranges::find(sections, section, &CubinSection::name);
  return found == sections.end() ? nullptr : &*found;
}

std::vector<Instruction> Cubin::instructions(const CubinFunction& function) const {
  const std::vector<std::byte>& bytes = sections[function.section].bytes;
  std::vector<Instruction> result;
  for (std::size_t at = 0; at + Instruction::kBytes <= bytes.size(); at += Instruction::kBytes) {
    Words words;
    std::memcpy(&words.low, bytes.data() + at, 8);
    std::memcpy(&words.high, bytes.data() + at + 8, 8);
    result.push_back(decode(words, architecture, static_cast<std::uint32_t>(at)));
  }
  return result;
}

std::string readable(std::string text) {
  // Leading bytes by the number of bytes that must follow; the few forbidden code points are left to pass as
  // they do no harm but for those that Python refuses: surrogates and what is too large or too long.
  const auto follows = [&](std::size_t at, unsigned count) {
    for (unsigned next = 1; next <= count; ++next)
      if (at + next >= text.size() || (static_cast<unsigned char>(text[at + next]) & 0xc0) != 0x80)
        return false;
    return true;
  };
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const auto second = at + 1 < text.size() ? static_cast<unsigned char>(text[at + 1]) : 0U;
    unsigned length = 0;
    if (byte < 0x80) {
      length = 1;
    } else if (byte >= 0xc2 && byte < 0xe0 && follows(at, 1)) {
      length = 2;
    } else if (byte >= 0xe0 && byte < 0xf0 && follows(at, 2) && !(byte == 0xe0 && second < 0xa0) &&
               !(byte == 0xed && second >= 0xa0)) {
      length = 3;
    } else if (byte >= 0xf0 && byte < 0xf5 && follows(at, 3) && !(byte == 0xf0 && second < 0x90) &&
               !(byte == 0xf4 && second >= 0x90)) {
      length = 4;
    }
    if (length == 0) {
      text[at] = '?';
      length = 1;
    }
    at += length;
  }
  return text;
}

Cubin read_cubin(std::span<const std::byte> file, std::string name) {
  return CubinReader(file, std::move(name)).read();
}

}  // namespace manyscale::sass
