// SPDX-License-Identifier: Apache-2.0
// Logic, shifts and bit fields.
#include <array>
#include <bit>
#include <type_traits>

#include "gpu/exec/instructions/plain.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/opcodes.hpp"

namespace manyscale::gpu {
namespace {

using ptx::Type;
using U32 = std::uint32_t;

template <class T>
inline constexpr U32 kBits = 8 * sizeof(T);

// 1 for .wrap, 0 for .clamp.
int accept_wrap(Builder& builder) {
  const int mode = builder.accept_one_of({"clamp", "wrap"});
  if (mode < 0) builder.unsupported("needs .clamp or .wrap");
  return mode;
}

void expect_words(Builder& builder, Type type) {
  if (ptx::size_of(type) != 4) builder.unsupported("not defined for this type");
}

// --- Logic ------------------------------------------------------------------------------------------------

struct And {
  template <class T>
  T operator()(T a, T b) const {
    return a & b;
  }
};

struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return a | b;
  }
};

struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};

struct Not {
  template <class T>
  T operator()(T a) const {
    return static_cast<T>(~a);
  }
};

struct IsZero {
  template <class T>
  T operator()(T a) const {
    return a == 0 ? 1 : 0;
  }
};

template <class T, class F>
void binary(Warp& warp, const Op& op) {
  map2<T, T, T>(warp, op, F{});
}

template <class T, class F>
void unary(Warp& warp, const Op& op) {
  map1<T, T>(warp, op, F{});
}

// A predicate that is read: its position, and all ones if it is negated.
struct Condition {
  Slot slot;
  Mask flip;
};

Condition condition(Builder& builder, unsigned index) {
  bool negated = false;
  const Slot slot = builder.predicate_source(builder.operand(index), &negated);
  return {slot, negated ? kAllLanes : 0};
}

constexpr std::int64_t packed(Mask first, Mask second) {
  return static_cast<std::int64_t>(first | std::uint64_t{second} << 32);
}

template <class F>
void binary_predicate(Warp& warp, const Op& op) {
  const auto flips = static_cast<std::uint64_t>(op.immediate);
  const Mask a = warp.predicate(op.src[0]) ^ static_cast<Mask>(flips);
  const Mask b = warp.predicate(op.src[1]) ^ static_cast<Mask>(flips >> 32);
  set_predicate(warp, op.dst, F{}(a, b));
}

void copy_predicate(Warp& warp, const Op& op) {
  set_predicate(warp, op.dst, warp.predicate(op.src[0]) ^ static_cast<Mask>(op.immediate));
}

template <class F>
void decode_binary(Builder& builder) {
  const Type type = builder.type();
  if (type != Type::pred) {
    emit_plain(builder, for_size(builder, type, []<class T>(T) -> Handler { return binary<T, F>; }),
               Class::logic, type, {type, type});
    return;
  }
  builder.expect_operands(3);
  const Slot dst = builder.predicate_destination(builder.operand(0));
  const Condition a = condition(builder, 1), b = condition(builder, 2);
  Op& op = builder.emit(binary_predicate<F>, Class::logic);
  op.dst = dst;
  op.src = {a.slot, b.slot, kNoSlot, kNoSlot};
  op.immediate = packed(a.flip, b.flip);
}

void decode_not(Builder& builder) {
  const Type type = builder.type();
  if (type != Type::pred) {
    emit_plain(builder, for_size(builder, type, []<class T>(T) -> Handler { return unary<T, Not>; }),
               Class::logic, type, {type});
    return;
  }
  builder.expect_operands(2);
  const Slot dst = builder.predicate_destination(builder.operand(0));
  const Condition a = condition(builder, 1);
  Op& op = builder.emit(copy_predicate, Class::logic);
  op.dst = dst;
  op.src[0] = a.slot;
  op.immediate = packed(~a.flip, 0);
}

void decode_cnot(Builder& builder) {
  const Type type = builder.type();
  emit_plain(builder, for_size(builder, type, []<class T>(T) -> Handler { return unary<T, IsZero>; }),
             Class::logic, type, {type});
}

