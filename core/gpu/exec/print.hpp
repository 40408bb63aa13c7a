// SPDX-License-Identifier: Apache-2.0
// The formatting of printf in a kernel.
#pragma once
#include <cstdint>
#include <string>

namespace manyscale::gpu {

class Warp;

// Appends a lane's output to `output`; `values` is the address of its arguments, laid out as the ABI says
// (each at a multiple of its own size, floats as doubles). Returns how many conversions were done.
int format_print(Warp& warp, unsigned lane, const std::string& format, std::uint64_t values,
                 std::string& output);

}  // namespace manyscale::gpu
