// SPDX-License-Identifier: Apache-2.0
// What the dynamic linker asks about each library that a program loads (LD_AUDIT, see rtld-audit(7)): a CUDA
// runtime or driver of NVIDIA is replaced by the simulator's, wherever an RPATH or the program says it is,
// and a runtime that is linked into a program calls the simulator's.
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string_view>

#include "static_runtime.hpp"

namespace manyscale::cuda_interposer {

namespace {

// The folder of the simulator's libraries, with this one.
const char* folder() {
  static char path[3072];
  if (path[0] == '\0') {
    Dl_info information{};
    if (dladdr(reinterpret_cast<const void*>(&folder), &information) == 0) return "";
    const std::string_view file = information.dli_fname;
    const std::size_t slash = file.rfind('/');
    if (slash == std::string_view::npos || slash >= sizeof path) return "";
    std::memcpy(path, file.data(), slash);
  }
  return path;
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// The simulator's library that stands for one of NVIDIA's, which may have its version, or what a packer of
// wheels adds, in its name: libcudart.so.11.8.89, libcudart-d0da41ae.so.11.0. Null if there is none.
const char* replacement(std::string_view name) {
  if (name == "libcuda.so.1" || name == "libcuda.so") return "libcuda.so.1";
  if (name == "libnvidia-ml.so.1" || name == "libnvidia-ml.so") return "libnvidia-ml.so.1";
  constexpr std::string_view runtime = "libcudart", ending = ".so.";
  const std::size_t end = name.find(ending);
  if (!name.starts_with(runtime) || end == std::string_view::npos) return nullptr;
  if (end != runtime.size() && name[runtime.size()] != '-') return nullptr;
  const std::string_view version = name.substr(end + ending.size());
  const std::string_view major = version.substr(0, version.find('.'));
  if (major == "11") return "libcudart.so.11.0";
  if (major == "12") return "libcudart.so.12";
  return major == "13" ? "libcudart.so.13" : nullptr;
}

}  // namespace

}  // namespace manyscale::cuda_interposer

using namespace manyscale::cuda_interposer;

extern "C" {

unsigned la_version(unsigned version) {
  return version < LAV_CURRENT ? version : LAV_CURRENT;
}

char* la_objsearch(const char* name, std::uintptr_t*, unsigned) {
  static char path[4096];  // the dynamic linker does one thing at a time
  const char* ours = replacement(base_name(name));
  if (ours == nullptr) return const_cast<char*>(name);
  std::snprintf(path, sizeof path, "%s/%s", folder(), ours);
  return access(path, R_OK) == 0 ? path : const_cast<char*>(name);
}

unsigned la_objopen(link_map* map, Lmid_t space, std::uintptr_t*) {
  const char* path = map->l_name[0] == '\0' ? "/proc/self/exe" : map->l_name;
  if (space == LM_ID_BASE && !base_name(path).starts_with("libcudart"))
    redirect_static_runtime(path, map->l_addr, folder());
  return 0;
}

}  // extern "C"