// The function whose table of values is in op.immediate. Bit 4a + 2b + c of the table is the value for bits
// a, b, c: the choice by c comes first, then b, then a.
void lop3(Warp& warp, const Op& op) {
  U32 value[4];
  U32 change[4];
  for (unsigned i = 0; i < 4; ++i) {
    value[i] = 0 - static_cast<U32>((op.immediate >> (2 * i)) & 1);
    change[i] = value[i] ^ (0 - static_cast<U32>((op.immediate >> (2 * i + 1)) & 1));
  }
  map3<U32, U32, U32, U32>(warp, op, [=](U32 a, U32 b, U32 c) {
    const auto by_c = [&](unsigned i) { return value[i] ^ (change[i] & c); };
    const U32 without_a = by_c(0) ^ ((by_c(0) ^ by_c(1)) & b);
    const U32 with_a = by_c(2) ^ ((by_c(2) ^ by_c(3)) & b);
    return without_a ^ ((without_a ^ with_a) & a);
  });
}

constexpr std::uint8_t kConjunction = 1;
constexpr std::uint8_t kNegated = 2;

// lop3 that also says, combined with the predicate in src[3], whether the result is not zero.
void lop3_with_predicate(Warp& warp, const Op& op) {
  const Mask q = warp.predicate(op.src[3]) ^ (op.flags & kNegated ? kAllLanes : 0);
  lop3(warp, op);
  const U32* d = warp.lanes<U32>(op.dst);
  const Mask nonzero = ballot([=](unsigned i) { return d[i] != 0; });
  set_predicate(warp, op.dst2, op.flags & kConjunction ? nonzero & q : nonzero | q);
}

void decode_lop3(Builder& builder) {
  const Type type = builder.type();
  expect_words(builder, type);
  const int combination = builder.accept_one_of({"or", "and"});
  builder.expect_operands(combination < 0 ? 5 : 6);
  const std::int64_t table = builder.integer(4);
  if (table < 0 || table > 255) builder.unsupported("its table must lie between 0 and 255");
  const ptx::Operand* result = &builder.operand(0);
  Slot p = kNoSlot;
  Condition q{kNoSlot, 0};
  if (combination >= 0) {
    if (result->kind != ptx::OperandKind::pair) builder.unsupported("needs two destinations, d|p");
    const auto destinations = builder.children(*result);
    p = builder.predicate_destination(destinations[1]);
    q = condition(builder, 5);
    result = &destinations[0];
  }
  const Slot dst = builder.destination(*result, type);
  const Slot a = builder.source(1, type), b = builder.source(2, type), c = builder.source(3, type);
  Op& op = builder.emit(combination < 0 ? lop3 : lop3_with_predicate, Class::logic);
  op.dst = dst;
  op.dst2 = p;
  op.src = {a, b, c, q.slot};
  op.immediate = table;
  op.flags = static_cast<std::uint8_t>((combination == 1 ? kConjunction : 0) | (q.flip ? kNegated : 0));
}

// --- Shifts -----------------------------------------------------------------------------------------------

// Amounts beyond the width shift everything out.
template <class T>
void shl(Warp& warp, const Op& op) {
  map2<T, T, U32>(warp, op, [](T a, U32 amount) {
    return amount < kBits<T> ? static_cast<T>(a << (amount % kBits<T>)) : T{0};
  });
}

template <class T>
void shr(Warp& warp, const Op& op) {
  map2<T, T, U32>(warp, op, [](T a, U32 amount) {
    if constexpr (std::is_signed_v<T>)
      return static_cast<T>(a >> (amount < kBits<T> ? amount : kBits<T> - 1));
    return amount < kBits<T> ? static_cast<T>(a >> (amount % kBits<T>)) : T{0};
  });
}

void decode_shl(Builder& builder) {
  const Type type = builder.type();
  emit_plain(builder, for_size(builder, type, []<class T>(T) -> Handler { return shl<T>; }), Class::logic,
             type, {type, Type::u32});
}

