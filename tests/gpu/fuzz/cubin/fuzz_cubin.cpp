// SPDX-License-Identifier: Apache-2.0
// Fuzzing of the reader of SASS: whatever the bytes, they are refused with a message or give a file
// in which every index is valid and every instruction has a text. ../README.md says how to build and run it.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "gpu/sass/cubin.hpp"

using namespace manyscale::sass;

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "not true of the file: %s\n", what);
  std::abort();
}

void check_lines(const Cubin& cubin, const std::vector<CubinLine>& lines, bool in_files) {
  std::uint32_t last = 0;
  for (const CubinLine& line : lines) {
    require(line.offset >= last, "lines are in order");
    require(!in_files || line.file < cubin.files.size(), "lines are of a file");
    last = line.offset;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const Cubin cubin = read_cubin(std::as_bytes(std::span{data, size}), "fuzz");
    for (const CubinRelocation& relocation : cubin.relocations) {
      require(relocation.section < cubin.sections.size(), "relocations are of a section");
      require(relocation.symbol < cubin.symbols.size(), "relocations name a symbol");
    }
    for (const CubinSymbol& symbol : cubin.symbols) {
      require(symbol.section < cubin.sections.size(), "symbols are in a section");
    }
    for (const CubinFunction& function : cubin.functions) {
      check_lines(cubin, function.lines, true);
      check_lines(cubin, function.ptx_lines, false);
      for (const Instruction& instruction : cubin.instructions(function)) {
        require(!instruction.known() || !text(instruction).empty(), "instructions have a text");
      }
    }
  } catch (const CubinError& error) {
    require(std::string_view(error.what()).starts_with("fuzz:"), "messages say where");
  }
  return 0;
}
