// SPDX-License-Identifier: Apache-2.0
// Functions of the driver by their names.
#include <cstdint>

#include "runtime_calls.hpp"

using namespace manyscale::cuda_driver;

namespace {

constexpr std::uint64_t kPerThreadStream = 2;
enum SymbolStatus : int { symbol_found = 0, symbol_not_found = 1, version_not_sufficient = 2 };

int look_up(const char* name, void** function, int version, std::uint64_t flags, int* status) {
  if (name == nullptr || function == nullptr) return invalid_value;
  const Lookup found = find_function(name, version, (flags & kPerThreadStream) != 0);
  *function = found.function;
  if (status != nullptr)
    *status = found.function != nullptr ? symbol_found
              : found.known             ? version_not_sufficient
                                        : symbol_not_found;
  return found.function == nullptr ? not_found : success;
}

}  // namespace

extern "C" {

int cuGetProcAddress(const char* name, void** function, int version, std::uint64_t flags) {
  return look_up(name, function, version, flags, nullptr);
}

int cuGetProcAddress_v2(const char* name, void** function, int version, std::uint64_t flags, int* status) {
  return look_up(name, function, version, flags, status);
}

}  // extern "C"
