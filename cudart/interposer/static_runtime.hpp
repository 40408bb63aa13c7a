// SPDX-License-Identifier: Apache-2.0
// Programs whose CUDA runtime is linked into them.
#pragma once
#include <cstdint>

namespace manyscale::cuda_interposer {

// Makes the CUDA runtime that is linked into a program or library, if one is, call that of the simulator: the
// first instruction of each of its functions becomes a jump. `base`: what is added to the file's addresses;
// `folder`: where the simulator's libraries are. The variable MANYSCALE_CUDART_STATIC may name libraries to
// compare stripped files with.
void redirect_static_runtime(const char* path, std::uintptr_t base, const char* folder);

}  // namespace manyscale::cuda_interposer