void decode_shr(Builder& builder) {
  const Type type = builder.type();
  emit_plain(builder, for_integer(builder, type, []<class T>(T) -> Handler { return shr<T>; }), Class::logic,
             type, {type, Type::u32});
}

// Shifts the 64 bits of b:a; the upper half of the result of a left shift, the lower half of a right one.
template <bool left, bool wrap>
void funnel_shift(Warp& warp, const Op& op) {
  map3<U32, U32, U32, U32>(warp, op, [](U32 a, U32 b, U32 amount) {
    const U32 n = amount % 32;
    // In two steps, because a shift by 32 is not defined in C++.
    const U32 result = left ? (b << n) | ((a >> 1) >> (31 - n)) : (a >> n) | ((b << 1) << (31 - n));
    return wrap || amount < 32 ? result : (left ? a : b);
  });
}

void decode_shf(Builder& builder) {
  constexpr Handler kHandlers[2][2] = {{funnel_shift<true, false>, funnel_shift<true, true>},
                                       {funnel_shift<false, false>, funnel_shift<false, true>}};
  const Type type = builder.type();
  expect_words(builder, type);
  const int direction = builder.accept_one_of({"l", "r"});
  if (direction < 0) builder.unsupported("needs .l or .r");
  emit_plain(builder, kHandlers[direction][accept_wrap(builder)], Class::logic, type,
             {type, type, Type::u32});
}

// --- Counting and finding ---------------------------------------------------------------------------------

template <class T>
void popc(Warp& warp, const Op& op) {
  map1<U32, T>(warp, op, [](T a) { return std::popcount(a); });
}

template <class T>
void clz(Warp& warp, const Op& op) {
  map1<U32, T>(warp, op, [](T a) { return std::countl_zero(a); });
}

// The position of the highest bit that differs from the sign, or how far it is from the top; all ones if
// there is none.
template <class T, bool shift_amount>
void bfind(Warp& warp, const Op& op) {
  map1<U32, T>(warp, op, [](T a) {
    using U = std::make_unsigned_t<T>;
    const U bits = a < T{0} ? static_cast<U>(~static_cast<U>(a)) : static_cast<U>(a);
    const auto zeros = static_cast<U32>(std::countl_zero(bits));
    return bits == 0 ? ~U32{0} : shift_amount ? zeros : kBits<T> - 1 - zeros;
  });
}

template <class T>
T reversed(T a) {
  const auto swap = [&a](T mask, unsigned distance) {
    a = static_cast<T>(((a >> distance) & mask) | ((a & mask) << distance));
  };
  swap(static_cast<T>(0x5555555555555555), 1);
  swap(static_cast<T>(0x3333333333333333), 2);
  swap(static_cast<T>(0x0f0f0f0f0f0f0f0f), 4);
  swap(static_cast<T>(0x00ff00ff00ff00ff), 8);
  swap(static_cast<T>(0x0000ffff0000ffff), 16);
  if constexpr (sizeof(T) == 8) swap(0x00000000ffffffff, 32);
  return a;
}

template <class T>
void brev(Warp& warp, const Op& op) {
  map1<T, T>(warp, op, reversed<T>);
}

void decode_popc(Builder& builder) {
  const Type type = builder.type();
  emit_plain(builder,
             for_word(builder, type, []<class T>(T) -> Handler { return popc<std::make_unsigned_t<T>>; }),
             Class::integer, Type::u32, {type});
}

void decode_clz(Builder& builder) {
  const Type type = builder.type();
  emit_plain(builder,
             for_word(builder, type, []<class T>(T) -> Handler { return clz<std::make_unsigned_t<T>>; }),
             Class::integer, Type::u32, {type});
}

void decode_bfind(Builder& builder) {
  const Type type = builder.type();
  const bool shift_amount = builder.accept("shiftamt");
  const Handler handler = for_word(
      builder, type, [=]<class T>(T) -> Handler { return shift_amount ? bfind<T, true> : bfind<T, false>; });
  emit_plain(builder, handler, Class::integer, Type::u32, {type});
}

