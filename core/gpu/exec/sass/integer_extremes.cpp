// SPDX-License-Identifier: Apache-2.0
// The smaller or the larger of integers.
#include <algorithm>
#include <type_traits>

#include "gpu/exec/instructions/integer_arithmetic.hpp"
#include "gpu/exec/sass/builder.hpp"

namespace manyscale::gpu {
namespace {

using I32 = std::int32_t;
using I64 = std::int64_t;
using U32 = std::uint32_t;

constexpr I64 kAtLeastZero = I64{1} << kFreeBits;

bool bit(Mask mask, unsigned lane) {
  return (mask >> lane & 1) != 0;
}

template <class T>
void extreme(Warp& warp, const Op& op) {
  const Words<true> a(warp, op, 0), b(warp, op, 1);
  const Mask smaller = first_condition(warp, op);
  for_words(warp, op.dst, [=](unsigned i) {
    const auto x = static_cast<T>(a[i]);
    const auto y = static_cast<T>(b[i]);
    return static_cast<U32>((x < y) == (bit(smaller, i)) ? x : y);
  });
}

template <class T>
void extreme_halves(Warp& warp, const Op& op) {
  const Words<false> a(warp, op, 0), b(warp, op, 1);
  const Mask smaller = first_condition(warp, op);
  for_words(warp, op.dst, [=](unsigned i) {
    const bool least = bit(smaller, i);
    return integers::by_halves<T>(a[i], b[i], [=](T x, T y) { return (x < y) == least ? x : y; });
  });
}

// Nothing below zero.
template <Handler choose, class Part>
void extreme_or_zero(Warp& warp, const Op& op) {
  choose(warp, op);
  U32* result = warp.lanes<U32>(op.dst);
  for_each_active(warp.mask, [=](unsigned i) {
    constexpr U32 kSign = U32{1} << (8 * sizeof(Part) - 1);
    for (unsigned at = 0; at < 32; at += 8 * sizeof(Part))
      if ((result[i] >> at & kSign) != 0)
        result[i] &= ~(static_cast<U32>(static_cast<std::make_unsigned_t<Part>>(-1)) << at);
  });
}

// VIMNMX3: the smallest or the largest of three.
template <class T>
void extreme_of_three(Warp& warp, const Op& op) {
  const Words<false> a(warp, op, 0), b(warp, op, 1), c(warp, op, 2);
  const Mask smaller = first_condition(warp, op);
  for_words(warp, op.dst, [=](unsigned i) {
    const auto x = static_cast<T>(a[i]);
    const auto y = static_cast<T>(b[i]);
    const auto z = static_cast<T>(c[i]);
    return (smaller >> i & 1) != 0 ? std::min(std::min(x, y), z) : std::max(std::max(x, y), z);
  });
}

template <class T>
void extreme_halves_of_three(Warp& warp, const Op& op) {
  const Words<false> a(warp, op, 0), b(warp, op, 1), c(warp, op, 2);
  const Mask smaller = first_condition(warp, op);
  for_words(warp, op.dst, [=](unsigned i) {
    const auto chosen = [&](unsigned shift) {
      const auto x = static_cast<T>(a[i] >> shift);
      const auto y = static_cast<T>(b[i] >> shift);
      const auto z = static_cast<T>(c[i] >> shift);
      const T found = (smaller >> i & 1) != 0 ? std::min({x, y, z}) : std::max({x, y, z});
      return U32{static_cast<std::uint16_t>(found)} << shift;
    };
    return chosen(0) | chosen(16);
  });
}

void decode_extreme_of_three(MachineBuilder& builder) {
  const int halves = builder.accept_one_of({"S16x2", "U16x2"});
  const bool is_unsigned = builder.accept("U32");
  const bool positive = builder.accept("RELU");
  const Slot dst = builder.destination();
  const Slot a = builder.source(0);
  const Slot b = builder.source(1);
  const Slot c = builder.source(2);
  bool negated = false;
  const Slot smaller = builder.condition(0, negated);
  using I16 = std::int16_t;
  Handler handler = halves == 0   ? extreme_halves_of_three<I16>
                    : halves == 1 ? extreme_halves_of_three<std::uint16_t>
                    : is_unsigned ? extreme_of_three<U32>
                                  : extreme_of_three<I32>;
  if (positive && !is_unsigned && halves != 1)
    handler = halves == 0 ? extreme_or_zero<extreme_halves_of_three<I16>, I16>
                          : extreme_or_zero<extreme_of_three<I32>, I32>;
  Op& op = builder.emit(handler, Class::integer);
  op.dst = dst;
  op.src = {a, b, c, smaller};
  op.immediate = negated ? kPredicateNegated : 0;
}

void decode_imnmx(MachineBuilder& builder) {
  const bool positive = builder.accept("RELU");
  const int halves = builder.accept_one_of({"S16x2", "U16x2"});
  const bool is_unsigned = builder.accept("U32");
  I64 modifiers = 0;
  const Slot dst = builder.destination();
  const Slot a = builder.source(0, 1, &modifiers, 0);
  const Slot b = builder.source(1, 1, &modifiers, 1);
  bool negated = false;
  const Slot smaller = builder.condition(0, negated);
  if (halves >= 0 && modifiers != 0) builder.unsupported("negated halves");
  if (positive && (is_unsigned || halves == 1)) builder.unsupported(".RELU of numbers without a sign");
  Handler handler = halves == 0   ? extreme_halves<std::int16_t>
                    : halves == 1 ? extreme_halves<std::uint16_t>
                    : is_unsigned ? extreme<U32>
                                  : extreme<I32>;
  if (positive)
    handler = halves == 0 ? extreme_or_zero<extreme_halves<std::int16_t>, std::int16_t>
                          : extreme_or_zero<extreme<I32>, I32>;
  Op& op = builder.emit(handler, Class::integer);
  op.dst = dst;
  op.src = {a, b, kNoSlot, smaller};
  op.immediate = modifiers | (negated ? kPredicateNegated : 0);
}

// (a + b) and then the smaller or larger of that and c; relu: at least zero.
template <class T>
void add_extreme(Warp& warp, const Op& op) {
  const Words<true> a(warp, op, 0), b(warp, op, 1), c(warp, op, 2);
  const Mask smaller = first_condition(warp, op);
  const bool relu = (op.immediate & kAtLeastZero) != 0;
  for_words(warp, op.dst, [=](unsigned i) {
    const auto x = static_cast<T>(a[i] + b[i]);
    const auto y = static_cast<T>(c[i]);
    const T chosen = (x < y) == (bit(smaller, i)) ? x : y;
    return static_cast<U32>(relu && chosen < T{0} ? T{0} : chosen);
  });
}

template <class T>
void add_extreme_halves(Warp& warp, const Op& op) {
  const Words<false> a(warp, op, 0), b(warp, op, 1), c(warp, op, 2);
  const Mask smaller = first_condition(warp, op);
  const bool relu = (op.immediate & kAtLeastZero) != 0;
  for_words(warp, op.dst, [=](unsigned i) {
    const bool least = bit(smaller, i);
    const U32 sum = integers::by_halves<T>(a[i], b[i], [](T x, T y) { return static_cast<T>(x + y); });
    return integers::by_halves<T>(sum, c[i], [=](T x, T y) {
      const T chosen = (x < y) == least ? x : y;
      return relu && chosen < T{0} ? T{0} : chosen;
    });
  });
}

void decode_viaddmnmx(MachineBuilder& builder) {
  const int halves = builder.accept_one_of({"S16x2", "U16x2"});
  const bool is_unsigned = builder.accept("U32");
  const bool relu = builder.accept("RELU");
  I64 modifiers = 0;
  const Slot dst = builder.destination();
  const Slot a = builder.source(0, 1, &modifiers, 0);
  const Slot b = builder.source(1, 1, &modifiers, 1);
  const Slot c = builder.source(2, 1, &modifiers, 2);
  bool negated = false;
  const Slot smaller = builder.condition(0, negated);
  if (halves >= 0 && modifiers != 0) builder.unsupported("negated halves");
  Op& op = builder.emit(halves == 0   ? add_extreme_halves<std::int16_t>
                        : halves == 1 ? add_extreme_halves<std::uint16_t>
                        : is_unsigned ? add_extreme<U32>
                                      : add_extreme<I32>,
                        Class::integer);
  op.dst = dst;
  op.src = {a, b, c, smaller};
  op.immediate = modifiers | (relu ? kAtLeastZero : 0) | (negated ? kPredicateNegated : 0);
}

constexpr MachineOpcode kOpcodes[] = {
    {"IMNMX", decode_imnmx},         {"UIMNMX", decode_imnmx},
    {"VIMNMX", decode_imnmx},        {"VIMNMX3", decode_extreme_of_three},
    {"VIADDMNMX", decode_viaddmnmx},
};

}  // namespace

std::span<const MachineOpcode> machine_integer_extremes_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
