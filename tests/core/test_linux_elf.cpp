// SPDX-License-Identifier: Apache-2.0
// Executables made here byte by byte: good ones are loaded as their headers say, bad ones are refused with
// the reason, and no damaged one does harm.
#include <elf.h>

#include <cstring>
#include <functional>

#include "cpu/linux/elf_image.hpp"
#include "cpu/linux/load_program.hpp"
#include "engine/random.hpp"
#include "test_checks.hpp"

using namespace manyscale;
using namespace manyscale::cpu;
using test::check;
using test::check_refused;

namespace {

constexpr std::uint64_t base = 0x10000;

// An executable with a text segment (which shows the headers) and a data segment with zeros after it.
struct File {
  Elf64_Ehdr header{};
  Elf64_Phdr text{}, data{};

  File() {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_EXEC;
    header.e_machine = EM_RISCV;
    header.e_entry = base + 0x100;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 2;
    text = {PT_LOAD, PF_R | PF_X, 0, base, base, 0x200, 0x200, page_bytes};
    data = {PT_LOAD, PF_R | PF_W, 0x200, base + 0x1200, base + 0x1200, 0x100, 0x3000, page_bytes};
  }
  std::vector<std::uint8_t> bytes() const {
    std::vector<std::uint8_t> all(0x300);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i);
    std::memcpy(all.data(), &header, sizeof header);
    std::memcpy(all.data() + sizeof header, &text, sizeof text);
    std::memcpy(all.data() + sizeof header + sizeof text, &data, sizeof data);
    return all;
  }
};

void refused(const char* reason, const std::function<void(File&)>& change) {
  File file;
  change(file);
  test::check_refused<ElfError>([&] { parse_elf(file.bytes(), "bad"); }, reason);
}

TEST(bad_headers_are_refused_with_the_reason) {
  refused("not an ELF file", [](File& f) { f.header.e_ident[0] = 0; });
  refused("64-bit", [](File& f) { f.header.e_ident[EI_CLASS] = ELFCLASS32; });
  refused("big-endian", [](File& f) { f.header.e_ident[EI_DATA] = ELFDATA2MSB; });
  refused("x86-64", [](File& f) { f.header.e_machine = EM_X86_64; });
  refused("not an executable", [](File& f) { f.header.e_type = ET_REL; });
  refused("nothing to load", [](File& f) { f.header.e_phnum = 0; });
  refused("program headers of", [](File& f) { f.header.e_phentsize = 32; });
  refused("ends within its program headers", [](File& f) { f.header.e_phnum = 1000; });
  refused("ends within its program headers", [](File& f) { f.header.e_phoff = ~0ull - 8; });
  refused("dynamically linked", [](File& f) { f.text.p_type = PT_INTERP; });
  refused("beyond the end of the file", [](File& f) { f.data.p_filesz = 0x101; });
  refused("beyond the end of the file", [](File& f) { f.data.p_offset = ~0ull - 0xfff + 0x200; });
  refused("larger in the file than in memory", [](File& f) { f.data.p_memsz = 1; });
  refused("does not fit", [](File& f) { f.data.p_memsz = ~0ull; });
  refused("does not fit", [](File& f) { f.data.p_vaddr = ~0ull - 0xdff; });
  refused("different offsets within a page", [](File& f) { f.data.p_vaddr += 8; });
  refused("overlap", [](File& f) { f.text.p_memsz = 0x2000; });
  refused("at address 0", [](File& f) { f.text.p_vaddr = 0; });
  refused("entry point", [](File& f) { f.header.e_entry = base + 0x1300; });
  refused("odd address", [](File& f) { f.header.e_entry |= 1; });
}

TEST(a_truncated_file_is_refused_wherever_it_ends) {
  const std::vector<std::uint8_t> whole = File().bytes();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::vector<std::uint8_t> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    check_refused<ElfError>([&] { parse_elf(part, "part"); }, "part");
  }
}

TEST(damaged_files_do_no_harm) {
  Random random(1, 2);
  const std::vector<std::uint8_t> whole = File().bytes();
  int loaded = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::uint8_t> bytes = whole;
    for (int i = 0; i < 3; ++i) bytes[random.below(0xb0)] = static_cast<std::uint8_t>(random.next());
    try {
      const ElfImage image = parse_elf(bytes, "damaged");
      AddressSpace memory(0, 1 << 20);
      load_program(memory, image, {"damaged"}, {}, {1, 2});
      ++loaded;
    } catch (const ElfError&) {
    }
  }
  check(loaded > 100, "some changes do not matter");
}

