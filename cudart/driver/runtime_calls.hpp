// SPDX-License-Identifier: Apache-2.0
// How functions of the driver are answered by the CUDA runtime of the program.
#pragma once
#include <dlfcn.h>

namespace manyscale::cuda_driver {

// The numbers of CUresult, which for these are those of cudaError_t.
enum Result : int {
  success = 0,
  invalid_value = 1,
  not_initialized = 3,
  invalid_device = 101,
  invalid_context = 201,
  not_found = 500,
};

// A function of the runtime that the program has loaded, or of our own if it has none; null if there is no
// such function.
void* runtime_function(const char* name);

template <class... Arguments>
Result runtime(const char* name, Arguments... arguments) {
  using Function = int (*)(Arguments...);
  const auto function = reinterpret_cast<Function>(runtime_function(name));
  return function == nullptr ? not_initialized : static_cast<Result>(function(arguments...));
}

}  // namespace manyscale::cuda_driver
