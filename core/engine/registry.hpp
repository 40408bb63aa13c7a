// SPDX-License-Identifier: Apache-2.0
// Registry of plug-ins: the models and policies that are known by name, one registry for each interface. A
// plug-in is one source file that registers itself, in the core or in a library that is loaded later:
//   const Registered<LruPage> registered{"lru_page", "Evicts the least recently used page."};
// The interface declares what kind of plug-in it is and how one is made:
//   class EvictionPolicy {
//    public:
//     using PluginInterface = EvictionPolicy;
//     static constexpr std::string_view plugin_kind = "eviction policy";
//     using Create = std::unique_ptr<EvictionPolicy>(double reserved_share);
// An implementation is constructed from the arguments of Create. If it has a nested Spec with a table of
// fields, the first argument of Create is NamedValues and the constructor takes the Spec made from them
// instead: the parameters are then declared once, by the plug-in. Look a plug-in up when a simulation is
// built, not during a run:
//   policy_ = make_plugin<EvictionPolicy>(spec.eviction, spec.reserved_share);
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/spec.hpp"

namespace manyscale {

class Component;

struct PluginInfo {
  std::string doc;
  std::vector<FieldInfo> parameters;
};

// The kind of an interface and how its plug-ins are made.
template <class Interface>
struct plugin_traits {
  static constexpr std::string_view kind = Interface::plugin_kind;
  using Create = typename Interface::Create;
};
// Models: components of a simulated machine.
template <>
struct plugin_traits<Component> {
  static constexpr std::string_view kind = "model";
  using Create = std::unique_ptr<Component>(const NamedValues& parameters);
};

// A registry without the type of its interface, for lists and for libraries that are loaded.
class RegistryBase {
 public:
  virtual ~RegistryBase() = default;
  virtual std::string_view kind() const = 0;
  virtual std::map<std::string, PluginInfo> list() const = 0;
  virtual bool contains(std::string_view name) const = 0;
  // Adds all plug-ins of another registry of the same kind. Throws std::invalid_argument for a name that is
  // taken and then adds none.
  virtual void add_all(const RegistryBase& other) = 0;
  virtual void remove(std::string_view name) = 0;
};

// All registries of this library by kind. Each library has its own, so that a loaded one cannot replace
// names.
[[gnu::visibility("hidden")]] inline std::map<std::string, RegistryBase*, std::less<>>& registries() {
  static std::map<std::string, RegistryBase*, std::less<>> all;
  return all;
}

template <class Interface>
class [[gnu::visibility("hidden")]] Registry final : public RegistryBase {
 public:
  using Create = typename plugin_traits<Interface>::Create;
  struct Entry {
    PluginInfo info;
    std::function<Create> create;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  // Changed only while no simulation runs.
  static Registry& get() {
    static Registry registry;
    return registry;
  }

  void add(std::string name, Entry entry) {
    if (contains(name)) throw std::invalid_argument(duplicate(name));
    entries_.emplace(std::move(name), std::move(entry));
  }
  void remove(std::string_view name) override { entries_.erase(std::string(name)); }

  const Entries& entries() const { return entries_; }
  bool contains(std::string_view name) const override { return entries_.contains(name); }
  // Throws std::invalid_argument with all names for an unknown one.
  const Entry& find(std::string_view name) const {
    const auto found = entries_.find(name);
    if (found != entries_.end()) return found->second;
    std::string text = "there is no " + std::string(kind()) + " '" + std::string(name) + "'; there are";
    const char* separator = " ";
    for (const auto& [known, entry] : entries_) {
      text += separator + known;
      separator = ", ";
    }
    throw std::invalid_argument(entries_.empty() ? text + " none" : text);
  }

  std::string_view kind() const override { return plugin_traits<Interface>::kind; }
  std::map<std::string, PluginInfo> list() const override {
    std::map<std::string, PluginInfo> result;
    for (const auto& [name, entry] : entries_) result.emplace(name, entry.info);
    return result;
  }
  void add_all(const RegistryBase& other) override {
    const auto& from = static_cast<const Registry&>(other).entries_;  // of the same kind
    for (const auto& [name, entry] : from)
      if (contains(name)) throw std::invalid_argument(duplicate(name));
    entries_.insert(from.begin(), from.end());
  }

 private:
  Registry() { registries().emplace(kind(), this); }
  std::string duplicate(std::string_view name) const {
    return "there is already a " + std::string(kind()) + " '" + std::string(name) + "'";
  }

  Entries entries_;
};

namespace detail {

template <class Implementation>
struct plugin_interface {
  using type = Component;
};
template <class Implementation>
  requires requires { typename Implementation::PluginInterface; }
struct plugin_interface<Implementation> {
  using type = typename Implementation::PluginInterface;
};

template <class Implementation>
concept HasSpec = requires { describe<typename Implementation::Spec>::fields; };

template <class Interface, class Implementation, class Function>
struct Maker;
template <class Interface, class Implementation, class... Arguments>
struct Maker<Interface, Implementation, std::unique_ptr<Interface>(Arguments...)> {
  static std::unique_ptr<Interface> make(Arguments... arguments) {
    return std::make_unique<Implementation>(std::forward<Arguments>(arguments)...);
  }
};
template <class Interface, class Implementation, class... Arguments>
  requires HasSpec<Implementation>
struct Maker<Interface, Implementation, std::unique_ptr<Interface>(const NamedValues&, Arguments...)> {
  static std::unique_ptr<Interface> make(const NamedValues& values, Arguments... arguments) {
    return std::make_unique<Implementation>(from_values<typename Implementation::Spec>(values),
                                            std::forward<Arguments>(arguments)...);
  }
};

}  // namespace detail

// Registers an implementation under a name, with one sentence on what it does.
template <class Implementation>
struct Registered {
  using Interface = typename detail::plugin_interface<Implementation>::type;

  Registered(std::string name, std::string doc) {
    PluginInfo info{std::move(doc), {}};
    if constexpr (detail::HasSpec<Implementation>)
      info.parameters = field_infos<typename Implementation::Spec>();
    using Create = typename Registry<Interface>::Create;
    Registry<Interface>::get().add(
        std::move(name), {std::move(info), &detail::Maker<Interface, Implementation, Create>::make});
  }
};

// Makes the plug-in of that name. Throws std::invalid_argument with all names for an unknown one.
template <class Interface, class... Arguments>
std::unique_ptr<Interface> make_plugin(std::string_view name, Arguments&&... arguments) {
  return Registry<Interface>::get().find(name).create(std::forward<Arguments>(arguments)...);
}

}  // namespace manyscale