std::uint64_t word(AddressSpace& memory, std::uint64_t address) {
  std::uint64_t value = 0;
  check(memory.read(address, &value, 8), "the stack is mapped");
  return value;
}

void load_at(bool position_independent) {
  File file;
  std::uint64_t at = 0;
  if (position_independent) {
    file.header.e_type = ET_DYN;
    at = Layout::position_independent_base;
  }
  const std::vector<std::uint8_t> bytes = file.bytes();
  const ElfImage image = parse_elf(bytes, "good");
  AddressSpace memory(0, 1 << 20);
  const LoadedProgram loaded = load_program(memory, image, {"good", "two words"}, {"A=1"}, {11, 22});

  check(loaded.entry == at + base + 0x100, "the entry point");
  check(loaded.break_begin == at + base + 0x5000, "the heap begins after the last segment");
  check(loaded.stack_pointer % 16 == 0, "the stack is aligned");
  std::uint8_t byte = 0;
  check(memory.read(at + base + 0x1200, &byte, 1) && byte == bytes[0x200], "data is there");
  check(memory.read(at + base + 0x4000, &byte, 1) && byte == 0, "zeros after it");
  check(memory.allows(at + base, 0x200, Permission::read | Permission::execute), "text can be executed");
  check(!memory.allows(at + base, 0x200, Permission::write), "text cannot be written");
  check(memory.allows(at + base + 0x1200, 0x3000, Permission::read | Permission::write),
        "data can be written");
  check(!memory.allows(at + base + 0x1200, 8, Permission::execute), "data cannot be executed");
  check(!memory.allows(0, 8, 0), "nothing is at 0");

  const std::uint64_t stack = loaded.stack_pointer;
  check(word(memory, stack) == 2, "two arguments");
  check(memory.read_string(word(memory, stack + 8), 100) == "good", "the first argument");
  check(memory.read_string(word(memory, stack + 16), 100) == "two words", "the second argument");
  check(word(memory, stack + 24) == 0, "the arguments end");
  check(memory.read_string(word(memory, stack + 32), 100) == "A=1", "the environment");
  check(word(memory, stack + 40) == 0, "the environment ends");
  std::uint64_t headers = 0, random = 0, page = 0, entry = 0;
  for (std::uint64_t entry_at = stack + 48; word(memory, entry_at) != AT_NULL; entry_at += 16) {
    const std::uint64_t value = word(memory, entry_at + 8);
    switch (word(memory, entry_at)) {
      case AT_PHDR:
        headers = value;
        break;
      case AT_RANDOM:
        random = value;
        break;
      case AT_PAGESZ:
        page = value;
        break;
      case AT_ENTRY:
        entry = value;
        break;
      case AT_SYSINFO_EHDR:
        check(false, "there is no vDSO");
        break;
      default:
        break;
    }
  }
  check(headers == at + base + sizeof(Elf64_Ehdr), "where the program headers are");
  check(page == page_bytes, "the size of a page");
  check(entry == loaded.entry, "the entry point in the auxiliary vector");
  check(word(memory, random) == 11 && word(memory, random + 8) == 22, "16 random bytes");
}

TEST(too_long_arguments_are_refused) {
  const std::vector<std::uint8_t> bytes = File().bytes();
  AddressSpace memory(0, 64 << 20);
  check_refused<ElfError>(
      [&] {
        load_program(memory, parse_elf(bytes, "good"), {"good", std::string(5 << 20, 'x')}, {}, {0, 0});
      },
      "arguments");
}

TEST(a_program_larger_than_its_memory_is_refused) {
  const std::vector<std::uint8_t> bytes = File().bytes();
  AddressSpace memory(0, page_bytes);
  check_refused<ElfError>([&] { load_program(memory, parse_elf(bytes, "good"), {"good"}, {}, {0, 0}); },
                          "memory");
}

TEST(programs_are_loaded_where_they_are_linked) {
  load_at(false);
}

TEST(position_independent_programs_are_loaded_at_their_base) {
  load_at(true);
}

}  // namespace
