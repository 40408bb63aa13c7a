// SPDX-License-Identifier: Apache-2.0
// Comparison and selection.
#include <array>
#include <type_traits>

#include "gpu/exec/instructions/plain.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/numerics/flush.hpp"
#include "gpu/exec/numerics/ordering.hpp"
#include "gpu/exec/opcodes.hpp"

namespace manyscale::gpu {
namespace {

using ptx::Operand;
using ptx::OperandKind;
using ptx::Type;

// --- What is compared -------------------------------------------------------------------------------------

// Every comparison is one of eq, ne, lt, le and num, of operands in this or the other order, or its opposite.
// `ne` means that both operands are numbers, so that the opposite of `eq` is `neu`.
struct Form {
  std::string_view name;
  Comparison relation;
  bool swapped;
  bool inverted;
};

constexpr Form kForms[] = {
    {"eq", Comparison::eq, false, false},
    {"ne", Comparison::ne, false, false},
    {"lt", Comparison::lt, false, false},
    {"le", Comparison::le, false, false},
    {"gt", Comparison::lt, true, false},
    {"ge", Comparison::le, true, false},
    // Of unsigned integers only.
    {"lo", Comparison::lt, false, false},
    {"ls", Comparison::le, false, false},
    {"hi", Comparison::lt, true, false},
    {"hs", Comparison::le, true, false},
    // Of floats only; these hold if an operand is NaN.
    {"equ", Comparison::ne, false, true},
    {"neu", Comparison::eq, false, true},
    {"ltu", Comparison::le, true, true},
    {"leu", Comparison::lt, true, true},
    {"gtu", Comparison::le, false, true},
    {"geu", Comparison::lt, false, true},
    {"num", Comparison::num, false, false},
    {"nan", Comparison::num, false, true},
};
constexpr unsigned kFirstUnsigned = 6;
constexpr unsigned kFirstUnordered = 10;

Form accept_form(Builder& builder, Type type) {
  for (unsigned i = 0; i < std::size(kForms); ++i) {
    if (!builder.accept(kForms[i].name)) continue;
    const bool is_bits = type == Type::b16 || type == Type::b32 || type == Type::b64;
    const bool is_unsigned = !is_bits && !ptx::is_float(type) && !ptx::is_signed(type);
    const bool fits = i < 2                 ? true
                      : i < kFirstUnsigned  ? !is_bits
                      : i < kFirstUnordered ? is_unsigned
                                            : ptx::is_float(type);
    if (!fits)
      builder.unsupported("comparison ." + std::string(kForms[i].name) + " is not defined for this type");
    return kForms[i];
  }
  builder.unsupported("it does not say which comparison");
}

// A half as an integer that orders as the numbers do. Vector instructions for these are found more often than
// those that convert halves.
template <class T>
std::int16_t order_with_one_zero(T value) {
  const auto magnitude = static_cast<std::int16_t>(magnitude_bits(value));
  return static_cast<std::int16_t>(is_negative(value) ? -magnitude : magnitude);
}

template <class T, Comparison C, bool ftz>
bool related(T a, T b) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    return compare<C>(flush_if<ftz>(a), flush_if<ftz>(b));
  } else if constexpr (!std::is_integral_v<T>) {
    const bool ordered = !is_nan(a) & !is_nan(b);
    if constexpr (C == Comparison::num)
      return ordered;
    else
      return ordered & related<std::int16_t, C, false>(order_with_one_zero(flush_if<ftz>(a)),
                                                       order_with_one_zero(flush_if<ftz>(b)));
  } else if constexpr (C == Comparison::eq) {
    return a == b;
  } else if constexpr (C == Comparison::ne) {
    return a != b;
  } else if constexpr (C == Comparison::lt) {
    return a < b;
  } else {
    static_assert(C == Comparison::le);
    return a <= b;
  }
}

