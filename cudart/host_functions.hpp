// SPDX-License-Identifier: Apache-2.0
// Host functions in streams (cudaLaunchHostFunc, callbacks).
#pragma once
#include <cstdint>
#include <functional>

namespace manyscale::cudart {

// Keeps a function to be called once; its number.
std::uint64_t keep_host_function(std::function<void()> function);
// Calls it, on whichever thread learns that it is due; if another thread is at it, waits for its end.
void run_host_function(std::uint64_t number);

}  // namespace manyscale::cudart
