// SPDX-License-Identifier: Apache-2.0
#include "ranges.hpp"

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "nvtx/open_ranges.hpp"
#include "process.hpp"

namespace manyscale::cudart {

namespace {

// Of the tool that NVTX loads, too; null if it is another one.
nvtx::OpenRanges find_tool() {
  const char* path = std::getenv("NVTX_INJECTION64_PATH");
  void* library = path == nullptr || *path == '\0' ? nullptr : dlopen(path, RTLD_LAZY);
  if (library == nullptr) return nullptr;
  return reinterpret_cast<nvtx::OpenRanges>(dlsym(library, nvtx::kOpenRanges));
}

template <class Number>
void append(std::vector<std::byte>& bytes, const Number& number) {
  const auto* begin = reinterpret_cast<const std::byte*>(&number);
  bytes.insert(bytes.end(), begin, begin + sizeof number);
}

}  // namespace

void announce_ranges() {
  static const nvtx::OpenRanges open_ranges = find_tool();
  if (open_ranges == nullptr || connect_thread() != Error::success) return;
  const nvtx::OpenRange* ranges = nullptr;
  std::size_t count = 0;
  const std::uint64_t innermost = open_ranges(&ranges, &count);
  if (!connection().enter_range(innermost)) return;
  std::vector<std::byte> tail;
  for (const nvtx::OpenRange* range = ranges; range != ranges + count; ++range) {
    append(tail, range->instance);
    append(tail, static_cast<std::uint32_t>(range->bytes));
    const auto* name = reinterpret_cast<const std::byte*>(range->name);
    tail.insert(tail.end(), name, name + range->bytes);
  }
  connection().post<wire::Ranges>(current_device(), {static_cast<std::uint32_t>(count)}, tail);
}

}  // namespace manyscale::cudart