// The lanes whose operands are so related.
template <class T, Comparison C, bool ftz>
Mask relation(const Warp& warp, const Op& op) {
  const T* a = warp.lanes<T>(op.src[0]);
  const T* b = warp.lanes<T>(op.src[1]);
  return ballot([=](unsigned i) { return related<T, C, ftz>(a[i], b[i]); });
}

// The same for the half of packed operands that begins at bit `shift`.
template <class T, Comparison C, bool ftz, unsigned shift>
Mask half_relation(const Warp& warp, const Op& op) {
  const std::uint32_t* a = warp.lanes<std::uint32_t>(op.src[0]);
  const std::uint32_t* b = warp.lanes<std::uint32_t>(op.src[1]);
  return ballot([=](unsigned i) {
    return related<T, C, ftz>(from_bits<T>(static_cast<std::uint16_t>(a[i] >> shift)),
                              from_bits<T>(static_cast<std::uint16_t>(b[i] >> shift)));
  });
}

// --- What becomes of it -----------------------------------------------------------------------------------

// Op::flags. Without a flag besides kInverted, the result is a single predicate.
constexpr std::uint8_t kInverted = 1;
constexpr std::uint8_t kAnd = 2;
constexpr std::uint8_t kOr = 4;
constexpr std::uint8_t kXor = 6;
constexpr std::uint8_t kCombination = 6;
constexpr std::uint8_t kNegated = 8;     // the predicate that it is combined with
constexpr std::uint8_t kHasSecond = 16;  // p|q

Mask inversion(const Op& op) {
  return 0 - Mask{op.flags & kInverted ? 1U : 0U};
}

// The result of a comparison, combined with the predicate in src[2].
Mask combined(const Warp& warp, const Op& op, Mask result) {
  if ((op.flags & kCombination) == 0) return result;
  const Mask other = warp.predicate(op.src[2]) ^ (op.flags & kNegated ? kAllLanes : 0);
  switch (op.flags & kCombination) {
    case kAnd:
      return result & other;
    case kOr:
      return result | other;
    default:
      return result ^ other;
  }
}

void write_predicates(Warp& warp, const Op& op, Mask first, Mask second) {
  const Mask p = combined(warp, op, first);
  const Mask q = combined(warp, op, second);
  set_predicate(warp, op.dst, p);
  if (op.flags & kHasSecond) set_predicate(warp, op.dst2, q);
}

struct Setp {
  template <class T, Comparison C, bool ftz>
  static void run(Warp& warp, const Op& op) {
    const Mask result = relation<T, C, ftz>(warp, op) ^ inversion(op);
    if ((op.flags & ~kInverted) == 0) return set_predicate(warp, op.dst, result);
    write_predicates(warp, op, result, ~result);
  }
};

// Of packed halves: one predicate for each.
struct SetpHalves {
  template <class T, Comparison C, bool ftz>
  static void run(Warp& warp, const Op& op) {
    const Mask low = half_relation<T, C, ftz, 0>(warp, op);
    const Mask high = half_relation<T, C, ftz, 16>(warp, op);
    write_predicates(warp, op, low ^ inversion(op), high ^ inversion(op));
  }
};

template <class T>
void write_values(Warp& warp, const Op& op, Mask result) {
  const T value = static_cast<T>(op.immediate);
  for_lanes(warp, warp.lanes<T>(op.dst), [=](unsigned i) { return result & (Mask{1} << i) ? value : T{0}; });
}

// Writes op.immediate where the comparison holds and zero elsewhere.
struct Set {
  template <class T, Comparison C, bool ftz>
  static void run(Warp& warp, const Op& op) {
    const Mask result = combined(warp, op, relation<T, C, ftz>(warp, op) ^ inversion(op));
    op.bytes == 2 ? write_values<std::uint16_t>(warp, op, result)
                  : write_values<std::uint32_t>(warp, op, result);
  }
};

