// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic. Everything wraps around unless `.sat` is given.
#include <type_traits>

#include "gpu/exec/instructions/integer_arithmetic.hpp"
#include "gpu/exec/instructions/packed_integer.hpp"
#include "gpu/exec/instructions/plain.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/opcodes.hpp"

namespace manyscale::gpu {
namespace {

using namespace integers;
using ptx::Type;

// --- Carry chains -----------------------------------------------------------------------------------------

constexpr std::uint8_t kReadsCarry = 1;
constexpr std::uint8_t kWritesCarry = 2;

enum class Chain { add, sub, mad_lo, mad_hi };

// Addition and subtraction with the carry flag, which after a subtraction says whether there was a borrow.
template <class T, Chain kind>
void chained(Warp& warp, const Op& op) {
  using U = std::make_unsigned_t<T>;
  constexpr bool multiplies = kind == Chain::mad_lo || kind == Chain::mad_hi;
  const T* a = warp.lanes<T>(op.src[0]);
  const T* b = warp.lanes<T>(op.src[1]);
  const U* c = warp.lanes<U>(op.src[multiplies ? 2 : 1]);
  const Mask carry = op.flags & kReadsCarry ? warp.carry : 0;
  alignas(32) U results[kLanes];
  alignas(32) U carries[kLanes];  // in the highest bit
  for (unsigned i = 0; i < kLanes; ++i) {
    const U y = c[i];
    const U in = (carry >> i) & 1;
    if constexpr (kind == Chain::sub) {
      const U x = static_cast<U>(a[i]);
      const U result = x - y - in;
      results[i] = result;
      carries[i] = (~x & y) | ((~x | y) & result);
    } else {
      U x;
      if constexpr (kind == Chain::mad_lo) {
        x = low(a[i], b[i]);
      } else if constexpr (kind == Chain::mad_hi) {
        x = high(a[i], b[i]);
      } else {
        x = static_cast<U>(a[i]);
      }
      const U result = x + y + in;
      results[i] = result;
      carries[i] = (x & y) | ((x | y) & ~result);
    }
  }
  for_lanes(warp, warp.lanes<U>(op.dst), [&](unsigned i) { return results[i]; });
  if (op.flags & kWritesCarry) {
    const Mask out = ballot([&](unsigned i) { return static_cast<std::make_signed_t<T>>(carries[i]) < 0; });
    warp.carry = (warp.carry & ~warp.mask) | (out & warp.mask);
  }
}

template <Chain kind>
void decode_chain(Builder& builder, Type type, bool reads, bool writes) {
  constexpr bool multiplies = kind == Chain::mad_lo || kind == Chain::mad_hi;
  const Handler handler = for_word(builder, type, []<class T>(T) -> Handler {
    // Only the upper half of a product depends on signs.
    return chained<std::conditional_t<kind == Chain::mad_hi, T, std::make_unsigned_t<T>>, kind>;
  });
  const Slot dst = builder.destination(0, type);
  const Slot a = builder.source(1, type);
  const Slot b = builder.source(2, type);
  const Slot c = multiplies ? builder.source(3, type) : kNoSlot;
  Op& op = builder.emit(handler, multiplies ? Class::multiply : Class::integer);
  op.dst = dst;
  op.src = {a, b, c, kNoSlot};
  op.flags = static_cast<std::uint8_t>((reads ? kReadsCarry : 0) | (writes ? kWritesCarry : 0));
}

// --- Sums -------------------------------------------------------------------------------------------------

template <class T>
void add(Warp& warp, const Op& op) {
  map2<T, T, T>(warp, op, [](T a, T b) { return a + b; });
}

template <class T>
void sub(Warp& warp, const Op& op) {
  map2<T, T, T>(warp, op, [](T a, T b) { return a - b; });
}

void add_saturating(Warp& warp, const Op& op) {
  map2<std::int32_t, std::int32_t, std::int32_t>(warp, op, saturating_sum);
}

void sub_saturating(Warp& warp, const Op& op) {
  map2<std::int32_t, std::int32_t, std::int32_t>(warp, op, saturating_difference);
}

void add_halves(Warp& warp, const Op& op) {
  map2<std::uint32_t, std::uint32_t, std::uint32_t>(warp, op, [](std::uint32_t a, std::uint32_t b) {
    constexpr std::uint32_t kTops = 0x80008000;
    return ((a & ~kTops) + (b & ~kTops)) ^ ((a ^ b) & kTops);
  });
}

void decode_add(Builder& builder) {
  builder.expect_operands(3);
  const Type type = builder.type();
  if (builder.accept("cc")) return decode_chain<Chain::add>(builder, type, false, true);
  Handler handler = nullptr;
  if (type == Type::u16x2 || type == Type::s16x2) {
    handler = add_halves;
  } else if (type == Type::s32 && builder.accept("sat")) {
    handler = add_saturating;
  } else {
    handler = for_size(builder, type, []<class T>(T) -> Handler { return add<T>; });
  }
  emit_plain(builder, handler, Class::integer, type, {type, type});
}

void decode_sub(Builder& builder) {
  builder.expect_operands(3);
  const Type type = builder.type();
  if (builder.accept("cc")) return decode_chain<Chain::sub>(builder, type, false, true);
  const Handler handler = type == Type::s32 && builder.accept("sat")
                              ? sub_saturating
                              : for_size(builder, type, []<class T>(T) -> Handler { return sub<T>; });
  emit_plain(builder, handler, Class::integer, type, {type, type});
}

template <Chain kind>
void decode_with_carry(Builder& builder) {
  builder.expect_operands(3);
  const Type type = builder.type();
  const bool writes = builder.accept("cc");
  decode_chain<kind>(builder, type, true, writes);
}

// --- Products ---------------------------------------------------------------------------------------------

template <class T>
void mul_lo(Warp& warp, const Op& op) {
  map2<T, T, T>(warp, op, low<T>);
}

template <class T>
void mul_hi(Warp& warp, const Op& op) {
  map2<std::make_unsigned_t<T>, T, T>(warp, op, high<T>);
}

template <class T>
void mul_wide(Warp& warp, const Op& op) {
  map2<typename Twice<T>::type, T, T>(warp, op, product<T>);
}

template <class T>
void mad_lo(Warp& warp, const Op& op) {
  map3<T, T, T, T>(warp, op, [](T a, T b, T c) { return low(a, b) + c; });
}

template <class T>
void mad_hi(Warp& warp, const Op& op) {
  using U = std::make_unsigned_t<T>;
  map3<U, T, T, U>(warp, op, [](T a, T b, U c) { return high(a, b) + c; });
}

template <class T>
void mad_wide(Warp& warp, const Op& op) {
  using U = std::make_unsigned_t<typename Twice<T>::type>;
  map3<U, T, T, U>(warp, op, [](T a, T b, U c) { return static_cast<U>(product(a, b)) + c; });
}

void mad_hi_saturating(Warp& warp, const Op& op) {
  using T = std::int32_t;
  map3<T, T, T, T>(warp, op, [](T a, T b, T c) { return saturating_sum(static_cast<T>(high(a, b)), c); });
}

enum class Part { none = -1, lo, hi, wide };

Part accept_part(Builder& builder) {
  const int part = builder.accept_one_of({"lo", "hi", "wide"});
  if (part < 0) builder.unsupported("needs .lo, .hi or .wide");
  return static_cast<Part>(part);
}

// The type of a whole product.
Type wide(const Builder& builder, Type type) {
  switch (type) {
    case Type::u16:
      return Type::u32;
    case Type::s16:
      return Type::s32;
    case Type::u32:
      return Type::u64;
    case Type::s32:
      return Type::s64;
    default:
      builder.unsupported(".wide is for 16 and 32 bits only");
  }
}

void decode_mul(Builder& builder) {
  const Type type = builder.type();
  const Part part = accept_part(builder);
  const Handler handler = for_integer(builder, type, [part]<class T>(T) -> Handler {
    if (part == Part::lo) return mul_lo<std::make_unsigned_t<T>>;
    if (part == Part::hi) return mul_hi<T>;
    if constexpr (sizeof(T) < 8) return mul_wide<T>;
    return nullptr;
  });
  emit_plain(builder, handler, Class::multiply, part == Part::wide ? wide(builder, type) : type,
             {type, type});
}

void decode_mad(Builder& builder) {
  builder.expect_operands(4);
  const Type type = builder.type();
  const Part part = accept_part(builder);
  if (part != Part::wide && builder.accept("cc")) {
    return part == Part::lo ? decode_chain<Chain::mad_lo>(builder, type, false, true)
                            : decode_chain<Chain::mad_hi>(builder, type, false, true);
  }
  Handler handler = for_integer(builder, type, [part]<class T>(T) -> Handler {
    if (part == Part::lo) return mad_lo<std::make_unsigned_t<T>>;
    if (part == Part::hi) return mad_hi<T>;
    if constexpr (sizeof(T) < 8) return mad_wide<T>;
    return nullptr;
  });
  if (part == Part::hi && type == Type::s32 && builder.accept("sat")) handler = mad_hi_saturating;
  const Type result = part == Part::wide ? wide(builder, type) : type;
  emit_plain(builder, handler, Class::multiply, result, {type, type, result});
}

void decode_madc(Builder& builder) {
  builder.expect_operands(4);
  const Type type = builder.type();
  const bool writes = builder.accept("cc");
  switch (accept_part(builder)) {
    case Part::lo:
      return decode_chain<Chain::mad_lo>(builder, type, true, writes);
    case Part::hi:
      return decode_chain<Chain::mad_hi>(builder, type, true, writes);
    default:
      builder.unsupported("needs .lo or .hi");
  }
}

template <class T, unsigned shift>
void mul24(Warp& warp, const Op& op) {
  map2<std::uint32_t, T, T>(warp, op, [](T a, T b) { return product24(a, b) >> shift; });
}

template <class T, unsigned shift>
void mad24(Warp& warp, const Op& op) {
  map3<std::uint32_t, T, T, std::uint32_t>(warp, op, [](T a, T b, std::uint32_t c) {
    return static_cast<std::uint32_t>(product24(a, b) >> shift) + c;
  });
}

void mad24_hi_saturating(Warp& warp, const Op& op) {
  using T = std::int32_t;
  map3<T, T, T, T>(warp, op,
                   [](T a, T b, T c) { return saturating_sum(static_cast<T>(product24(a, b) >> 16), c); });
}

// One of the four handlers, by type and part.
Handler of_24_bits(Builder& builder, Type type, const Handler (&handlers)[2][2]) {
  const Part part = accept_part(builder);
  if ((type != Type::u32 && type != Type::s32) || part == Part::wide)
    builder.unsupported("not defined for this type");
  return handlers[type == Type::s32][part == Part::hi];
}

void decode_mul24(Builder& builder) {
  constexpr Handler kHandlers[2][2] = {{mul24<std::uint32_t, 0>, mul24<std::uint32_t, 16>},
                                       {mul24<std::int32_t, 0>, mul24<std::int32_t, 16>}};
  const Type type = builder.type();
  emit_plain(builder, of_24_bits(builder, type, kHandlers), Class::multiply, type, {type, type});
}

void decode_mad24(Builder& builder) {
  constexpr Handler kHandlers[2][2] = {{mad24<std::uint32_t, 0>, mad24<std::uint32_t, 16>},
                                       {mad24<std::int32_t, 0>, mad24<std::int32_t, 16>}};
  const Type type = builder.type();
  Handler handler = of_24_bits(builder, type, kHandlers);
  if (handler == kHandlers[1][1] && builder.accept("sat")) handler = mad24_hi_saturating;
  emit_plain(builder, handler, Class::multiply, type, {type, type, type});
}

// c + the products of the parts of a, A each, with bytes of b, beginning with byte `first`.
template <class A, class B, unsigned first>
void dot_product(Warp& warp, const Op& op) {
  using U = std::uint32_t;
  map3<U, U, U, U>(warp, op, [](U a, U b, U c) {
    const auto term = [=](unsigned i) { return static_cast<U>(part_of<A>(a, i) * part_of<B>(b, first + i)); };
    U sum = c + term(0) + term(1);
    if constexpr (sizeof(A) == 1) sum += term(2) + term(3);
    return sum;
  });
}

// The handlers by signs: [a is signed][b is signed].
template <class A, unsigned first>
constexpr Handler kDotProducts[2][2] = {
    {dot_product<A, std::uint8_t, first>, dot_product<A, std::int8_t, first>},
    {dot_product<std::make_signed_t<A>, std::uint8_t, first>,
     dot_product<std::make_signed_t<A>, std::int8_t, first>}};

void decode_dot_product(Builder& builder, const Handler (&handlers)[2][2]) {
  const Type a = builder.type();
  const Type b = builder.type();
  const auto is_word = [](Type type) { return type == Type::u32 || type == Type::s32; };
  if (!is_word(a) || !is_word(b)) builder.unsupported("not defined for these types");
  emit_plain(builder, handlers[a == Type::s32][b == Type::s32], Class::multiply, Type::b32,
             {a, b, Type::b32});
}

void decode_dp4a(Builder& builder) {
  decode_dot_product(builder, kDotProducts<std::uint8_t, 0>);
}

void decode_dp2a(Builder& builder) {
  const int half = builder.accept_one_of({"lo", "hi"});
  if (half < 0) builder.unsupported("needs .lo or .hi");
  decode_dot_product(builder, half == 0 ? kDotProducts<std::uint16_t, 0> : kDotProducts<std::uint16_t, 2>);
}

// --- Quotients --------------------------------------------------------------------------------------------

template <class T, bool remainder>
void quotient(Warp& warp, const Op& op) {
  const T* a = warp.lanes<T>(op.src[0]);
  const T* b = warp.lanes<T>(op.src[1]);
  alignas(32) T results[kLanes];
  for (unsigned i = 0; i < kLanes; ++i) {
    const Quotient<T> result = divide(a[i], b[i]);
    results[i] = remainder ? result.remainder : result.quotient;
  }
  for_lanes(warp, warp.lanes<T>(op.dst), [&](unsigned i) { return results[i]; });
}

template <bool remainder>
void decode_quotient(Builder& builder) {
  const Type type = builder.type();
  emit_plain(builder,
             for_integer(builder, type, []<class T>(T) -> Handler { return quotient<T, remainder>; }),
             Class::integer, type, {type, type});
}

// --- Others -----------------------------------------------------------------------------------------------

template <class T>
void minimum(Warp& warp, const Op& op) {
  map2<T, T, T>(warp, op, [](T a, T b) { return a < b ? a : b; });
}

template <class T>
void maximum(Warp& warp, const Op& op) {
  map2<T, T, T>(warp, op, [](T a, T b) { return a > b ? a : b; });
}

template <class T>
void absolute(Warp& warp, const Op& op) {
  using U = std::make_unsigned_t<T>;
  map1<U, T>(warp, op, [](T a) { return a < 0 ? 0 - static_cast<U>(a) : static_cast<U>(a); });
}

template <class T>
void negate(Warp& warp, const Op& op) {
  map1<T, T>(warp, op, [](T a) { return T{0} - a; });
}

template <class T>
void sad(Warp& warp, const Op& op) {
  using U = std::make_unsigned_t<T>;
  map3<U, T, T, U>(warp, op, [](T a, T b, U c) {
    const Word<T> difference = static_cast<Word<T>>(a) - static_cast<Word<T>>(b);
    return c + (a < b ? 0 - difference : difference);
  });
}

template <class T, bool larger, bool relu>
void extreme_halves(Warp& warp, const Op& op) {
  map2<std::uint32_t, std::uint32_t, std::uint32_t>(warp, op, [](std::uint32_t a, std::uint32_t b) {
    return by_halves<T>(a, b, extreme<T, larger, relu>);
  });
}

template <bool larger>
void extreme_relu(Warp& warp, const Op& op) {
  map2<std::int32_t, std::int32_t, std::int32_t>(warp, op, extreme<std::int32_t, larger, true>);
}

template <bool larger>
void decode_extreme(Builder& builder) {
  const Type type = builder.type();
  Handler handler = nullptr;
  if (type == Type::s16x2) {
    handler = builder.accept("relu") ? extreme_halves<std::int16_t, larger, true>
                                     : extreme_halves<std::int16_t, larger, false>;
  } else if (type == Type::u16x2) {
    handler = extreme_halves<std::uint16_t, larger, false>;
  } else if (type == Type::s32 && builder.accept("relu")) {
    handler = extreme_relu<larger>;
  } else {
    handler =
        for_integer(builder, type, []<class T>(T) -> Handler { return larger ? maximum<T> : minimum<T>; });
  }
  emit_plain(builder, handler, Class::integer, type, {type, type});
}

void decode_abs(Builder& builder) {
  const Type type = builder.type();
  if (!ptx::is_signed(type)) builder.unsupported("not defined for this type");
  const Handler handler =
      for_size(builder, type, []<class T>(T) -> Handler { return absolute<std::make_signed_t<T>>; });
  emit_plain(builder, handler, Class::integer, type, {type});
}

void decode_neg(Builder& builder) {
  const Type type = builder.type();
  emit_plain(builder, for_size(builder, type, []<class T>(T) -> Handler { return negate<T>; }),
             Class::integer, type, {type});
}

void decode_sad(Builder& builder) {
  const Type type = builder.type();
  emit_plain(builder, for_integer(builder, type, []<class T>(T) -> Handler { return sad<T>; }),
             Class::integer, type, {type, type, type});
}

constexpr Opcode kOpcodes[] = {
    {"add", decode_add, Operates::on_integers},
    {"addc", decode_with_carry<Chain::add>, Operates::on_integers},
    {"sub", decode_sub, Operates::on_integers},
    {"subc", decode_with_carry<Chain::sub>, Operates::on_integers},
    {"mul", decode_mul, Operates::on_integers},
    {"mad", decode_mad, Operates::on_integers},
    {"madc", decode_madc, Operates::on_integers},
    {"mul24", decode_mul24, Operates::on_integers},
    {"mad24", decode_mad24, Operates::on_integers},
    {"dp4a", decode_dp4a, Operates::on_integers},
    {"dp2a", decode_dp2a, Operates::on_integers},
    {"div", decode_quotient<false>, Operates::on_integers},
    {"rem", decode_quotient<true>, Operates::on_integers},
    {"min", decode_extreme<false>, Operates::on_integers},
    {"max", decode_extreme<true>, Operates::on_integers},
    {"abs", decode_abs, Operates::on_integers},
    {"neg", decode_neg, Operates::on_integers},
    {"sad", decode_sad, Operates::on_integers},
    {"vadd2", decode_packed_integer},
    {"vadd4", decode_packed_integer},
    {"vsub2", decode_packed_integer},
    {"vsub4", decode_packed_integer},
    {"vavrg2", decode_packed_integer},
    {"vavrg4", decode_packed_integer},
    {"vabsdiff2", decode_packed_integer},
    {"vabsdiff4", decode_packed_integer},
    {"vmin2", decode_packed_integer},
    {"vmin4", decode_packed_integer},
    {"vmax2", decode_packed_integer},
    {"vmax4", decode_packed_integer},
};

}  // namespace

std::span<const Opcode> integer_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
