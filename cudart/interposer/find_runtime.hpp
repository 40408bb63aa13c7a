// SPDX-License-Identifier: Apache-2.0
// Where in a program or library the functions of a CUDA runtime are that is linked into it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace manyscale::cuda_interposer {

// Memory of our own, from the operating system: programs may not be ready for malloc yet.
void* reserve_bytes(std::size_t bytes);
void release_bytes(void* memory, std::size_t bytes);

struct FoundFunction {
  char name[112];
  std::uint64_t address;  // in the file
};

struct FoundRuntime {
  static constexpr std::size_t kMost = 2048;

  const char* library =
      nullptr;  // the simulator's for this version, such as libcudart.so.13; null if there is none
  std::size_t count = 0;
  FoundFunction functions[kMost];
};

// By the table of symbols; in a stripped file by comparison with the libraries to link with
// (libcudart_static.a) that `archives` names, with a colon between them. `found` is all zero before.
void find_runtime(const char* path, std::string_view archives, FoundRuntime& found);

}  // namespace manyscale::cuda_interposer
