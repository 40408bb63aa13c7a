// SPDX-License-Identifier: Apache-2.0
// The entry point of a plug-in library. The compiler includes it before each source file of one (-include),
// so that plug-ins have the same source in the tree and outside.
#pragma once
#include "engine/plugin_library.hpp"

namespace manyscale {

// Hidden, since the loader would share a static of a visible inline function among all libraries.
[[gnu::visibility("hidden")]] inline const PluginExport& plugin_export() {
  static const PluginExport exported{PluginExport::current_version, __VERSION__, &registries()};
  return exported;
}

}  // namespace manyscale

extern "C" [[gnu::visibility("default"), gnu::used]] inline const manyscale::PluginExport*
manyscale_plugin_export() {
  return &manyscale::plugin_export();
}
