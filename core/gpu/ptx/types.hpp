// SPDX-License-Identifier: Apache-2.0
// The types and state spaces of the PTX language.
#pragma once
#include <cstdint>
#include <string_view>

namespace manyscale::ptx {

enum class Type : std::uint8_t {
  none,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  f16x2,
  bf16,
  bf16x2,
  tf32,
  f32,
  f64,
  pred,
  u16x2,
  s16x2,
  e4m3,
  e5m2,
  e4m3x2,
  e5m2x2,
  s4,
  u4,
  b1,
  texref,
  samplerref,
  surfref,
  f32x2,
};

// `generic` stands for an access without a space: the address says which memory it means.
enum class Space : std::uint8_t { generic, reg, param, global, shared, local, constant };

// The type with that name, without its dot ("u32"), or none.
Type type_named(std::string_view name);
std::string_view name_of(Type type);
std::string_view name_of(Space space);

// Bytes that a value of the type takes in memory; 0 for none, pred and types of less than a byte.
unsigned size_of(Type type);
bool is_signed(Type type);
bool is_float(Type type);  // any floating-point type, packed ones too

}  // namespace manyscale::ptx
