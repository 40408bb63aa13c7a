// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime of the program, as the driver API calls it.
#pragma once
#include <dlfcn.h>

#include <string>

namespace manyscale::cuda_driver {

// The numbers of CUresult, which for these are those of cudaError_t.
enum Result : int {
  success = 0,
  invalid_value = 1,
  invalid_device = 101,
  invalid_context = 201,
  not_found = 500,
  not_supported = 801,
};

// Says something on standard error, once for each text.
void report_once(const std::string& text);

struct Lookup {
  void* function;  // null if there is none for the version
  bool known;      // by its name
};
// The newest function of the driver of a name that a program of a version of CUDA (12050 for 12.5) knows, or
// that for a default stream of each thread.
Lookup find_function(const char* name, int version, bool thread);

// A function of our runtime: that of the program, or another if it has loaded none; null if there is no such
// function, or if the program has loaded the runtime of somebody else. Theirs would call the driver again,
// which would wait for itself.
void* runtime_function(const char* name);

template <class... Arguments>
Result runtime(const char* name, Arguments... arguments) {
  using Function = int (*)(Arguments...);
  const auto function = reinterpret_cast<Function>(runtime_function(name));
  return function == nullptr ? not_supported : static_cast<Result>(function(arguments...));
}

}  // namespace manyscale::cuda_driver
