// SPDX-License-Identifier: Apache-2.0
#include "find_runtime.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <span>

#include "elf_symbols.hpp"

namespace manyscale::cuda_interposer {

void* reserve_bytes(std::size_t bytes) {
  void* got = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return got == MAP_FAILED ? nullptr : got;
}

void release_bytes(void* memory, std::size_t bytes) {
  if (memory != nullptr) munmap(memory, bytes);
}

namespace {

using Bytes = std::span<const std::byte>;

// The functions of the runtime that a table of symbols names, those in one section or all. Its version shows
// in the functions that it has.
void collect(const Elf& file, const Elf64_Shdr* only, std::uint64_t base, FoundRuntime& found) {
  bool is_runtime = false, references = false, second_properties = false;
  file.for_each_function(SHT_SYMTAB, [&](std::string_view name, const Elf64_Sym& symbol) {
    if (!name.starts_with("cuda") && !name.starts_with("__cuda")) return;
    if (only != nullptr && symbol.st_shndx != file.number(*only)) return;
    is_runtime |= name == "cudaGetDeviceCount";
    references |= name == "cudaBindTexture";                    // until CUDA 11
    second_properties |= name == "cudaGetDeviceProperties_v2";  // only in CUDA 12
    if (name.size() >= sizeof(FoundFunction::name) || found.count == FoundRuntime::kMost) return;
    FoundFunction& function = found.functions[found.count++];
    std::memcpy(function.name, name.data(), name.size());
    function.address = base + symbol.st_value;
  });
  if (is_runtime)
    found.library = references          ? "libcudart.so.11.0"
                    : second_properties ? "libcudart.so.12"
                                        : "libcudart.so.13";
}

// What of an archive (ar) a file is linked with: the member at an offset, and the offset of the next.
Bytes member_at(Bytes archive, std::size_t& offset) {
  constexpr std::size_t header_bytes = 60, size_at = 48, size_digits = 10;
  if (archive.size() < header_bytes || offset > archive.size() - header_bytes) return {};
  const char* digits = reinterpret_cast<const char*>(archive.data() + offset + size_at);
  std::size_t bytes = 0;
  std::from_chars(digits, digits + size_digits, bytes);
  const std::size_t begin = offset + header_bytes;
  if (bytes > archive.size() - begin) return {};
  offset = begin + bytes + bytes % 2;
  return archive.subspan(begin, bytes);
}

// The part of code that a relocation may change: also the instruction before an address that the linker finds
// itself.
struct Changed {
  std::size_t begin, end;
};

Changed changed_by(const Elf64_Rela& relocation) {
  constexpr std::size_t before = 3, after = 8;
  const std::size_t offset = relocation.r_offset;
  return {offset - std::min(offset, before),
          offset + (ELF64_R_TYPE(relocation.r_info) == R_X86_64_64 ? after : 4)};
}

// Where code begins in other code, into which it was linked; as long as that code if it is not there.
// Relocations are in the order of their offsets.
std::size_t find_code(Bytes code, std::span<const Elf64_Rela> relocations, Bytes in) {
  constexpr std::size_t shortest = 48;
  Bytes longest;  // without a relocation
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= relocations.size(); ++i) {
    const Changed next =
        i < relocations.size() ? changed_by(relocations[i]) : Changed{code.size(), code.size()};
    if (next.begin > begin && next.begin <= code.size() && next.begin - begin > longest.size())
      longest = code.subspan(begin, next.begin - begin);
    begin = std::max(begin, next.end);
  }
  const auto longest_at = static_cast<std::size_t>(longest.data() - code.data());
  if (longest.size() < shortest || in.size() < code.size()) return in.size();
  const void* hit = memmem(in.data(), in.size(), longest.data(), longest.size());
  if (hit == nullptr) return in.size();
  const auto at = static_cast<std::size_t>(static_cast<const std::byte*>(hit) - in.data());
  if (at < longest_at || in.size() - (at - longest_at) < code.size()) return in.size();
  const Bytes there = in.subspan(at - longest_at, code.size());
  begin = 0;
  for (std::size_t i = 0; i <= relocations.size(); ++i) {
    const Changed next =
        i < relocations.size() ? changed_by(relocations[i]) : Changed{code.size(), code.size()};
    if (next.begin > begin && next.begin <= code.size() &&
        std::memcmp(code.data() + begin, there.data() + begin, next.begin - begin) != 0)
      return in.size();
    begin = std::max(begin, next.end);
  }
  return at - longest_at;
}

// The runtime in stripped code, if it is the one of an object that programs are linked with.
bool find_object(const Elf& object, Bytes code, std::uint64_t address, FoundRuntime& found) {
  const Elf64_Shdr* text = object.find_section(".text");
  if (text == nullptr) return false;
  const Elf64_Shdr* table = object.find_section(SHT_RELA, *text);
  const auto relocations =
      table == nullptr ? std::span<const Elf64_Rela>{} : object.contents<Elf64_Rela>(*table);
  const std::size_t at = find_code(object.contents<std::byte>(*text), relocations, code);
  if (at == code.size()) return false;
  collect(object, text, address + at, found);
  return found.library != nullptr;
}

bool find_archive(const char* path, Bytes code, std::uint64_t address, FoundRuntime& found) {
  const MappedFile archive(path);
  constexpr std::string_view magic = "!<arch>\n";
  if (archive.bytes().size() < magic.size() ||
      std::memcmp(archive.bytes().data(), magic.data(), magic.size()) != 0)
    return false;
  bool is_there = false;
  for (std::size_t offset = magic.size(); !is_there;) {
    const Bytes member = member_at(archive.bytes(), offset);
    if (member.empty()) break;
    void* aligned = reserve_bytes(member.size());
    if (aligned == nullptr) break;
    std::memcpy(aligned, member.data(), member.size());
    is_there =
        find_object(Elf({static_cast<const std::byte*>(aligned), member.size()}), code, address, found);
    release_bytes(aligned, member.size());
  }
  return is_there;
}

// Whether a file may have a runtime: it has device code, or names the driver, which the runtime loads.
bool may_have_runtime(const Elf& file) {
  constexpr std::string_view driver = "libcuda.so.1";
  if (file.find_section(".nvFatBinSegment") != nullptr) return true;
  const Elf64_Shdr* constants = file.find_section(".rodata");
  if (constants == nullptr) return false;
  const auto bytes = file.contents<std::byte>(*constants);
  return memmem(bytes.data(), bytes.size(), driver.data(), driver.size()) != nullptr;
}

}  // namespace

