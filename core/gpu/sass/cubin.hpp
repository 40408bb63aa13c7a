// SPDX-License-Identifier: Apache-2.0
// A file of SASS (NVIDIA's machine code) as the assembler writes it (ELF): functions, constants, variables
// and what is said of them. Nothing in the file is trusted.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/sass/instruction.hpp"

namespace manyscale::sass {

// The file is not one that can be read: what() says what is wrong with it.
struct CubinError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct CubinSection {
  std::string name;
  std::uint64_t size = 0;
  std::uint64_t alignment = 1;
  std::uint32_t info = 0;
  std::vector<std::byte> bytes;  // empty where the file has none: all zeros
};

enum class CubinSymbolKind : std::uint8_t { other, object, function, section };

struct CubinSymbol {
  static constexpr std::uint32_t kUndefined = 0;
  std::string name;
  CubinSymbolKind kind = CubinSymbolKind::other;
  bool is_entry = false;
  bool is_managed = false;  // a variable that host and device share
  std::uint32_t section = kUndefined;
  std::uint64_t value = 0;  // bytes from the start of its section
  std::uint64_t size = 0;
};

struct CubinRelocation {
  enum Type : std::uint32_t {
    word32 = 1,
    word64 = 2,
    generic32 = 3,
    generic64 = 4,
    // Of instructions: a half of an address as a number, and the address that is called, whose form is
    // another from sm_90 on.
    lower_half = 56,
    upper_half = 57,
    called = 58,
    called_later = 75,
    // Of YIELD: whether it may be left out.
    yield_opcode = 68,
    yield_predicate = 69,
  };
  std::uint32_t section = 0;  // that is changed
  std::uint64_t offset = 0;
  std::uint32_t type = 0;
  std::uint32_t symbol = 0;
  std::int64_t addend = 0;
};

struct CubinParameter {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};

// Where an instruction comes from.
struct CubinLine {
  std::uint32_t offset = 0;  // of the first instruction in the function that comes from there
  std::uint32_t file = 0;    // of Cubin::files
  std::uint32_t line = 0;
};

// A function with code of its own: a kernel, or what kernels call.
struct CubinFunction {
  std::string name;
  std::uint32_t section = 0;
  bool is_kernel = false;
  std::uint32_t registers = 0;
  std::uint32_t frame_bytes = 0;
  std::optional<std::uint32_t> stack_bytes;  // that it and all it calls need; nothing if there is no limit
  std::vector<CubinParameter> parameters;
  std::uint32_t parameter_base = 0;  // in constant bank 0
  std::uint32_t parameter_bytes = 0;
  std::uint64_t shared_bytes = 0;
  std::uint64_t shared_alignment = 1;
  std::array<std::uint32_t, 3> maximum_threads{};  // zeros: it does not say
  std::array<std::uint32_t, 3> required_threads{};
  std::vector<CubinLine> lines;      // by offset; may be empty
  std::vector<CubinLine> ptx_lines;  // the same, in Cubin::ptx
};

struct Cubin {
  std::string name;
  Architecture architecture;
  std::vector<CubinSection> sections;
  std::vector<CubinSymbol> symbols;
  std::vector<CubinRelocation> relocations;
  std::vector<CubinFunction> functions;
  std::vector<std::string> files;
  std::vector<std::string> ptx;  // lines of the PTX that it was made from, where the file has them

  // The section of that name; null if there is none.
  const CubinSection* find(std::string_view section) const;
  // The instructions of a function.
  std::vector<Instruction> instructions(const CubinFunction& function) const;
};

// A text of the file as people can read it: bytes that are no UTF-8 become question marks.
std::string readable(std::string text);

Cubin read_cubin(std::span<const std::byte> file, std::string name);

}  // namespace manyscale::sass
