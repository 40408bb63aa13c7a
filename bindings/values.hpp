// SPDX-License-Identifier: Apache-2.0
// Named values and field tables of the core as Python dictionaries.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/variant.h>

#include "engine/registry.hpp"
#include "engine/spec.hpp"

// The meaning of a field; "{kind}" in it stands for the names of all plug-ins of that kind.
inline std::string expanded_doc(std::string doc) {
  const std::size_t begin = doc.find('{');
  const std::size_t end = doc.find('}', begin == std::string::npos ? 0 : begin);
  if (begin == std::string::npos || end == std::string::npos) return doc;
  const auto found = manyscale::registries().find(doc.substr(begin + 1, end - begin - 1));
  if (found == manyscale::registries().end()) return doc;
  std::string names;
  for (const auto& [name, info] : found->second->list()) names += (names.empty() ? "" : ", ") + name;
  return doc.replace(begin, end + 1 - begin, names);
}

inline manyscale::NamedValues named_values(const nanobind::dict& values) {
  manyscale::NamedValues result;
  for (auto [key, value] : values) {
    result.emplace_back(nanobind::cast<std::string>(key), nanobind::cast<manyscale::Value>(value));
  }
  return result;
}

// A row for each field: its name, type, unit, default, range and meaning.
inline nanobind::list field_list(const std::vector<manyscale::FieldInfo>& fields) {
  const auto limit = [](const auto& value) { return value ? nanobind::cast(*value) : nanobind::none(); };
  nanobind::list list;
  for (const manyscale::FieldInfo& field : fields) {
    nanobind::dict row;
    row["name"] = field.name;
    row["type"] = field.type;
    row["unit"] = field.unit;
    if (!field.required) row["default"] = field.initial;
    row["minimum"] = limit(field.minimum);
    row["maximum"] = limit(field.maximum);
    row["doc"] = expanded_doc(field.doc);
    list.append(row);
  }
  return list;
}

inline nanobind::dict value_dict(const manyscale::NamedValues& values) {
  nanobind::dict result;
  for (const auto& [name, value] : values) result[name.c_str()] = value;
  return result;
}