struct SetHalves {
  template <class T, Comparison C, bool ftz>
  static void run(Warp& warp, const Op& op) {
    const Mask low = combined(warp, op, half_relation<T, C, ftz, 0>(warp, op) ^ inversion(op));
    const Mask high = combined(warp, op, half_relation<T, C, ftz, 16>(warp, op) ^ inversion(op));
    const auto value = static_cast<std::uint32_t>(op.immediate);
    for_lanes(warp, warp.lanes<std::uint32_t>(op.dst),
              [=](unsigned i) { return (low >> i & 1 ? value : 0) | (high >> i & 1 ? value << 16 : 0); });
  }
};

// --- Choice of a handler ----------------------------------------------------------------------------------

template <class Result, class T, bool ftz = false>
Handler by_relation(Comparison relation) {
  if constexpr (!std::is_integral_v<T>) {
    if (relation == Comparison::num) return Result::template run<T, Comparison::num, ftz>;
  }
  // Whether integers are equal does not depend on their sign.
  using Bits =
      typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
  switch (relation) {
    case Comparison::eq:
      return Result::template run<Bits, Comparison::eq, ftz>;
    case Comparison::ne:
      return Result::template run<Bits, Comparison::ne, ftz>;
    case Comparison::lt:
      return Result::template run<T, Comparison::lt, ftz>;
    default:
      return Result::template run<T, Comparison::le, ftz>;
  }
}

template <class Whole, class Halves>
Handler by_type(Builder& builder, Type type, Comparison relation) {
  switch (type) {
    case Type::f32:
      return builder.accept("ftz") ? by_relation<Whole, float, true>(relation)
                                   : by_relation<Whole, float>(relation);
    case Type::f64:
      return by_relation<Whole, double>(relation);
    case Type::f16:
      return builder.accept("ftz") ? by_relation<Whole, F16, true>(relation)
                                   : by_relation<Whole, F16>(relation);
    case Type::f16x2:
      return builder.accept("ftz") ? by_relation<Halves, F16, true>(relation)
                                   : by_relation<Halves, F16>(relation);
    case Type::bf16:
      return by_relation<Whole, Bf16>(relation);
    case Type::bf16x2:
      return by_relation<Halves, Bf16>(relation);
    default:
      return for_integer(builder, type,
                         [relation]<class T>(T) -> Handler { return by_relation<Whole, T>(relation); });
  }
}

bool is_packed(Type type) {
  return type == Type::f16x2 || type == Type::bf16x2;
}

// The operands and flags that set and setp have in common.
struct Comparands {
  std::array<Slot, 4> sources;
  std::uint8_t flags;
};

Comparands comparands(Builder& builder, Type type, const Form& form) {
  const int combination = builder.accept_one_of({"and", "or", "xor"});
  builder.expect_operands(combination < 0 ? 3 : 4);
  Comparands result{{kNoSlot, kNoSlot, kNoSlot, kNoSlot}, 0};
  result.sources[form.swapped ? 1 : 0] = builder.source(1, type);
  result.sources[form.swapped ? 0 : 1] = builder.source(2, type);
  if (form.inverted) result.flags |= kInverted;
  if (combination >= 0) {
    constexpr std::uint8_t kCombinations[] = {kAnd, kOr, kXor};
    bool negated = false;
    result.sources[2] = builder.predicate_source(builder.operand(3), &negated);
    result.flags |= kCombinations[combination];
    if (negated) result.flags |= kNegated;
  }
  return result;
}

void decode_setp(Builder& builder) {
  const Type type = builder.type();
  const Form form = accept_form(builder, type);
  const Handler handler = by_type<Setp, SetpHalves>(builder, type, form.relation);
  const Comparands from = comparands(builder, type, form);
  const Operand& results = builder.operand(0);
  const bool is_pair = results.kind == OperandKind::pair;
  const Slot p = builder.predicate_destination(is_pair ? builder.children(results)[0] : results);
  const Slot q = is_pair ? builder.predicate_destination(builder.children(results)[1]) : kNoSlot;
  Op& op = builder.emit(handler, Class::compare);
  op.dst = p;
  op.dst2 = q;
  op.src = from.sources;
  op.flags = from.flags | (is_pair ? kHasSecond : 0);
}

