// SPDX-License-Identifier: Apache-2.0
#include "elf_symbols.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace manyscale::cuda_interposer {

MappedFile::MappedFile(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  struct stat status{};
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    const auto bytes = static_cast<std::size_t>(status.st_size);
    void* mapped = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    if (mapped != MAP_FAILED) bytes_ = {static_cast<const std::byte*>(mapped), bytes};
  }
  close(file);
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Elf::Elf(std::span<const std::byte> bytes) : bytes_(bytes) {
  if (bytes.size() < sizeof(Elf64_Ehdr)) return;
  const auto& header = *reinterpret_cast<const Elf64_Ehdr*>(bytes.data());
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shoff % alignof(Elf64_Shdr) != 0)
    return;
  const std::size_t table = header.e_shnum * sizeof(Elf64_Shdr);
  if (header.e_shoff > bytes.size() || bytes.size() - header.e_shoff < table) return;
  sections_ = {reinterpret_cast<const Elf64_Shdr*>(bytes.data() + header.e_shoff), header.e_shnum};
  names_ = header.e_shstrndx;
}

const Elf64_Shdr* Elf::find_section(std::string_view name) const {
  if (names_ >= sections_.size()) return nullptr;
  for (const Elf64_Shdr& section : sections_)
    if (text(sections_[names_], section.sh_name) == name) return &section;
  return nullptr;
}

const Elf64_Shdr* Elf::find_section(std::uint32_t type, const Elf64_Shdr& applies_to) const {
  for (const Elf64_Shdr& section : sections_)
    if (section.sh_type == type && section.sh_info == number(applies_to)) return &section;
  return nullptr;
}

std::string_view Elf::text(const Elf64_Shdr& strings, std::size_t offset) const {
  const auto all = contents<char>(strings);
  if (offset >= all.size()) return {};
  return {all.data() + offset, strnlen(all.data() + offset, all.size() - offset)};
}

}  // namespace manyscale::cuda_interposer
