// SPDX-License-Identifier: Apache-2.0
// Plug-in library: a shared library with plug-ins from outside the tree. It consists of source files like
// those of plug-ins in the tree, and of plugin_export.hpp. Libraries stay loaded until the process ends.
#pragma once
#include <string>

#include "engine/registry.hpp"

namespace manyscale {

// What a plug-in library hands to the core that loads it.
struct PluginExport {
  // Raised with each change of an interface that plug-ins implement.
  static constexpr int current_version = 1;

  int version;
  const char* compiler;
  const std::map<std::string, RegistryBase*, std::less<>>* registries;
};

// Loads a library and adds its plug-ins to the registries. Throws std::runtime_error if it cannot be loaded
// or was built for another version of the core, std::invalid_argument if a name is taken.
void load_plugin_library(const std::string& path);

}  // namespace manyscale
