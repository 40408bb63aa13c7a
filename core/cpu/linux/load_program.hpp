// SPDX-License-Identifier: Apache-2.0
// Puts an executable into a fresh address space the way Linux does: its
// segments, the first stack with arguments, environment and auxiliary vector,
// and the page that signal handlers return through.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cpu/linux/elf_image.hpp"
#include "cpu/virtual_memory/address_space.hpp"

namespace manyscale::cpu {

constexpr std::uint64_t page_floor(std::uint64_t address) {
  return address / page_bytes * page_bytes;
}
constexpr std::uint64_t page_ceiling(std::uint64_t address) {
  return page_floor(address + page_bytes - 1);
}

// Where the parts of a process lie that are not the program's own choice.
struct Layout {
  static constexpr std::uint64_t signal_return = virtual_limit - 2 * page_bytes;
  static constexpr std::uint64_t stack_top = virtual_limit - 16 * page_bytes;
  static constexpr std::uint64_t stack_bytes = std::uint64_t{8} << 20;
  static constexpr std::uint64_t mappings_top = stack_top - stack_bytes - (std::uint64_t{1} << 20);
  static constexpr std::uint64_t position_independent_base = 0x2a'aaaa'a000;
};

struct LoadedProgram {
  std::uint64_t entry = 0;
  std::uint64_t stack_pointer = 0;
  std::uint64_t break_begin = 0;  // where the heap of brk begins
};

// Throws ElfError where the program, or its arguments, do not fit into the
// memory it may have.
LoadedProgram load_program(AddressSpace& memory, const ElfImage& image,
                           const std::vector<std::string>& arguments,
                           const std::vector<std::string>& environment,
                           const std::array<std::uint64_t, 2>& random_bytes);

}  // namespace manyscale::cpu
