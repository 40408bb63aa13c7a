// SPDX-License-Identifier: Apache-2.0
// Kernel launches from the pointers to arguments that the compiler's stubs make.
#pragma once
#include <cstddef>
#include <cstdint>

#include "abi.hpp"
#include "operations.hpp"

namespace manyscale::cudart {

// The launch of a function with its arguments packed; `extra` is the other way to give them, as one buffer.
Error make_launch(const void* function, Dim3 grid, Dim3 block, void** arguments, void** extra,
                  std::size_t shared, std::uint32_t flags, LaunchOperation& made);

}  // namespace manyscale::cudart