void find_runtime(const char* path, std::string_view archives, FoundRuntime& found) {
  const MappedFile mapped(path);
  const Elf file(mapped.bytes());
  collect(file, nullptr, 0, found);
  const Elf64_Shdr* text = file.find_section(".text");
  if (found.library != nullptr || text == nullptr || !may_have_runtime(file)) return;
  found.count = 0;
  while (!archives.empty()) {
    const std::string_view archive = archives.substr(0, archives.find(':'));
    archives.remove_prefix(std::min(archives.size(), archive.size() + 1));
    char name[4096] = {};
    if (archive.empty() || archive.size() >= sizeof name) continue;
    std::memcpy(name, archive.data(), archive.size());
    if (find_archive(name, file.contents<std::byte>(*text), text->sh_addr, found)) return;
  }
}

}  // namespace manyscale::cuda_interposer

// For the simulator, which tells beforehand whether a program can be run: the library for the runtime that is
// linked into it, null if there is none or if it is not known.
extern "C" const char* manyscale_find_runtime(const char* path, const char* archives) {
  using namespace manyscale::cuda_interposer;
  auto* found = static_cast<FoundRuntime*>(reserve_bytes(sizeof(FoundRuntime)));
  if (found == nullptr) return nullptr;
  find_runtime(path, archives, *found);
  const char* library = found->library;
  release_bytes(found, sizeof *found);
  return library;
}
