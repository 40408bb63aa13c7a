// SPDX-License-Identifier: Apache-2.0
// Parameters and payload fields are declared once, in a table beside their struct. From that table come the
// Python class, its checks and its documentation; the core only ever sees plain numbers.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace manyscale {

// What a number counts, in base units: femtoseconds, hertz, bytes, bytes per second, cycles.
enum class Unit { none, count, ratio, time, frequency, bytes, bandwidth, cycles };

constexpr std::string_view unit_name(Unit unit) {
  switch (unit) {
    case Unit::none:
      return "none";
    case Unit::count:
      return "count";
    case Unit::ratio:
      return "ratio";
    case Unit::time:
      return "time";
    case Unit::frequency:
      return "frequency";
    case Unit::bytes:
      return "bytes";
    case Unit::bandwidth:
      return "bandwidth";
    case Unit::cycles:
      return "cycles";
  }
  return "none";
}

// One field of a struct: where it is, its unit, its range and what it means.
template <class Struct, class Value>
struct Field {
  std::string_view name;
  Value Struct::* member;
  Unit unit;
  std::string_view doc;
  std::optional<double> minimum = std::nullopt;
  std::optional<double> maximum = std::nullopt;
};

// A struct within a struct, with fields of its own: their names are then "section.field".
template <class Struct, class Part>
struct Section {
  std::string_view name;
  Part Struct::* member;
  std::string_view doc;
};

// Specialise with `static constexpr auto fields = std::tuple{Field…, Section…}`. With `static constexpr bool
// required = true` no parameter has a default: what members are initialised to only makes the smallest valid
// instance, for lists of ports and statistics.
template <class Struct>
struct describe;

template <class Struct>
inline constexpr bool is_required = false;
template <class Struct>
  requires requires { describe<Struct>::required; }
inline constexpr bool is_required<Struct> = describe<Struct>::required;

// A value on its way between Python and a field.
using Value = std::variant<bool, std::int64_t, double, std::string>;

struct FieldInfo {
  std::string name;
  std::string type;  // "int", "float", "bool" or "str"
  std::string unit;
  std::string doc;
  Value initial;  // the default
  std::optional<double> minimum;
  std::optional<double> maximum;
  bool required = false;  // there is no default
};

namespace detail {

template <class Member>
Value to_value(const Member& member) {
  if constexpr (std::is_same_v<Member, bool>) {
    return member;
  } else if constexpr (std::is_integral_v<Member> || std::is_enum_v<Member>) {
    return static_cast<std::int64_t>(member);
  } else if constexpr (std::is_floating_point_v<Member>) {
    return static_cast<double>(member);
  } else {
    return std::string(member);
  }
}

template <class Member>
constexpr const char* type_name() {
  if constexpr (std::is_same_v<Member, bool>) return "bool";
  if constexpr (std::is_integral_v<Member> || std::is_enum_v<Member>) return "int";
  if constexpr (std::is_floating_point_v<Member>) return "float";
  return "str";
}

template <class Member>
Member from_value(const Value& value, std::string_view name) {
  const auto wrong = [&] {
    return std::invalid_argument("'" + std::string(name) + "' takes a value of type " + type_name<Member>());
  };
  if constexpr (std::is_same_v<Member, bool>) {
    if (const auto* flag = std::get_if<bool>(&value)) return *flag;
    throw wrong();
  } else if constexpr (std::is_integral_v<Member> || std::is_enum_v<Member>) {
    const auto* whole = std::get_if<std::int64_t>(&value);
    if (whole == nullptr) throw wrong();
    if constexpr (std::is_integral_v<Member>) {
      if (!std::in_range<Member>(*whole)) {
        throw std::invalid_argument("'" + std::string(name) + "' does not fit: " + std::to_string(*whole));
      }
    }
    return static_cast<Member>(*whole);
  } else if constexpr (std::is_floating_point_v<Member>) {
    if (const auto* real = std::get_if<double>(&value)) return *real;
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<Member>(*whole);
    throw wrong();
  } else {
    if (const auto* text = std::get_if<std::string>(&value)) return *text;
    throw wrong();
  }
}

}  // namespace detail

template <class Entry>
inline constexpr bool is_section = false;
template <class Struct, class Part>
inline constexpr bool is_section<Section<Struct, Part>> = true;

// Calls visit(entry) for each entry of the struct's table, in order.
template <class Struct, class Visit>
constexpr void for_each_field(Visit&& visit) {
  std::apply([&](const auto&... entry) { (visit(entry), ...); }, describe<Struct>::fields);
}

// Calls visit(name, field, member) for each field of an object and of the sections within it.
template <class Struct, class Visit>
void for_each_member(Struct& object, Visit&& visit, const std::string& prefix = "") {
  for_each_field<std::remove_const_t<Struct>>([&](const auto& entry) {
    const std::string name = prefix + std::string(entry.name);
    if constexpr (is_section<std::remove_cvref_t<decltype(entry)>>) {
      for_each_member(object.*(entry.member), visit, name + ".");
    } else {
      visit(name, entry, object.*(entry.member));
    }
  });
}

template <class Struct>
std::vector<FieldInfo> field_infos() {
  std::vector<FieldInfo> infos;
  const Struct initial{};
  for_each_member(initial, [&](const std::string& name, const auto& field, const auto& member) {
    using Member = std::remove_cvref_t<decltype(member)>;
    infos.push_back({name, detail::type_name<Member>(), std::string(unit_name(field.unit)),
                     std::string(field.doc), detail::to_value(member), field.minimum, field.maximum,
                     is_required<Struct>});
  });
  return infos;
}

using NamedValues = std::vector<std::pair<std::string, Value>>;

// Makes a struct from named values; what is not named keeps its default. Throws std::invalid_argument for an
// unknown name, a wrong type or a value out of range.
template <class Struct>
Struct from_values(const NamedValues& values) {
  Struct result{};
  for (const auto& [wanted, value] : values) {
    bool found = false;
    for_each_member(result, [&](const std::string& name, const auto& field, auto& member) {
      if (name != wanted) return;
      found = true;
      using Member = std::remove_cvref_t<decltype(member)>;
      member = detail::from_value<Member>(value, name);
      if constexpr (std::is_arithmetic_v<Member>) {
        const auto number = static_cast<double>(member);
        if ((field.minimum && number < *field.minimum) || (field.maximum && number > *field.maximum)) {
          throw std::invalid_argument("'" + name + "' is out of range: " + std::to_string(number));
        }
      }
    });
    if (!found) throw std::invalid_argument("no field named '" + wanted + "'");
  }
  return result;
}

template <class Struct>
NamedValues to_values(const Struct& source) {
  NamedValues values;
  for_each_member(source, [&](const std::string& name, const auto&, const auto& member) {
    values.emplace_back(name, detail::to_value(member));
  });
  return values;
}

}  // namespace manyscale
