// SPDX-License-Identifier: Apache-2.0
// Sums, products and comparisons of integers; the uniform datapath's are the same.
#include "gpu/exec/instructions/integer_arithmetic.hpp"
#include "gpu/exec/sass/builder.hpp"

namespace manyscale::gpu {
namespace {

using I32 = std::int32_t;
using I64 = std::int64_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

constexpr I64 kModified = 0xffffff;

// A lane's bit of a mask as a number.
U32 bit(Mask mask, unsigned lane) {
  return mask >> lane & 1;
}

// --- IADD3

template <bool modified>
void add3(Warp& warp, const Op& op) {
  const Words<modified> a(warp, op, 0), b(warp, op, 1), c(warp, op, 2);
  for_words(warp, op.dst, [=](unsigned i) { return a[i] + b[i] + c[i]; });
}

void add2(Warp& warp, const Op& op) {
  const Words<false> a(warp, op, 0), b(warp, op, 1);
  for_words(warp, op.dst, [=](unsigned i) { return a[i] + b[i]; });
}

// With carries. A negated operand is its complement plus one, and the carry is that of all the sums. Which
// results are wanted is in the list: sum, first and second carry; then the carries that come in.
constexpr I64 kExtended = I64{1} << kFreeBits;

template <bool wide>
void add3_carry(Warp& warp, const Op& op) {
  const auto source = [&](unsigned k) { return warp.lanes<U32>(op.src[k]); };
  const U32 *a = source(0), *b = source(1), *c = source(2);
  U32 flip[3];
  U32 extra = 0;
  for (unsigned k = 0; k < 3; ++k) {
    const bool negated = (op.immediate & negated_bit(k)) != 0;
    flip[k] = negated || (op.immediate & inverted_bit(k)) != 0 ? ~U32{0} : 0;
    extra += negated;
  }
  Mask first = 0;
  Mask second = 0;
  if (op.immediate & kExtended) {
    first = condition(warp, warp.listed(op, 2), (op.immediate & kPredicateNegated) != 0);
    second = condition(warp, warp.listed(op, 3), (op.immediate & kOtherNegated) != 0);
  }
  alignas(64) std::array<U64, kLanes> sums;
  for (unsigned i = 0; i < kLanes; ++i)
    sums[i] =
        U64{a[i] ^ flip[0]} + (b[i] ^ flip[1]) + (c[i] ^ flip[2]) + extra + bit(first, i) + bit(second, i);
  for_words(warp, op.dst, [&](unsigned i) { return static_cast<U32>(sums[i]); });
  if constexpr (wide) {
    const Slot carry = warp.listed(op, 0);
    const Slot more = warp.listed(op, 1);
    if (carry != kNoSlot) set_predicate(warp, carry, ballot([&](unsigned i) { return sums[i] >> 32 != 0; }));
    if (more != kNoSlot) set_predicate(warp, more, ballot([&](unsigned i) { return sums[i] >> 33 != 0; }));
  }
}

// Sums of two halves each.
void add_halves(Warp& warp, const Op& op) {
  const Words<false> a(warp, op, 0), b(warp, op, 1);
  const U32 flip = op.immediate & negated_bit(1) ? ~U32{0} : 0;
  const U32 one = op.immediate & negated_bit(1) ? 1 : 0;
  for_words(warp, op.dst, [=](unsigned i) {
    const U32 other = b[i] ^ flip;
    const U32 low = (a[i] + other + one) & 0xffff;
    const U32 high = (a[i] >> 16) + (other >> 16) + one;
    return low | high << 16;
  });
}

void decode_add_halves(MachineBuilder& builder) {
  I64 modifiers = 0;
  const Slot dst = builder.destination();
  const Slot a = builder.source(0);
  const Slot b = builder.source(1, 1, &modifiers, 1);
  Op& op = builder.emit(add_halves, Class::integer);
  op.dst = dst;
  op.src = {a, b, kNoSlot, kNoSlot};
  op.immediate = modifiers;
}

void decode_iadd3(MachineBuilder& builder) {
  if (builder.accept("16x2")) return decode_add_halves(builder);
  const bool extended = builder.accept("X");
  I64 modifiers = 0;
  const Slot dst = builder.destination();
  std::array<Slot, 4> sources{kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  for (unsigned k = 0; k < 3; ++k)
    sources[k] = k < builder.values() ? builder.source(k, 1, &modifiers, k) : builder.constant(0);
  const Slot carry = builder.predicate_result(0);
  const Slot more = builder.predicate_result(1);
  const bool has_zero = builder.values() < 3 || (builder.value(2).kind == sass::OperandKind::general &&
                                                 builder.value(2).index == sass::kZeroRegister);
  if (!extended && carry == kNoSlot && more == kNoSlot) {
    Op& op = builder.emit(modifiers != 0 ? add3<true> : has_zero ? add2 : add3<false>, Class::integer);
    op.dst = dst;
    op.src = sources;
    op.immediate = modifiers;
    return;
  }
  Slot in = kNoSlot;
  Slot other = kNoSlot;
  if (extended) {
    modifiers |= kExtended;
    bool negated = false;
    in = builder.condition(0, negated, false);
    if (negated) modifiers |= kPredicateNegated;
    other = builder.condition(1, negated, false);
    if (negated) modifiers |= kOtherNegated;
  }
  const bool has_results = carry != kNoSlot || more != kNoSlot;
  Op& op = builder.emit(has_results ? add3_carry<true> : add3_carry<false>, Class::integer);
  op.dst = dst;
  op.src = sources;
  op.immediate = modifiers;
  op.aux = builder.list({carry, more, in, other});
}

// --- IMAD

enum class Part : std::uint8_t { low, wide, high };

void copy(Warp& warp, const Op& op) {
  const U32* from = warp.lanes<U32>(op.src[2]);
  for_words(warp, op.dst, [=](unsigned i) { return from[i]; });
}

template <bool modified>
void multiply_add(Warp& warp, const Op& op) {
  const Words<modified> a(warp, op, 0), b(warp, op, 1), c(warp, op, 2);
  for_words(warp, op.dst, [=](unsigned i) { return a[i] * b[i] + c[i]; });
}

void multiply_add_carry(Warp& warp, const Op& op) {
  const Words<true> a(warp, op, 0), b(warp, op, 1), c(warp, op, 2);
  const Mask carry = first_condition(warp, op);
  for_words(warp, op.dst, [=](unsigned i) { return a[i] * b[i] + c[i] + bit(carry, i); });
}

// The product of 64 bits plus a value of 64 bits, which may be negated (a third source's modifiers).
template <class T, bool modified>
class WideSum {
 public:
  WideSum(const Warp& warp, const Op& op) : a_(warp, op, 0), b_(warp, op, 1), c_(warp, op.src[2]) {
    if constexpr (modified) {
      const bool negated = (op.immediate & negated_bit(2)) != 0;
      flip_ = negated || (op.immediate & inverted_bit(2)) != 0 ? ~U64{0} : 0;
      add_ = negated ? 1 : 0;
    }
  }
  U64 product(unsigned i) const {
    return static_cast<U64>(integers::product(static_cast<T>(a_[i]), static_cast<T>(b_[i])));
  }
  U64 addend(unsigned i) const {
    if constexpr (modified) return (c_[i] ^ flip_) + add_;
    return c_[i];
  }

 private:
  Words<modified> a_;
  Words<modified> b_;
  Pairs c_;
  U64 flip_ = 0;
  U64 add_ = 0;
};

template <class T, bool modified>
void multiply_add_wide(Warp& warp, const Op& op) {
  const WideSum<T, modified> sum(warp, op);
  for_pairs(warp, op.dst, [=](unsigned i) { return sum.product(i) + sum.addend(i); });
}

template <class T, bool modified>
void multiply_add_high(Warp& warp, const Op& op) {
  const WideSum<T, modified> sum(warp, op);
  for_words(warp, op.dst, [=](unsigned i) { return (sum.product(i) + sum.addend(i)) >> 32; });
}

// The same with a carry that comes in or goes out.
template <class T, bool high>
void multiply_add_wide_carry(Warp& warp, const Op& op) {
  const WideSum<T, true> sum(warp, op);
  const Mask in = op.immediate & kExtended ? first_condition(warp, op) : 0;
  alignas(64) std::array<U64, kLanes> sums;
  Mask out = 0;
  for (unsigned i = 0; i < kLanes; ++i) {
    const U64 product = sum.product(i);
    const U64 partial = product + sum.addend(i);
    sums[i] = partial + bit(in, i);
    if (partial < product || sums[i] < partial) out |= Mask{1} << i;
  }
  if constexpr (high)
    for_words(warp, op.dst, [&](unsigned i) { return sums[i] >> 32; });
  else
    for_pairs(warp, op.dst, [&](unsigned i) { return sums[i]; });
  if (op.dst2 != kNoSlot) set_predicate(warp, op.dst2, out);
}

template <class T>
Handler choose_wide(Part part, bool modified, bool carries) {
  if (carries)
    return part == Part::high ? multiply_add_wide_carry<T, true> : multiply_add_wide_carry<T, false>;
  if (part == Part::high) return modified ? multiply_add_high<T, true> : multiply_add_high<T, false>;
  return modified ? multiply_add_wide<T, true> : multiply_add_wide<T, false>;
}

void decode_imad(MachineBuilder& builder) {
  const bool moves = builder.accept("MOV");
  builder.ignore({"IADD", "SHL"});  // what the product is used for
  const bool wide = builder.accept("WIDE");
  const Part part = wide ? Part::wide : builder.accept("HI") ? Part::high : Part::low;
  const bool is_unsigned = builder.accept("U32");
  const bool extended = builder.accept("X");
  I64 modifiers = 0;
  const Slot dst = builder.destination(0, part == Part::wide ? 2 : 1);
  const Slot a = builder.source(0, 1, &modifiers, 0);
  const Slot b = builder.source(1, 1, &modifiers, 1);
  const Slot c = builder.source(2, part == Part::low ? 1 : 2, &modifiers, 2);
  const Slot carry_out = builder.predicate_result(0);
  bool negated = false;
  const Slot carry_in = extended ? builder.condition(0, negated, false) : kNoSlot;
  const bool has_carry = extended || carry_out != kNoSlot;
  Handler handler = nullptr;
  if (part != Part::low)
    handler = is_unsigned ? choose_wide<U32>(part, modifiers != 0, has_carry)
                          : choose_wide<I32>(part, modifiers != 0, has_carry);
  else if (has_carry)
    handler = multiply_add_carry;
  else if (moves && modifiers == 0)
    handler = copy;
  else
    handler = modifiers != 0 ? multiply_add<true> : multiply_add<false>;
  if (part == Part::low && carry_out != kNoSlot) builder.unsupported("a carry of a product's lower half");
  Op& op = builder.emit(handler, moves ? Class::move : Class::multiply);
  op.dst = dst;
  op.dst2 = carry_out;
  op.src = {a, b, c, carry_in};
  op.immediate = modifiers | (extended ? kExtended : 0) | (negated ? kPredicateNegated : 0);
}

// --- LEA: an index times the size of an element plus an address

constexpr unsigned kShiftBits = kFreeBits + 8;

template <bool high, bool sign>
void lea(Warp& warp, const Op& op) {
  const Words<true> a(warp, op, 0), b(warp, op, 1);
  const U32* upper = warp.lanes<U32>(op.src[2]);
  const auto shift = static_cast<unsigned>(op.immediate >> kShiftBits) & 31;
  const Mask in = op.immediate & kExtended ? first_condition(warp, op) : 0;
  const bool negated = (op.immediate & negated_bit(0)) != 0;
  const bool inverted = (op.immediate & inverted_bit(0)) != 0;
  const U32* lower = warp.lanes<U32>(op.src[0]);
  alignas(64) std::array<U64, kLanes> sums;
  for (unsigned i = 0; i < kLanes; ++i) {
    U64 index = a[i];
    if constexpr (high) {
      index = sign ? static_cast<U64>(I64{static_cast<I32>(lower[i])}) : lower[i] | U64{upper[i]} << 32;
      if (negated) index = 0 - index;
      if (inverted) index = ~index;
      index = index << shift >> 32;
    } else if (negated) {  // inverted and one more, which carries if the index is 0
      index = U64{static_cast<U32>(~(lower[i] << shift))} + 1;
    } else {
      index = static_cast<U32>(index << shift);
    }
    sums[i] = index + b[i] + bit(in, i);
  }
  for_words(warp, op.dst, [&](unsigned i) { return sums[i]; });
  if (op.dst2 != kNoSlot)
    set_predicate(warp, op.dst2, ballot([&](unsigned i) { return sums[i] >> 32 != 0; }));
}

void lea_simple(Warp& warp, const Op& op) {
  const Words<false> a(warp, op, 0), b(warp, op, 1);
  const auto shift = static_cast<unsigned>(op.immediate >> kShiftBits) & 31;
  for_words(warp, op.dst, [=](unsigned i) { return (a[i] << shift) + b[i]; });
}

void decode_lea(MachineBuilder& builder) {
  const bool high = builder.accept("HI");
  const bool extended = builder.accept("X");
  const bool sign = builder.accept("SX32");
  I64 modifiers = 0;
  const Slot dst = builder.destination();
  const Slot a = builder.source(0, 1, &modifiers, 0);
  const Slot b = builder.source(1, 1, &modifiers, 1);
  const unsigned count = builder.values();
  if (count < 3) builder.unsupported("an operand is missing");
  const Slot upper = high && !sign && count > 3 ? builder.source(2) : builder.constant(0);
  const auto shift = builder.immediate(builder.value(count - 1)) & 31;
  const Slot out = builder.predicate_result(0);
  bool negated = false;
  const Slot in = extended ? builder.condition(0, negated, false) : kNoSlot;
  const bool simple = !high && modifiers == 0 && out == kNoSlot && !extended;
  Op& op = builder.emit(simple ? lea_simple
                        : high ? (sign ? lea<true, true> : lea<true, false>)
                               : lea<false, false>,
                        Class::integer);
  op.dst = dst;
  op.dst2 = out;
  op.src = {a, b, upper, in};
  op.immediate =
      modifiers | shift << kShiftBits | (extended ? kExtended : 0) | (negated ? kPredicateNegated : 0);
}

// --- Comparisons

enum Relation : std::uint8_t { never, less, equal, less_equal, greater, not_equal, greater_equal, always };

template <class T, Relation relation>
bool holds(T a, T b) {
  switch (relation) {
    case never:
      return false;
    case less:
      return a < b;
    case equal:
      return a == b;
    case less_equal:
      return a <= b;
    case greater:
      return a > b;
    case not_equal:
      return a != b;
    case greater_equal:
      return a >= b;
    default:
      return true;
  }
}

Mask combine(unsigned how, Mask a, Mask b) {
  return how == 0 ? a & b : how == 1 ? a | b : a ^ b;
}

constexpr unsigned kHowBits = kFreeBits + 4;

template <class T, Relation relation>
void compare(Warp& warp, const Op& op) {
  const auto* a = warp.lanes<T>(op.src[0]);
  const auto* b = warp.lanes<T>(op.src[1]);
  Mask result = ballot([=](unsigned i) { return holds<T, relation>(a[i], b[i]); });
  if (op.immediate & kExtended) {
    // Words above those that were compared before: these matter where the upper are equal.
    const Mask lower = second_condition(warp, op);
    const Mask same = ballot([=](unsigned i) { return a[i] == b[i]; });
    result = (same & lower) | (~same & result);
  }
  const Mask with = first_condition(warp, op);
  const auto how = static_cast<unsigned>(op.immediate >> kHowBits) & 3;
  if (op.dst2 != kNoSlot) {
    const Mask other = combine(how, ~result, with);
    if (op.dst != kNoSlot) set_predicate(warp, op.dst, combine(how, result, with));
    set_predicate(warp, op.dst2, other);
    return;
  }
  if (op.dst != kNoSlot) set_predicate(warp, op.dst, combine(how, result, with));
}

template <class T>
constexpr std::array<Handler, 8> kCompare{
    compare<T, never>,   compare<T, less>,      compare<T, equal>,         compare<T, less_equal>,
    compare<T, greater>, compare<T, not_equal>, compare<T, greater_equal>, compare<T, always>};

void decode_isetp(MachineBuilder& builder) {
  const int relation = builder.accept_one_of({"F", "LT", "EQ", "LE", "GT", "NE", "GE", "T"});
  if (relation < 0) builder.unsupported("no such comparison");
  const bool is_unsigned = builder.accept("U32");
  const bool extended = builder.accept("EX");
  const int how = builder.accept_one_of({"AND", "OR", "XOR"});
  const Slot a = builder.source(0);
  const Slot b = builder.source(1);
  bool negated = false;
  const Slot with = builder.condition(0, negated);
  I64 bits = negated ? kPredicateNegated : 0;
  Slot lower = kNoSlot;
  if (extended) {
    lower = builder.condition(1, negated, false);
    bits |= kExtended | (negated ? kOtherNegated : 0);
  }
  Op& op = builder.emit(is_unsigned ? kCompare<U32>[relation] : kCompare<I32>[relation], Class::compare);
  op.dst = builder.predicate_result(0);
  op.dst2 = builder.predicate_result(1);
  op.src = {a, b, kNoSlot, with};
  op.aux = lower;
  op.immediate = bits | I64{std::max(how, 0)} << kHowBits;
}

void magnitude(Warp& warp, const Op& op) {
  const U32* a = warp.lanes<U32>(op.src[0]);
  for_words(warp, op.dst, [=](unsigned i) { return static_cast<I32>(a[i]) < 0 ? 0 - a[i] : a[i]; });
}

void decode_iabs(MachineBuilder& builder) {
  const Slot dst = builder.destination();
  const Slot a = builder.source(0);
  Op& op = builder.emit(magnitude, Class::integer);
  op.dst = dst;
  op.src[0] = a;
}

constexpr MachineOpcode kOpcodes[] = {
    {"IADD3", decode_iadd3}, {"UIADD3", decode_iadd3}, {"IADD", decode_iadd3}, {"VIADD", decode_iadd3},
    {"IMAD", decode_imad},   {"UIMAD", decode_imad},   {"LEA", decode_lea},    {"ULEA", decode_lea},
    {"ISETP", decode_isetp}, {"UISETP", decode_isetp},

    {"IABS", decode_iabs},

};

}  // namespace

std::span<const MachineOpcode> machine_integer_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
