// SPDX-License-Identifier: Apache-2.0
#include "cpu/linux/load_program.hpp"

#include <elf.h>

namespace manyscale::cpu {

namespace {

// The letters of the base instruction set and its extensions, as Linux passes
// them: bit 0 is A.
constexpr std::uint64_t hardware_capabilities() {
  std::uint64_t bits = 0;
  for (const char letter : {'I', 'M', 'A', 'F', 'D', 'C'}) bits |= std::uint64_t{1} << (letter - 'A');
  return bits;
}

void load_segments(AddressSpace& memory, const ElfImage& image, std::uint64_t base) {
  const auto refuse = [] { throw ElfError("the program does not fit into the memory that it may have"); };
  // Neighbours may share a page: it then has the permissions of both.
  for (std::size_t i = 0; i < image.segments.size(); ++i) {
    const auto& segment = image.segments[i];
    std::uint64_t begin = page_floor(segment.address);
    const std::uint64_t end = page_ceiling(segment.address + segment.memory_bytes);
    if (i > 0) {
      const auto& before = image.segments[i - 1];
      const std::uint64_t before_end = page_ceiling(before.address + before.memory_bytes);
      if (before_end > begin) {
        memory.protect(base + begin, page_bytes, before.permissions | segment.permissions);
        begin += page_bytes;
      }
    }
    if (begin < end && !memory.map(base + begin, end - begin, segment.permissions)) refuse();
    if (!memory.copy_in(base + segment.address, segment.contents.data(), segment.contents.size())) refuse();
  }
}

// Builds the first stack from its top downwards.
class StackBuilder {
 public:
  StackBuilder(AddressSpace& memory, std::uint64_t top) : memory_(memory), at_(top) {}

  std::uint64_t push(const void* data, std::uint64_t bytes) {
    if (bytes > at_ - (Layout::stack_top - Layout::stack_bytes / 2)) {
      throw ElfError(
          "arguments and environment are too long: together they "
          "may take 4 MiB");
    }
    at_ -= bytes;
    if (!memory_.copy_in(at_, data, bytes)) throw ElfError("no memory for the stack of the program");
    return at_;
  }
  std::uint64_t push(const std::string& text) { return push(text.c_str(), text.size() + 1); }
  void align(std::uint64_t bytes) { at_ -= at_ % bytes; }
  std::uint64_t at() const { return at_; }

 private:
  AddressSpace& memory_;
  std::uint64_t at_;
};

}  // namespace

LoadedProgram load_program(AddressSpace& memory, const ElfImage& image,
                           const std::vector<std::string>& arguments,
                           const std::vector<std::string>& environment,
                           const std::array<std::uint64_t, 2>& random_bytes) {
  const std::uint64_t base = image.position_independent ? Layout::position_independent_base : 0;
  if (image.end > Layout::mappings_top - base) {
    throw ElfError("the program's segments reach into the addresses of its stack");
  }
  load_segments(memory, image, base);

  // li a7, 139 (rt_sigreturn); ecall
  static constexpr std::array<std::uint32_t, 2> signal_return{0x08b00893, 0x00000073};
  memory.map(Layout::signal_return, page_bytes, Permission::read | Permission::execute);
  if (!memory.copy_in(Layout::signal_return, signal_return.data(), sizeof signal_return)) {
    throw ElfError("no memory for the program");
  }

  memory.map(Layout::stack_top - Layout::stack_bytes, Layout::stack_bytes,
             Permission::read | Permission::write);
  StackBuilder stack(memory, Layout::stack_top);
  std::vector<std::uint64_t> vector;
  vector.push_back(arguments.size());
  for (const std::string& argument : arguments) vector.push_back(stack.push(argument));
  const std::uint64_t name = vector.size() > 1 ? vector[1] : 0;
  vector.push_back(0);
  for (const std::string& variable : environment) vector.push_back(stack.push(variable));
  vector.push_back(0);
  const std::uint64_t random_at = stack.push(random_bytes.data(), sizeof random_bytes);
  const auto add_auxiliary = [&](std::uint64_t type, std::uint64_t value) {
    vector.push_back(type);
    vector.push_back(value);
  };
  if (image.headers_address != 0) {
    add_auxiliary(AT_PHDR, base + image.headers_address);
    add_auxiliary(AT_PHENT, sizeof(Elf64_Phdr));
    add_auxiliary(AT_PHNUM, image.headers);
  }
  add_auxiliary(AT_PAGESZ, page_bytes);
  add_auxiliary(AT_BASE, 0);
  add_auxiliary(AT_FLAGS, 0);
  add_auxiliary(AT_ENTRY, base + image.entry);
  for (const std::uint64_t identity : {AT_UID, AT_EUID, AT_GID, AT_EGID}) add_auxiliary(identity, 1000);
  add_auxiliary(AT_HWCAP, hardware_capabilities());
  add_auxiliary(AT_CLKTCK, 100);
  add_auxiliary(AT_SECURE, 0);
  add_auxiliary(AT_RANDOM, random_at);
  add_auxiliary(AT_EXECFN, name);
  add_auxiliary(AT_NULL, 0);
  stack.align(16);
  if (vector.size() % 2 != 0) stack.push(&random_at, 8);  // keeps the end on a multiple of 16
  LoadedProgram loaded;
  loaded.stack_pointer = stack.push(vector.data(), vector.size() * 8);
  loaded.entry = base + image.entry;
  loaded.break_begin = base + image.end;
  return loaded;
}

}  // namespace manyscale::cpu
