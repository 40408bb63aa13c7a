// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include "engine/plugin_library.hpp"
#include "engine/registry.hpp"
#include "module.hpp"
#include "values.hpp"

using namespace manyscale;

void bind_plugins(nb::module_& module) {
  // By kind and name: a sentence on the plug-in and its parameters.
  module.def("plugins", [] {
    nb::dict kinds;
    for (const auto& [kind, registry] : registries()) {
      nb::dict plugins;
      for (const auto& [name, info] : registry->list()) {
        nb::dict entry;
        entry["doc"] = info.doc;
        entry["parameters"] = field_list(info.parameters);
        plugins[name.c_str()] = entry;
      }
      kinds[kind.c_str()] = plugins;
    }
    return kinds;
  });
  module.def("load_plugin_library", &load_plugin_library, nb::arg("path"));
  module.def(
      "remove_plugin",
      [](const std::string& kind, const std::string& name) { registries().at(kind)->remove(name); },
      nb::arg("kind"), nb::arg("name"));
}
