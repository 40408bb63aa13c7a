// SPDX-License-Identifier: Apache-2.0
#include "cpu/linux/elf_image.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "cpu/virtual_memory/address_space.hpp"

namespace manyscale::cpu {

namespace {

// The pages below are kept unmapped, so that a null pointer with a small offset
// is a fault.
constexpr std::uint64_t lowest_address = page_bytes;

std::string machine_name(std::uint16_t machine) {
  switch (machine) {
    case EM_386:
      return "x86 (32 bits)";
    case EM_X86_64:
      return "x86-64";
    case EM_ARM:
      return "Arm (32 bits)";
    case EM_AARCH64:
      return "AArch64";
    case EM_PPC64:
      return "POWER";
    case EM_S390:
      return "S/390";
    default:
      return "machine number " + std::to_string(machine);
  }
}

// A header at an offset of the file; false if the file ends before.
template <class Header>
bool header_at(std::span<const std::uint8_t> bytes, std::uint64_t offset, Header& header) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(Header)) return false;
  std::memcpy(&header, bytes.data() + offset, sizeof(Header));
  return true;
}

Elf64_Ehdr checked_header(std::span<const std::uint8_t> bytes, const std::string& name) {
  if (bytes.size() < SELFMAG || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0) {
    throw ElfError(name + " is not an ELF file: it does not begin with 7f 45 4c 46");
  }
  if (bytes.size() < EI_NIDENT) throw ElfError(name + " ends within its ELF header");
  if (bytes[EI_CLASS] != ELFCLASS64) throw ElfError(name + " is not a 64-bit ELF file; RV64 is needed");
  if (bytes[EI_DATA] != ELFDATA2LSB) throw ElfError(name + " is big-endian; a little-endian file is needed");
  Elf64_Ehdr header;
  if (!header_at(bytes, 0, header)) throw ElfError(name + " ends within its ELF header");
  if (header.e_machine != EM_RISCV) {
    throw ElfError(name + " is for " + machine_name(header.e_machine) + ", not for RISC-V");
  }
  if (header.e_type != ET_EXEC && header.e_type != ET_DYN) {
    throw ElfError(name +
                   " is not an executable (a relocatable object or core "
                   "file); link it first");
  }
  if (header.e_phentsize != sizeof(Elf64_Phdr)) {
    throw ElfError(name + " has program headers of " + std::to_string(header.e_phentsize) +
                   " bytes each; they should have 56");
  }
  if (header.e_phnum == 0) throw ElfError(name + " has no program headers: nothing to load");
  return header;
}

void check_segment(const Elf64_Phdr& program, std::span<const std::uint8_t> bytes, const std::string& where) {
  if (program.p_offset > bytes.size() || bytes.size() - program.p_offset < program.p_filesz) {
    throw ElfError(where + " lies beyond the end of the file; the file may be truncated");
  }
  if (program.p_filesz > program.p_memsz) throw ElfError(where + " is larger in the file than in memory");
  if (program.p_memsz > virtual_limit || program.p_vaddr > virtual_limit - program.p_memsz) {
    throw ElfError(where + " does not fit into the address space of a process");
  }
  if ((program.p_vaddr - program.p_offset) % page_bytes != 0) {
    throw ElfError(where + " has different offsets within a page in file and memory");
  }
}

}  // namespace

ElfImage parse_elf(std::span<const std::uint8_t> bytes, const std::string& name) {
  const Elf64_Ehdr header = checked_header(bytes, name);
  ElfImage image;
  image.position_independent = header.e_type == ET_DYN;
  image.headers = header.e_phnum;
  image.entry = header.e_entry;
  for (std::uint16_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr program;
    const std::uint64_t at = std::uint64_t{i} * sizeof(Elf64_Phdr);
    if (header.e_phoff > bytes.size() || !header_at(bytes, header.e_phoff + at, program)) {
      throw ElfError(name + " ends within its program headers");
    }
    if (program.p_type == PT_INTERP) {
      throw ElfError(name + " is dynamically linked; link it with -static");
    }
    if (program.p_type != PT_LOAD || program.p_memsz == 0) continue;
    check_segment(program, bytes, name + ": segment " + std::to_string(i));
    ElfImage::Segment segment;
    segment.address = program.p_vaddr;
    segment.memory_bytes = program.p_memsz;
    segment.contents = bytes.subspan(program.p_offset, program.p_filesz);
    if ((program.p_flags & PF_R) != 0) segment.permissions |= Permission::read;
    if ((program.p_flags & PF_W) != 0) segment.permissions |= Permission::write;
    if ((program.p_flags & PF_X) != 0) segment.permissions |= Permission::execute;
    if (!image.position_independent && segment.address < lowest_address) {
      throw ElfError(name + ": segment " + std::to_string(i) + " would lie at address 0");
    }
    // Where this segment shows the file's program headers, they are in memory.
    if (header.e_phoff >= program.p_offset &&
        header.e_phoff + std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr) <=
            program.p_offset + program.p_filesz) {
      image.headers_address = program.p_vaddr + (header.e_phoff - program.p_offset);
    }
    image.segments.push_back(segment);
  }
  if (image.segments.empty()) throw ElfError(name + " has no segment to load");
  std::sort(image.segments.begin(), image.segments.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  for (std::size_t i = 1; i < image.segments.size(); ++i) {
    const auto& before = image.segments[i - 1];
    if (before.address + before.memory_bytes > image.segments[i].address) {
      throw ElfError(name + " has segments that overlap at " + std::to_string(image.segments[i].address));
    }
  }
  image.begin = image.segments.front().address / page_bytes * page_bytes;
  const auto& last = image.segments.back();
  image.end = (last.address + last.memory_bytes + page_bytes - 1) / page_bytes * page_bytes;
  const bool entry_inside =
      std::any_of(image.segments.begin(), image.segments.end(), [&](const auto& segment) {
        return (segment.permissions & Permission::execute) != 0 && image.entry >= segment.address &&
               image.entry - segment.address < segment.memory_bytes;
      });
  if (!entry_inside) throw ElfError(name + ": its entry point lies in no executable segment");
  if (image.entry % 2 != 0) throw ElfError(name + ": its entry point is at an odd address");
  return image;
}

}  // namespace manyscale::cpu