void decode_brev(Builder& builder) {
  const Type type = builder.type();
  emit_plain(builder,
             for_word(builder, type, []<class T>(T) -> Handler { return brev<std::make_unsigned_t<T>>; }),
             Class::integer, type, {type});
}

// The position of the n-th set bit of `mask`, counted from `base` upwards (n > 0) or downwards (n < 0).
U32 find_nth_set(U32 mask, U32 base, std::int32_t n) {
  if (base > 31) return ~U32{0};
  if (n == 0) return mask >> base & 1 ? base : ~U32{0};
  const int step = n > 0 ? 1 : -1;
  std::int64_t left = n > 0 ? std::int64_t{n} : -std::int64_t{n};
  for (int position = static_cast<int>(base); position >= 0 && position < 32; position += step)
    if ((mask >> position & 1) != 0 && --left == 0) return static_cast<U32>(position);
  return ~U32{0};
}

void fns(Warp& warp, const Op& op) {
  map3<U32, U32, U32, std::int32_t>(warp, op, find_nth_set);
}

void decode_fns(Builder& builder) {
  const Type type = builder.type();
  expect_words(builder, type);
  emit_plain(builder, fns, Class::integer, type, {type, Type::b32, Type::s32});
}

// --- Bit fields -------------------------------------------------------------------------------------------

// Positions and lengths are the lowest 8 bits of their operands.
constexpr U32 kFieldBits = 0xff;

// Ones in the lowest bits.
template <class T>
T low_ones(U32 length) {
  return length < kBits<T> ? static_cast<T>((T{1} << (length % kBits<T>)) - 1) : static_cast<T>(~T{0});
}

template <class T>
void bfe(Warp& warp, const Op& op) {
  map3<T, T, U32, U32>(warp, op, [](T a, U32 position, U32 length) {
    position &= kFieldBits;
    length &= kFieldBits;
    if constexpr (std::is_signed_v<T>) {
      using U = std::make_unsigned_t<T>;
      const T shifted = a >> (position < kBits<T> ? position : kBits<T> - 1);
      const U32 unused = length < kBits<T> ? (kBits<T> - length) % kBits<T> : 0;
      const T extended = static_cast<T>(static_cast<U>(shifted) << unused) >> unused;
      return length == 0 ? T{0} : extended;
    } else {
      const T shifted = position < kBits<T> ? a >> (position % kBits<T>) : T{0};
      return static_cast<T>(shifted & low_ones<T>(length));
    }
  });
}

template <class T>
void bfi(Warp& warp, const Op& op) {
  const U32* lengths = warp.lanes<U32>(op.src[3]);
  const T* a = warp.lanes<T>(op.src[0]);
  const T* b = warp.lanes<T>(op.src[1]);
  const U32* positions = warp.lanes<U32>(op.src[2]);
  for_lanes(warp, warp.lanes<T>(op.dst), [=](unsigned i) {
    const U32 position = positions[i] & kFieldBits;
    const U32 shift = position % kBits<T>;
    const T field = position < kBits<T> ? low_ones<T>(lengths[i] & kFieldBits) << shift : T{0};
    return static_cast<T>((b[i] & ~field) | ((a[i] << shift) & field));
  });
}

void decode_bfe(Builder& builder) {
  const Type type = builder.type();
  emit_plain(builder, for_word(builder, type, []<class T>(T) -> Handler { return bfe<T>; }), Class::logic,
             type, {type, Type::u32, Type::u32});
}

void decode_bfi(Builder& builder) {
  const Type type = builder.type();
  emit_plain(builder,
             for_word(builder, type, []<class T>(T) -> Handler { return bfi<std::make_unsigned_t<T>>; }),
             Class::logic, type, {type, type, Type::u32, Type::u32});
}

