// SPDX-License-Identifier: Apache-2.0
// Differences and dot products of the bytes and halves of integers.
#include <string_view>
#include <vector>

#include "gpu/exec/instructions/integer_arithmetic.hpp"
#include "gpu/exec/sass/builder.hpp"

namespace manyscale::gpu {
namespace {

using I32 = std::int32_t;
using U32 = std::uint32_t;

template <class T>
void absolute_difference(Warp& warp, const Op& op) {
  const Words<false> a(warp, op, 0), b(warp, op, 1), c(warp, op, 2);
  for_words(warp, op.dst, [=](unsigned i) {
    const auto x = static_cast<T>(a[i]);
    const auto y = static_cast<T>(b[i]);
    return (x < y ? b[i] - a[i] : a[i] - b[i]) + c[i];
  });
}

template <class Part, bool accumulates>
void absolute_difference4(Warp& warp, const Op& op) {
  const Words<false> a(warp, op, 0), b(warp, op, 1), c(warp, op, 2);
  for_words(warp, op.dst, [=](unsigned i) {
    U32 result = accumulates ? c[i] : 0;
    for (unsigned k = 0; k < 4; ++k) {
      const I32 difference = integers::part_of<Part>(a[i], k) - integers::part_of<Part>(b[i], k);
      const U32 size = static_cast<U32>(difference < 0 ? -difference : difference);
      result += accumulates ? size : (size & 0xff) << (8 * k);
    }
    return result;
  });
}

void emit_three(MachineBuilder& builder, Handler handler, Class kind) {
  const Slot dst = builder.destination();
  std::array<Slot, 4> sources{kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  for (unsigned k = 0; k < 3; ++k)
    sources[k] = k < builder.values() ? builder.source(k) : builder.constant(0);
  Op& op = builder.emit(handler, kind);
  op.dst = dst;
  op.src = sources;
}

void decode_vabsdiff(MachineBuilder& builder) {
  const bool is_unsigned = builder.accept("U32");
  emit_three(builder, is_unsigned ? absolute_difference<U32> : absolute_difference<I32>, Class::integer);
}

void decode_vabsdiff4(MachineBuilder& builder) {
  const bool is_unsigned = builder.accept("U8");
  builder.accept("S8");
  const bool accumulates = builder.accept("ACC");
  emit_three(builder,
             is_unsigned ? (accumulates ? absolute_difference4<std::uint8_t, true>
                                        : absolute_difference4<std::uint8_t, false>)
                         : (accumulates ? absolute_difference4<std::int8_t, true>
                                        : absolute_difference4<std::int8_t, false>),
             Class::integer);
}

// Four bytes by four bytes, or two halves by two bytes of the second operand.
template <class A, class B, bool four, bool upper>
void dot(Warp& warp, const Op& op) {
  const Words<false> a(warp, op, 0), b(warp, op, 1), c(warp, op, 2);
  for_words(warp, op.dst, [=](unsigned i) {
    U32 sum = c[i];
    for (unsigned k = 0; k < (four ? 4 : 2); ++k)
      sum += static_cast<U32>(integers::part_of<A>(a[i], k)) *
             static_cast<U32>(integers::part_of<B>(b[i], k + (upper ? 2 : 0)));
    return sum;
  });
}

void decode_idp(MachineBuilder& builder) {
  const bool four = builder.accept("4A");
  const bool upper = !four && builder.accept("2A") ? builder.accept("HI") : builder.accept("HI");
  builder.ignore({"2A", "LO"});
  // The type of the first operand is named first.
  std::vector<bool> signs;
  for (sass::Modifier modifier : builder.instruction().modifiers) {
    const std::string_view word = sass::name_of(modifier);
    if (word == "U8" || word == "S8" || word == "U16" || word == "S16")
      signs.push_back(word.starts_with("S"));
  }
  builder.ignore({"U8", "S8", "U8", "S8", "U16", "S16"});
  if (signs.size() != 2) builder.unsupported("two types are needed");
  const auto choose = [&]<class A, class B>(A, B) -> Handler {
    if (four) return dot<A, B, true, false>;
    return upper ? dot<A, B, false, true> : dot<A, B, false, false>;
  };
  Handler handler = nullptr;
  if (four) {
    handler =
        signs[0]
            ? (signs[1] ? choose(std::int8_t{}, std::int8_t{}) : choose(std::int8_t{}, std::uint8_t{}))
            : (signs[1] ? choose(std::uint8_t{}, std::int8_t{}) : choose(std::uint8_t{}, std::uint8_t{}));
  } else {
    handler =
        signs[0]
            ? (signs[1] ? choose(std::int16_t{}, std::int8_t{}) : choose(std::int16_t{}, std::uint8_t{}))
            : (signs[1] ? choose(std::uint16_t{}, std::int8_t{}) : choose(std::uint16_t{}, std::uint8_t{}));
  }
  emit_three(builder, handler, Class::integer);
}

constexpr MachineOpcode kOpcodes[] = {
    {"VABSDIFF", decode_vabsdiff},
    {"VABSDIFF4", decode_vabsdiff4},
    {"IDP", decode_idp},
};

}  // namespace

std::span<const MachineOpcode> machine_integer_parts_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
