// SPDX-License-Identifier: Apache-2.0
// The driver's log (cuLogs*). It is empty: all messages of the simulated driver are on standard error.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "runtime_calls.hpp"

using namespace manyscale::cuda_driver;

extern "C" {

int cuLogsRegisterCallback(void (*function)(void*, int, char*, std::size_t), void*, std::uintptr_t* handle) {
  static std::atomic<std::uintptr_t> made{0};
  if (function == nullptr || handle == nullptr) return invalid_value;
  *handle = ++made;
  return success;
}

int cuLogsUnregisterCallback(std::uintptr_t handle) {
  return handle == 0 ? invalid_value : success;
}

int cuLogsCurrent(unsigned* position, unsigned flags) {
  if (position == nullptr || flags != 0) return invalid_value;
  *position = 0;
  return success;
}

int cuLogsDumpToFile(unsigned*, const char* path, unsigned flags) {
  if (path == nullptr || flags != 0) return invalid_value;
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return invalid_value;
  std::fclose(file);
  return success;
}

int cuLogsDumpToMemory(unsigned*, char* text, std::size_t* bytes, unsigned flags) {
  if (text == nullptr || bytes == nullptr || *bytes == 0 || flags != 0) return invalid_value;
  text[0] = '\0';
  *bytes = 0;
  return success;
}

}  // extern "C"
