// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime of the program, as the driver API calls it.
#pragma once
#include <dlfcn.h>

#include <string>

namespace manyscale::cuda_driver {

// Numbers of CUresult.
enum Result : int {
  success = 0,
  invalid_value = 1,
  invalid_device = 101,
  invalid_context = 201,
  invalid_handle = 400,
  not_found = 500,
  not_supported = 801,
};

// What the driver calls an error of the runtime. Most have the same number; some the driver does not have.
constexpr Result result_of(int error) {
  switch (error) {
    case 9:   // a configuration of a launch
    case 12:  // a pitch
    case 17:  // a pointer of a device
    case 18:  // a texture
    case 20:  // a channel descriptor
    case 21:  // a direction of a copy
      return invalid_value;
    case 13:  // a symbol
      return not_found;
    case 98:  // a function
      return invalid_handle;
    default:
      return static_cast<Result>(error);
  }
}

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

// Where the runtime keeps the last error of this thread; null if there is no runtime.
int* last_error_of_runtime();

// The version of our runtime, e.g. 13000.
int runtime_version();

template <class... Arguments>
Result runtime(const char* name, Arguments... arguments) {
  using Function = int (*)(Arguments...);
  const auto function = reinterpret_cast<Function>(runtime_function(name));
  if (function == nullptr) return not_supported;
  int* last = last_error_of_runtime();
  const int before = *last;
  const Result result = result_of(function(arguments...));
  *last = before;  // cudaGetLastError does not give errors of the driver's functions
  return result;
}

}  // namespace manyscale::cuda_driver
