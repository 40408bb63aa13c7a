// SPDX-License-Identifier: Apache-2.0
#include "runtime_calls.hpp"

#include <link.h>

#include <string>
#include <vector>

namespace manyscale::cuda_driver {

namespace {

constexpr const char* kMark = "__cudaManyscale";  // a function of our runtimes, and of no other
constexpr const char* kNewest = "libcudart.so.13";

std::string file_of(const void* function) {
  Dl_info information{};
  return dladdr(function, &information) != 0 && information.dli_fname != nullptr ? information.dli_fname : "";
}

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// Libraries of the process that call themselves a CUDA runtime, also those that only a part of it sees.
std::vector<std::string> loaded_runtimes() {
  std::vector<std::string> names;
  dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* to) {
        if (base_name(library->dlpi_name).rfind("libcudart", 0) == 0)
          static_cast<std::vector<std::string>*>(to)->push_back(library->dlpi_name);
        return 0;
      },
      &names);
  return names;
}

void refuse(const std::string& other) {
  const std::string folder = file_of(reinterpret_cast<const void*>(&refuse));
  std::string name = kNewest;
  for (const char* known : {"libcudart.so.11.0", "libcudart.so.12"})
    if (base_name(other).rfind(std::string(known).substr(0, 15), 0) == 0) name = known;
  const std::string ours = folder.substr(0, folder.rfind('/') + 1) + name;
  report_once(
      "the program has loaded another CUDA runtime, " + other +
      ", which cannot work with the simulated driver (an RPATH comes before LD_LIBRARY_PATH); load the "
      "simulator's first: manyscale cuda -- env LD_PRELOAD=" +
      ours + " PROGRAM");
}

// Our runtime; null if there is none for this process.
void* find_runtime() {
  if (void* mark = dlsym(RTLD_DEFAULT, kMark); mark != nullptr)
    return dlopen(file_of(mark).c_str(), RTLD_LAZY | RTLD_NOLOAD);
  std::string other;
  for (const std::string& name : loaded_runtimes()) {
    void* library = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library != nullptr && dlsym(library, kMark) != nullptr) return library;
    other = name;
  }
  if (void* visible = dlsym(RTLD_DEFAULT, "cudaGetDeviceCount"); visible != nullptr) other = file_of(visible);
  if (!other.empty()) {
    refuse(other);
    return nullptr;
  }
  void* newest = dlopen(kNewest, RTLD_NOW | RTLD_GLOBAL);
  if (newest == nullptr) {
    report_once("the simulated driver needs " + std::string(kNewest) +
                ", which is not there; start the program with: manyscale cuda -- PROGRAM");
  } else if (dlsym(newest, kMark) == nullptr) {
    refuse(file_of(dlsym(newest, "cudaGetDeviceCount")));
    return nullptr;
  }
  return newest;
}

}  // namespace

void* runtime_function(const char* name) {
  // A runtime that calls the driver while it is being loaded must not wait for its own loading.
  static thread_local bool searching = false;
  if (searching) return nullptr;
  searching = true;
  static void* const library = find_runtime();
  searching = false;
  return library == nullptr ? nullptr : dlsym(library, name);
}

int* last_error_of_runtime() {
  using Function = int* (*)();
  static const auto function = reinterpret_cast<Function>(runtime_function(kMark));
  return function == nullptr ? nullptr : function();
}

int runtime_version() {
  int version = 0;
  runtime("cudaRuntimeGetVersion", &version);
  return version;
}

}  // namespace manyscale::cuda_driver
