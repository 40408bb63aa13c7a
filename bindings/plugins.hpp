// SPDX-License-Identifier: Apache-2.0
// Plug-ins written in Python: an adapter for each kind implements its interface in C++ and calls the methods
// of a Python object. An adapter is constructed from the object and the arguments of Create, and takes the
// interpreter lock for each call.
#pragma once
#include <nanobind/nanobind.h>

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "engine/registry.hpp"

// An object of Python that C++ may destroy at any time.
class PythonObject {
 public:
  explicit PythonObject(nanobind::object object) : object_(std::move(object)) {}
  PythonObject(const PythonObject& other) {
    const nanobind::gil_scoped_acquire held;
    object_ = other.object_;
  }
  PythonObject& operator=(const PythonObject&) = delete;
  ~PythonObject() {
    const nanobind::gil_scoped_acquire held;
    object_.reset();
  }
  const nanobind::object& get() const { return object_; }

 private:
  nanobind::object object_;
};

using RegisterPython = std::function<void(const std::string& name, const std::string& doc, nanobind::object)>;

// The kinds that can be written in Python, and how a class of Python is registered as one.
std::map<std::string, RegisterPython, std::less<>>& python_plugin_kinds();

template <class Interface, class Adapter, class Function>
struct PythonMaker;
template <class Interface, class Adapter, class... Arguments>
struct PythonMaker<Interface, Adapter, std::unique_ptr<Interface>(Arguments...)> {
  PythonObject plugin;
  std::unique_ptr<Interface> operator()(Arguments... arguments) const {
    const nanobind::gil_scoped_acquire held;
    return std::make_unique<Adapter>(plugin.get(), std::forward<Arguments>(arguments)...);
  }
};

// Lets plug-ins of an interface be written in Python.
template <class Interface, class Adapter>
void allow_python_plugins() {
  using manyscale::Registry;
  python_plugin_kinds().emplace(
      Registry<Interface>::get().kind(),
      [](const std::string& name, const std::string& doc, nanobind::object plugin) {
        using Create = typename Registry<Interface>::Create;
        Registry<Interface>::get().add(
            name, {{doc, {}}, PythonMaker<Interface, Adapter, Create>{PythonObject(std::move(plugin))}});
      });
}
