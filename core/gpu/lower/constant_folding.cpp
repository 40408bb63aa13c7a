// SPDX-License-Identifier: Apache-2.0
#include "gpu/lower/constant_folding.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>

namespace manyscale::gpu {

using ptx::Type;

namespace {

bool is_folded_type(Type type) {
  return type == Type::s32 || type == Type::u32 || type == Type::b32;
}

// A float as a word, towards zero; nothing for what does not fit.
std::optional<std::uint32_t> converted(std::uint32_t bits, Type to) {
  const float value = std::trunc(std::bit_cast<float>(bits));
  if (to == Type::s32 && value >= -2147483648.0F && value < 2147483648.0F)
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(value));
  if (to == Type::u32 && value >= 0.0F && value < 4294967296.0F) return static_cast<std::uint32_t>(value);
  return std::nullopt;
}

std::optional<std::uint32_t> computed(std::string_view name, bool is_signed, std::uint32_t a,
                                      std::uint32_t b) {
  const auto signed_a = static_cast<std::int32_t>(a);
  const auto signed_b = static_cast<std::int32_t>(b);
  if (name == "add") return a + b;
  if (name == "sub") return a - b;
  if (name == "and") return a & b;
  if (name == "or") return a | b;
  if (name == "xor") return a ^ b;
  if (name == "shl") return b > 31 ? 0 : a << b;
  if (name == "shr" && is_signed) return static_cast<std::uint32_t>(signed_a >> std::min(b, 31U));
  if (name == "shr") return b > 31 ? 0 : a >> b;
  if (name == "min")
    return is_signed ? static_cast<std::uint32_t>(std::min(signed_a, signed_b)) : std::min(a, b);
  if (name == "max")
    return is_signed ? static_cast<std::uint32_t>(std::max(signed_a, signed_b)) : std::max(a, b);
  return std::nullopt;
}

}  // namespace

std::optional<std::uint32_t> folded(const Values& values, std::uint32_t op) {
  if (!values.is_pure(op) || values.is_guarded(op)) return std::nullopt;
  const Sources from = values.sources(op);
  const auto is_number = [](const Source& source) {
    return source.kind == SourceKind::immediate && (source.value >> 32 == 0 || ~source.value >> 31 == 0);
  };
  if (from.count == 0 || !std::ranges::all_of(from.all(), is_number)) return std::nullopt;
  const auto a = static_cast<std::uint32_t>(from.list[0].value);
  const std::string_view name = values.opcode(op);
  const Type type = values.type(op);
  if (name == "cvt" && from.count == 1 && values.type(op, 1) == Type::f32 && values.has(op, "rzi"))
    return converted(a, type);
  if (!is_folded_type(type) || values.has(op, "cc") || values.has(op, "sat")) return std::nullopt;
  if (name == "mul" && from.count == 2 && values.has(op, "lo"))
    return a * static_cast<std::uint32_t>(from.list[1].value);
  return from.count == 2
             ? computed(name, type == Type::s32, a, static_cast<std::uint32_t>(from.list[1].value))
             : std::nullopt;
}

}  // namespace manyscale::gpu
