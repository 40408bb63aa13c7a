// SPDX-License-Identifier: Apache-2.0
// Columns of numbers as bytes, which numpy takes as they are.
#pragma once
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "module.hpp"

// What `value` gives for each row, one after the other.
template <class Rows, class Value>
nb::bytes column_bytes(const Rows& rows, Value&& value) {
  std::vector<std::decay_t<decltype(value(*rows.begin()))>> values;
  values.reserve(rows.size());
  for (const auto& row : rows) values.push_back(value(row));
  return nb::bytes(values.data(), values.size() * sizeof(values[0]));
}

// The numbers of a named column.
template <class Value>
std::vector<Value> column_values(const nb::dict& columns, const char* name) {
  const auto bytes = nb::cast<nb::bytes>(columns[name]);
  if (bytes.size() % sizeof(Value) != 0) {
    throw std::invalid_argument(std::string("the column ") + name + " ends within a number");
  }
  std::vector<Value> values(bytes.size() / sizeof(Value));
  if (!values.empty()) std::memcpy(values.data(), bytes.c_str(), bytes.size());
  return values;
}

// The same, where there must be so many.
template <class Value>
std::vector<Value> column_values(const nb::dict& columns, const char* name, std::size_t count) {
  auto values = column_values<Value>(columns, name);
  if (values.size() != count) {
    throw std::invalid_argument(std::string("the column ") + name + " has " + std::to_string(values.size()) +
                                " rows and not " + std::to_string(count));
  }
  return values;
}

inline std::vector<std::uint8_t> byte_vector(const nb::bytes& bytes) {
  const auto* begin = reinterpret_cast<const std::uint8_t*>(bytes.c_str());
  return {begin, begin + bytes.size()};
}
