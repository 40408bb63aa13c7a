// SPDX-License-Identifier: Apache-2.0
// Named values between Python dictionaries and the core's field tables.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include "engine/spec.hpp"

inline manyscale::NamedValues named_values(const nanobind::dict& values) {
  manyscale::NamedValues result;
  for (auto [key, value] : values) {
    result.emplace_back(nanobind::cast<std::string>(key), nanobind::cast<manyscale::Value>(value));
  }
  return result;
}

inline nanobind::dict value_dict(const manyscale::NamedValues& values) {
  nanobind::dict result;
  for (const auto& [name, value] : values) result[name.c_str()] = value;
  return result;
}
