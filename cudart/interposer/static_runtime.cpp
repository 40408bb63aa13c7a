// SPDX-License-Identifier: Apache-2.0
// The simulator's library is loaded by the first call, since nothing can be loaded while the program itself
// is being loaded.
#include "static_runtime.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "elf_symbols.hpp"
#include "find_runtime.hpp"

namespace manyscale::cuda_interposer {

namespace {

struct Library {
  char path[4096];
};

// A function of the program's runtime. Calls jump to the target.
struct Entry {
  void* target;
  Library* library;
  char name[112];
};

void complain(const char* what, const char* why) {
  char line[4608];
  const int bytes = std::snprintf(line, sizeof line, "manyscale: %s: %s\n", what, why);
  [[maybe_unused]] const ssize_t wrote =
      write(STDERR_FILENO, line, std::min(static_cast<std::size_t>(bytes), sizeof line - 1));
}

// What a call returns when the simulator's library cannot be loaded.
int initialization_error() {
  return 3;
}

}  // namespace

// Finds the function that an entry stands for.
extern "C" [[gnu::visibility("hidden"), gnu::used]] void manyscale_resolve(Entry* entry) {
  void* library = dlmopen(LM_ID_BASE, entry->library->path, RTLD_NOW);
  void* found = library == nullptr ? nullptr : dlsym(library, entry->name);
  if (found == nullptr) complain(entry->library->path, dlerror());
  __atomic_store_n(&entry->target, found == nullptr ? reinterpret_cast<void*>(&initialization_error) : found,
                   __ATOMIC_RELEASE);
}

#if defined(__x86_64__)

// The first target of every entry, which is in r11: resolves it and goes on there with the same arguments.
extern "C" [[gnu::visibility("hidden")]] void manyscale_first_call();
asm(R"(
  .text
  .hidden manyscale_first_call
  .type manyscale_first_call, @function
manyscale_first_call:
  push %rbp
  mov %rsp, %rbp
  and $-16, %rsp
  sub $192, %rsp
  mov %rdi, 0(%rsp)
  mov %rsi, 8(%rsp)
  mov %rdx, 16(%rsp)
  mov %rcx, 24(%rsp)
  mov %r8, 32(%rsp)
  mov %r9, 40(%rsp)
  mov %rax, 48(%rsp)
  mov %r11, 56(%rsp)
  movaps %xmm0, 64(%rsp)
  movaps %xmm1, 80(%rsp)
  movaps %xmm2, 96(%rsp)
  movaps %xmm3, 112(%rsp)
  movaps %xmm4, 128(%rsp)
  movaps %xmm5, 144(%rsp)
  movaps %xmm6, 160(%rsp)
  movaps %xmm7, 176(%rsp)
  mov %r11, %rdi
  call manyscale_resolve
  mov 0(%rsp), %rdi
  mov 8(%rsp), %rsi
  mov 16(%rsp), %rdx
  mov 24(%rsp), %rcx
  mov 32(%rsp), %r8
  mov 40(%rsp), %r9
  mov 48(%rsp), %rax
  mov 56(%rsp), %r11
  movaps 64(%rsp), %xmm0
  movaps 80(%rsp), %xmm1
  movaps 96(%rsp), %xmm2
  movaps 112(%rsp), %xmm3
  movaps 128(%rsp), %xmm4
  movaps 144(%rsp), %xmm5
  movaps 160(%rsp), %xmm6
  movaps 176(%rsp), %xmm7
  mov %rbp, %rsp
  pop %rbp
  jmp *(%r11)
  .size manyscale_first_call, .-manyscale_first_call
)");

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kStepBytes = 16;  // of a stepping stone between a function and its entry
constexpr std::size_t kJumpBytes = 5;

// Memory that a jump from an address can reach; null if there is none.
std::byte* reserve_near(std::uintptr_t address, std::size_t bytes) {
  constexpr std::uintptr_t stride = std::uintptr_t{1} << 20;
  constexpr std::uintptr_t reach = (std::uintptr_t{1} << 31) - (std::uintptr_t{1} << 28);
  const std::uintptr_t begin = address & ~(stride - 1);
  for (std::uintptr_t away = stride; away < reach; away += stride) {
    for (const std::uintptr_t wanted : {begin - away, begin + away}) {
      void* got = mmap(reinterpret_cast<void*>(wanted), bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
      if (got == reinterpret_cast<void*>(wanted)) return static_cast<std::byte*>(got);
      if (got != MAP_FAILED) munmap(got, bytes);
    }
  }
  return nullptr;
}

// mov $entry, %r11; jmp *(%r11)
void write_step(std::byte* at, const Entry* entry) {
  const unsigned char load[] = {0x49, 0xbb};
  const unsigned char jump[] = {0x41, 0xff, 0x23};
  std::memcpy(at, load, sizeof load);
  std::memcpy(at + 2, &entry, sizeof entry);
  std::memcpy(at + 10, jump, sizeof jump);
}

bool write_jump(std::uintptr_t from, const std::byte* to) {
  const std::uintptr_t page = from & ~(kPage - 1);
  const std::size_t bytes = from + kJumpBytes - page;
  if (mprotect(reinterpret_cast<void*>(page), bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return false;
  const auto distance = static_cast<std::int32_t>(reinterpret_cast<std::uintptr_t>(to) - (from + kJumpBytes));
  auto* instruction = reinterpret_cast<unsigned char*>(from);
  instruction[0] = 0xe9;
  std::memcpy(instruction + 1, &distance, sizeof distance);
  return mprotect(reinterpret_cast<void*>(page), bytes, PROT_READ | PROT_EXEC) == 0;
}

// Of the functions of a runtime, those that the simulator's library has too.
std::size_t make_entries(const FoundRuntime& found, Library* library, Entry* entries,
                         std::uint64_t* addresses) {
  const MappedFile file(library->path);
  const Elf ours(file.bytes());
  std::size_t count = 0;
  for (std::size_t i = 0; i < found.count; ++i) {
    const char* name = found.functions[i].name;
    bool has_it = false;
    ours.for_each_function(SHT_DYNSYM,
                           [&](std::string_view other, const Elf64_Sym&) { has_it |= other == name; });
    if (!has_it) continue;
    addresses[count] = found.functions[i].address;
    entries[count] = {reinterpret_cast<void*>(&manyscale_first_call), library, {}};
    std::memcpy(entries[count++].name, name, sizeof(Entry::name));
  }
  return count;
}

// All that a redirected runtime needs, as long as the process lives.
struct Redirection {
  Library library;
  Entry entries[FoundRuntime::kMost];
  std::uint64_t addresses[FoundRuntime::kMost];
};

const char* redirect(const FoundRuntime& found, std::uintptr_t base, const char* folder) {
  auto* made = static_cast<Redirection*>(reserve_bytes(sizeof(Redirection)));
  if (made == nullptr) return "there is no memory for the CUDA runtime";
  std::snprintf(made->library.path, sizeof made->library.path, "%s/%s", folder, found.library);
  const std::size_t count = make_entries(found, &made->library, made->entries, made->addresses);
  if (count == 0) return "the simulator's CUDA runtime is broken; install the package again";
  const std::size_t bytes = (count * kStepBytes + kPage - 1) / kPage * kPage;
  std::byte* steps = reserve_near(base + made->addresses[0], bytes);
  if (steps == nullptr) return "there is no memory near the CUDA runtime that is linked into it";
  for (std::size_t i = 0; i < count; ++i) write_step(steps + i * kStepBytes, &made->entries[i]);
  mprotect(steps, bytes, PROT_READ | PROT_EXEC);
  for (std::size_t i = 0; i < count; ++i)
    if (!write_jump(base + made->addresses[i], steps + i * kStepBytes))
      return "the CUDA runtime that is linked into it cannot be replaced: its code may not be changed";
  return nullptr;
}

}  // namespace

void redirect_static_runtime(const char* path, std::uintptr_t base, const char* folder) {
  auto* found = static_cast<FoundRuntime*>(reserve_bytes(sizeof(FoundRuntime)));
  if (found == nullptr) return;
  const char* archives = std::getenv("MANYSCALE_CUDART_STATIC");
  find_runtime(path, archives == nullptr ? "" : archives, *found);
  const char* problem = found->library == nullptr ? nullptr : redirect(*found, base, folder);
  if (problem != nullptr) complain(path, problem);
  release_bytes(found, sizeof *found);
}

#else

void redirect_static_runtime(const char*, std::uintptr_t, const char*) {}

#endif

}  // namespace manyscale::cuda_interposer
