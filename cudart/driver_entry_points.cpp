// SPDX-License-Identifier: Apache-2.0
// Functions of the driver, asked for through the runtime (cudaGetDriverEntryPoint, cudaGetExportTable).
#include "driver_entry_points.hpp"

#include <dlfcn.h>

#include <string>

namespace manyscale::cudart {

namespace {

using GetProcAddress = int (*)(const char*, void**, int, unsigned long long, int*);
using GetExportTable = int (*)(const void**, const void*, const void*);

void* load_driver() {
  Dl_info here{};
  if (dladdr(reinterpret_cast<const void*>(&load_driver), &here) == 0 || here.dli_fname == nullptr)
    return nullptr;
  const std::string file = here.dli_fname;
  return dlopen((file.substr(0, file.rfind('/') + 1) + "libcuda.so.1").c_str(), RTLD_NOW);
}

// A function of the driver beside this runtime; null if it is not there.
template <class Function>
Function of_driver(const char* name) {
  static void* const driver = load_driver();
  return driver == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(driver, name));
}

}  // namespace

Error driver_entry_point(const char* name, void** function, int version, unsigned long long flags,
                         DefaultStream when_default, int* status) {
  static const GetProcAddress look_up = of_driver<GetProcAddress>("cuGetProcAddress_v2");
  if (name == nullptr || function == nullptr) return Error::invalid_value;
  if (look_up == nullptr) return Error::not_supported;
  constexpr unsigned long long per_thread = 2;
  if (flags == 0 && when_default == DefaultStream::per_thread) flags = per_thread;
  int found = 0;
  const int result = look_up(name, function, version, flags, &found);
  if (status != nullptr) *status = found;
  if (result == 0 || (found != 0 && status != nullptr)) return Error::success;
  return found != 0 ? Error::symbol_not_found : Error::invalid_value;
}

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

extern "C" {

Error cudaGetExportTable(const void** table, const void* name) {
  const auto look_up = of_driver<GetExportTable>("__cuManyscaleGetExportTable");
  if (look_up == nullptr) return finish(Error::not_supported);
  return finish(static_cast<Error>(look_up(table, name, __builtin_return_address(0))));
}

Error cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                       unsigned long long flags, int* status) {
  return finish(
      driver_entry_point(name, function, static_cast<int>(version), flags, DefaultStream::legacy, status));
}

Error cudaGetDriverEntryPointByVersion_ptsz(const char* name, void** function, unsigned version,
                                            unsigned long long flags, int* status) {
  return finish(driver_entry_point(name, function, static_cast<int>(version), flags,
                                   DefaultStream::per_thread, status));
}

}  // extern "C"
