// SPDX-License-Identifier: Apache-2.0
// The NVTX ranges that a thread is in, as the library for NVTX gives them to the CUDA runtime.
#pragma once
#include <cstddef>
#include <cstdint>

namespace manyscale::nvtx {

struct OpenRange {
  std::uint64_t instance;  // counts the ranges that the process has pushed, from 1
  const char* name;
  std::size_t bytes;  // of the name
};

// The ranges of the calling thread, the outermost first; they stay as they are until it pushes or pops one.
// Gives the instance of the innermost one, 0 if there is none.
using OpenRanges = std::uint64_t (*)(const OpenRange** ranges, std::size_t* count);

inline constexpr const char* kOpenRanges = "manyscale_open_ranges";  // the function of the library

}  // namespace manyscale::nvtx
