// SPDX-License-Identifier: Apache-2.0
// ELF files of 64 bits: their sections, and the functions that they define.
#pragma once
#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace manyscale::cuda_interposer {

// A file in memory, not for changing; empty if it cannot be read.
class MappedFile {
 public:
  explicit MappedFile(const char* path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

// Of bytes that are no such file it has no sections. The bytes stay where they are, aligned to 8.
class Elf {
 public:
  explicit Elf(std::span<const std::byte> bytes);

  const Elf64_Shdr* find_section(std::string_view name) const;
  // The first section of a kind that applies to another (sh_info).
  const Elf64_Shdr* find_section(std::uint32_t type, const Elf64_Shdr& applies_to) const;
  std::size_t number(const Elf64_Shdr& section) const {
    return static_cast<std::size_t>(&section - sections_.data());
  }

  // The contents of a section; empty where they lie outside the file.
  template <class Type>
  std::span<const Type> contents(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS || section.sh_offset > bytes_.size() ||
        bytes_.size() - section.sh_offset < section.sh_size || section.sh_offset % alignof(Type) != 0)
      return {};
    return {reinterpret_cast<const Type*>(bytes_.data() + section.sh_offset), section.sh_size / sizeof(Type)};
  }

  // Calls `action(name, symbol)` for each function that a table of symbols (SHT_SYMTAB or SHT_DYNSYM)
  // defines.
  template <class Action>
  void for_each_function(std::uint32_t table, Action action) const {
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != table || section.sh_link >= sections_.size()) continue;
      for (const Elf64_Sym& symbol : contents<Elf64_Sym>(section))
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF)
          action(text(sections_[section.sh_link], symbol.st_name), symbol);
    }
  }

 private:
  std::string_view text(const Elf64_Shdr& strings, std::size_t offset) const;

  std::span<const std::byte> bytes_;
  std::span<const Elf64_Shdr> sections_;
  std::size_t names_ = 0;  // the section with the names of sections
};

}  // namespace manyscale::cuda_interposer
