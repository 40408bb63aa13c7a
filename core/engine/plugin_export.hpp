// SPDX-License-Identifier: Apache-2.0
// The entry point of a plug-in library. The compiler includes it before each source file of one (-include),
// so that plug-ins have the same source in the tree and outside.
#pragma once
#include "engine/plugin_library.hpp"

extern "C" [[gnu::visibility("default"), gnu::used]] inline const manyscale::PluginExport*
manyscale_plugin_export() {
  static const manyscale::PluginExport exported{manyscale::PluginExport::current_version, __VERSION__,
                                                &manyscale::registries()};
  return &exported;
}