// What `set` writes for true: one as a float, or all ones, in each half of packed types.
std::uint32_t true_value(const Builder& builder, Type result, Type compared) {
  switch (result) {
    case Type::f32:
      return one_bits<float>;
    case Type::f16:
    case Type::f16x2:
      return one_bits<F16>;
    case Type::bf16:
    case Type::bf16x2:
      return one_bits<Bf16>;
    case Type::u16:
    case Type::s16:
      return 0xffff;
    case Type::u32:
    case Type::s32:
      return is_packed(compared) ? 0xffff : 0xffffffff;
    default:
      builder.unsupported("it cannot write this type");
  }
}

void decode_set(Builder& builder) {
  const Type result = builder.type();
  const Type type = builder.type();
  const Form form = accept_form(builder, type);
  const Handler handler = by_type<Set, SetHalves>(builder, type, form.relation);
  const std::uint32_t value = true_value(builder, result, type);
  const unsigned bytes = ptx::size_of(result);
  if (is_packed(type) ? bytes != 4 : is_packed(result)) builder.unsupported("it cannot write this type");
  const Comparands from = comparands(builder, type, form);
  const Slot dst = builder.destination(0, result);
  Op& op = builder.emit(handler, Class::compare);
  op.dst = dst;
  op.src = from.sources;
  op.flags = from.flags;
  op.immediate = value;
  op.bytes = static_cast<std::uint8_t>(bytes);
}

// --- Selection --------------------------------------------------------------------------------------------

template <class T>
void selp(Warp& warp, const Op& op) {
  const T* a = warp.lanes<T>(op.src[0]);
  const T* b = warp.lanes<T>(op.src[1]);
  const Mask first = warp.predicate(op.src[2]);
  for_lanes(warp, warp.lanes<T>(op.dst), [=](unsigned i) {
    const T x = a[i], y = b[i];
    return first & (Mask{1} << i) ? x : y;
  });
}

void decode_selp(Builder& builder) {
  builder.expect_operands(4);
  const Type type = builder.type();
  const Handler handler = for_size(builder, type, []<class T>(T) -> Handler { return selp<T>; });
  const Slot dst = builder.destination(0, type);
  const Slot a = builder.source(1, type), b = builder.source(2, type);
  bool negated = false;
  const Slot first = builder.predicate_source(builder.operand(3), &negated);
  Op& op = builder.emit(handler, Class::compare);
  op.dst = dst;
  op.src = {negated ? b : a, negated ? a : b, first, kNoSlot};
}

// a where c is not negative (nor NaN), b elsewhere.
template <class T, class C, bool ftz = false>
void slct(Warp& warp, const Op& op) {
  map3<T, T, T, C>(warp, op, [](T a, T b, C c) {
    if constexpr (std::is_floating_point_v<C>) c = flush_if<ftz>(c);
    return c >= C{0} ? a : b;
  });
}

void decode_slct(Builder& builder) {
  builder.expect_operands(4);
  const Type type = builder.type();
  const Type by = builder.type();
  if (by != Type::s32 && by != Type::f32) builder.unsupported("it chooses by an .s32 or an .f32");
  const bool ftz = by == Type::f32 && builder.accept("ftz");
  const Handler handler = for_size(builder, type, [=]<class T>(T) -> Handler {
    if (by == Type::s32) return slct<T, std::int32_t>;
    return ftz ? slct<T, float, true> : slct<T, float>;
  });
  const Slot dst = builder.destination(0, type);
  const Slot a = builder.source(1, type), b = builder.source(2, type), c = builder.source(3, by);
  Op& op = builder.emit(handler, Class::compare);
  op.dst = dst;
  op.src = {a, b, c, kNoSlot};
}

constexpr Opcode kOpcodes[] = {
    {"setp", decode_setp},
    {"set", decode_set},
    {"selp", decode_selp},
    {"slct", decode_slct},
};

}  // namespace

std::span<const Opcode> compare_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