// Ones from bit a on, b of them.
template <bool wrap>
void bmsk(Warp& warp, const Op& op) {
  map2<U32, U32, U32>(warp, op, [](U32 a, U32 b) {
    if (wrap) {
      a %= 32;
      b %= 32;
    }
    return a < 32 ? low_ones<U32>(b) << (a % 32) : 0;
  });
}

// The lowest b bits of a, extended.
template <class T, bool wrap>
void szext(Warp& warp, const Op& op) {
  map2<U32, U32, U32>(warp, op, [](U32 a, U32 b) {
    if (wrap) b %= 32;
    const U32 unused = (32 - b) % 32;
    const U32 extended = static_cast<U32>(static_cast<T>(a << unused) >> unused);
    return b == 0 ? 0 : b < 32 ? extended : a;
  });
}

void decode_bmsk(Builder& builder) {
  const Type type = builder.type();
  expect_words(builder, type);
  emit_plain(builder, accept_wrap(builder) ? bmsk<true> : bmsk<false>, Class::logic, type,
             {Type::u32, Type::u32});
}

void decode_szext(Builder& builder) {
  constexpr Handler kHandlers[2][2] = {{szext<U32, false>, szext<U32, true>},
                                       {szext<std::int32_t, false>, szext<std::int32_t, true>}};
  const Type type = builder.type();
  expect_words(builder, type);
  emit_plain(builder, kHandlers[ptx::is_signed(type)][accept_wrap(builder)], Class::logic, type,
             {type, Type::u32});
}

// --- Bytes ------------------------------------------------------------------------------------------------

// Four bytes of b:a, as four digits say: which byte, and in their highest bit whether its sign takes its
// position.
U32 permuted(U32 a, U32 b, U32 selector) {
  U32 result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const U32 digit = selector >> (4 * i);
    const U32 byte = (digit & 4 ? b : a) >> (8 * (digit & 3)) & 0xff;
    const U32 sign = 0 - (byte >> 7);
    result |= (digit & 8 ? sign & 0xff : byte) << (8 * i);
  }
  return result;
}

void prmt(Warp& warp, const Op& op) {
  map3<U32, U32, U32, U32>(warp, op, permuted);
}

// The other modes: c chooses one of four selectors.
void prmt_by_mode(Warp& warp, const Op& op) {
  const auto selectors = static_cast<std::uint64_t>(op.immediate);
  map3<U32, U32, U32, U32>(warp, op, [=](U32 a, U32 b, U32 c) {
    return permuted(a, b, static_cast<U32>(selectors >> (16 * (c & 3))) & 0xffff);
  });
}

void decode_prmt(Builder& builder) {
  // The selectors for c = 3, 2, 1, 0, in the order f4e, b4e, rc8, ecl, ecr, rc16.
  constexpr std::uint64_t kSelectors[] = {0x6543'5432'4321'3210, 0x0123'7012'6701'5670,
                                          0x3333'2222'1111'0000, 0x3333'3222'3211'3210,
                                          0x3210'2210'1110'0000, 0x3232'1010'3232'1010};
  const Type type = builder.type();
  expect_words(builder, type);
  const int mode = builder.accept_one_of({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  Op& op = emit_plain(builder, mode < 0 ? prmt : prmt_by_mode, Class::logic, type, {type, type, Type::b32});
  if (mode >= 0) op.immediate = static_cast<std::int64_t>(kSelectors[mode]);
}

constexpr Opcode kOpcodes[] = {
    {"and", decode_binary<And>}, {"or", decode_binary<Or>}, {"xor", decode_binary<Xor>},
    {"not", decode_not},         {"cnot", decode_cnot},     {"lop3", decode_lop3},
    {"shl", decode_shl},         {"shr", decode_shr},       {"shf", decode_shf},
    {"popc", decode_popc},       {"clz", decode_clz},       {"bfind", decode_bfind},
    {"brev", decode_brev},       {"fns", decode_fns},       {"bfe", decode_bfe},
    {"bfi", decode_bfi},         {"bmsk", decode_bmsk},     {"szext", decode_szext},
    {"prmt", decode_prmt},
};

}  // namespace

std::span<const Opcode> bit_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
