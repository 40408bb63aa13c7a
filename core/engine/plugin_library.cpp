// SPDX-License-Identifier: Apache-2.0
#include "engine/plugin_library.hpp"

#include <dlfcn.h>

#include <cstring>

namespace manyscale {

void load_plugin_library(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  using Entry = const PluginExport* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "manyscale_plugin_export"));
  if (entry == nullptr)
    throw std::runtime_error(path + " is no plug-in library: it does not export plug-ins");
  const PluginExport& exported = *entry();
  if (exported.version != PluginExport::current_version || std::strcmp(exported.compiler, __VERSION__) != 0) {
    throw std::runtime_error(
        path + " was built for another version of the core or by another compiler; build it again");
  }
  for (const auto& [kind, registry] : *exported.registries) {
    const auto known = registries().find(kind);
    if (known == registries().end())
      throw std::runtime_error(path + " has plug-ins of the unknown kind '" + kind + "'");
    known->second->add_all(*registry);
  }
}

}  // namespace manyscale
