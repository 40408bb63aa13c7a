// SPDX-License-Identifier: Apache-2.0
#include "plugins.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include "engine/plugin_library.hpp"
#include "module.hpp"
#include "values.hpp"

using namespace manyscale;

std::map<std::string, RegisterPython, std::less<>>& python_plugin_kinds() {
  static std::map<std::string, RegisterPython, std::less<>> kinds;
  return kinds;
}

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
  module.def(
      "register_python_plugin",
      [](const std::string& kind, const std::string& name, const std::string& doc, nb::object plugin) {
        const auto found = python_plugin_kinds().find(kind);
        if (found == python_plugin_kinds().end())
          throw std::invalid_argument("a " + kind + " cannot be written in Python");
        found->second(name, doc, std::move(plugin));
      },
      nb::arg("kind"), nb::arg("name"), nb::arg("doc"), nb::arg("plugin"));
  module.def("python_plugin_kinds", [] {
    nb::list names;
    for (const auto& [kind, add] : python_plugin_kinds()) names.append(kind);
    return names;
  });
}
