// SPDX-License-Identifier: Apache-2.0
#include "gpu/ptx/types.hpp"

#include <array>
#include <cstddef>

namespace manyscale::ptx {
namespace {

struct TypeRow {
  std::string_view name;
  unsigned size;
  bool is_signed;
  bool is_float;
};

// In the order of the enumeration.
constexpr std::array<TypeRow, 35> kTypes = {{
    {"", 0, false, false},        {"b8", 1, false, false},     {"b16", 2, false, false},
    {"b32", 4, false, false},     {"b64", 8, false, false},    {"b128", 16, false, false},
    {"u8", 1, false, false},      {"u16", 2, false, false},    {"u32", 4, false, false},
    {"u64", 8, false, false},     {"s8", 1, true, false},      {"s16", 2, true, false},
    {"s32", 4, true, false},      {"s64", 8, true, false},     {"f16", 2, true, true},
    {"f16x2", 4, true, true},     {"bf16", 2, true, true},     {"bf16x2", 4, true, true},
    {"tf32", 4, true, true},      {"f32", 4, true, true},      {"f64", 8, true, true},
    {"pred", 0, false, false},    {"u16x2", 4, false, false},  {"s16x2", 4, true, false},
    {"e4m3", 1, true, true},      {"e5m2", 1, true, true},     {"e4m3x2", 2, true, true},
    {"e5m2x2", 2, true, true},    {"s4", 0, true, false},      {"u4", 0, false, false},
    {"b1", 0, false, false},      {"texref", 8, false, false}, {"samplerref", 8, false, false},
    {"surfref", 8, false, false}, {"f32x2", 8, true, true},
}};
static_assert(kTypes[static_cast<std::size_t>(Type::f32x2)].name == "f32x2");
static_assert(kTypes[static_cast<std::size_t>(Type::pred)].name == "pred");

const TypeRow& row(Type type) {
  return kTypes[static_cast<std::size_t>(type)];
}

}  // namespace

Type type_named(std::string_view name) {
  for (std::size_t i = 1; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<Type>(i);
  }
  return Type::none;
}

std::string_view name_of(Type type) {
  return row(type).name;
}

std::string_view name_of(Space space) {
  switch (space) {
    case Space::generic:
      return "generic";
    case Space::reg:
      return "reg";
    case Space::param:
      return "param";
    case Space::global:
      return "global";
    case Space::shared:
      return "shared";
    case Space::local:
      return "local";
    case Space::constant:
      return "const";
  }
  return "";
}

unsigned size_of(Type type) {
  return row(type).size;
}
bool is_signed(Type type) {
  return row(type).is_signed;
}
bool is_float(Type type) {
  return row(type).is_float;
}

}  // namespace manyscale::ptx
