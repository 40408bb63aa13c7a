// SPDX-License-Identifier: Apache-2.0
#include "network/topology_model.hpp"

#include <algorithm>

namespace manyscale::network {

namespace {

constexpr std::string_view prefix = "topology.";

const Registry<TopologyModel>& kinds() {
  return Registry<TopologyModel>::get();
}

bool declares(const PluginInfo& kind, std::string_view parameter) {
  return std::ranges::any_of(kind.parameters,
                             [&](const FieldInfo& field) { return field.name == parameter; });
}

// The meaning of a parameter, for each kind that has it.
std::string meaning(std::string_view parameter) {
  std::vector<std::pair<std::string, std::string>> meanings;  // of kinds
  for (const auto& [kind, entry] : kinds().entries()) {
    for (const FieldInfo& field : entry.info.parameters) {
      if (field.name != parameter) continue;
      const auto same = std::ranges::find(meanings, field.doc, &std::pair<std::string, std::string>::first);
      if (same == meanings.end()) {
        meanings.emplace_back(field.doc, kind);
      } else {
        same->second += ", " + kind;
      }
    }
  }
  std::string text;
  for (const auto& [doc, of] : meanings) text += (text.empty() ? "" : "; ") + of + ": " + doc;
  return text;
}

}  // namespace

std::unique_ptr<TopologyModel> make_topology(const TopologySpec& spec) {
  if (!kinds().contains(spec.kind)) {
    std::string names;
    for (const auto& [name, entry] : kinds().entries()) names += (names.empty() ? "'" : ", '") + name + "'";
    throw SimulationError("topology.kind is '" + spec.kind + "'; it must be one of " + names);
  }
  const PluginInfo& info = kinds().find(spec.kind).info;
  NamedValues own;
  for (const auto& value : spec.parameters)
    if (declares(info, value.first)) own.push_back(value);
  return make_plugin<TopologyModel>(spec.kind, own);
}

std::vector<FieldInfo> network_fields() {
  std::vector<FieldInfo> fields = field_infos<NetworkSpec>();
  const auto at = std::ranges::find(fields, "topology.kind", &FieldInfo::name);
  std::vector<FieldInfo> added;
  for (const auto& [kind, entry] : kinds().entries()) {
    for (FieldInfo field : entry.info.parameters) {
      const std::string name = std::string(prefix) + field.name;
      if (std::ranges::find(added, name, &FieldInfo::name) != added.end()) continue;
      field.doc = meaning(field.name);
      field.name = name;
      added.push_back(std::move(field));
    }
  }
  fields.insert(at + 1, added.begin(), added.end());
  return fields;
}

NetworkSpec network_spec(const NamedValues& values) {
  const std::vector<FieldInfo> common = field_infos<NetworkSpec>();
  NamedValues known, of_topology;
  for (const auto& [name, value] : values) {
    const bool is_common =
        std::ranges::any_of(common, [&](const FieldInfo& field) { return field.name == name; });
    if (is_common || !name.starts_with(prefix)) {
      known.emplace_back(name, value);
      continue;
    }
    const std::string parameter = name.substr(prefix.size());
    const bool declared = std::ranges::any_of(
        kinds().entries(), [&](const auto& kind) { return declares(kind.second.info, parameter); });
    if (!declared) throw std::invalid_argument("no topology has a parameter '" + parameter + "'");
    of_topology.emplace_back(parameter, value);
  }
  NetworkSpec spec = from_values<NetworkSpec>(known);
  spec.topology.parameters = std::move(of_topology);
  return spec;
}

}  // namespace manyscale::network
