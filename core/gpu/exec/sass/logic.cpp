// SPDX-License-Identifier: Apache-2.0
// Logic, shifts, bit fields, and moves between predicates and registers.
#include <bit>

#include "gpu/exec/sass/builder.hpp"
#include "gpu/exec/sass/decoder.hpp"

namespace manyscale::gpu {
namespace {

using I32 = std::int32_t;
using I64 = std::int64_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

// --- LOP3: any function of three bits, by its table. Bit 4 a + 2 b + c of the table is the result for a, b,
// c.

constexpr unsigned kTableBits = kFreeBits;

// f(a, b, c), in steps: first by c, then by b, then by a.
struct LookUp {
  U32 low[4];   // results for c = 0, by 2 a + b
  U32 flip[4];  // what c = 1 changes
  explicit LookUp(unsigned table) {
    for (unsigned k = 0; k < 4; ++k) {
      low[k] = 0 - (table >> (2 * k) & 1);
      flip[k] = low[k] ^ (0 - (table >> (2 * k + 1) & 1));
    }
  }
  U32 operator()(U32 a, U32 b, U32 c) const {
    const U32 r0 = low[0] ^ (c & flip[0]);
    const U32 r1 = low[1] ^ (c & flip[1]);
    const U32 r2 = low[2] ^ (c & flip[2]);
    const U32 r3 = low[3] ^ (c & flip[3]);
    const U32 without = r0 ^ (b & (r0 ^ r1));
    const U32 with = r2 ^ (b & (r2 ^ r3));
    return without ^ (a & (without ^ with));
  }
};

template <class F>
void apply3(Warp& warp, const Op& op, F f) {
  const Words<true> a(warp, op, 0), b(warp, op, 1), c(warp, op, 2);
  for_words(warp, op.dst, [=](unsigned i) { return f(a[i], b[i], c[i]); });
}

unsigned table_of(const Op& op) {
  return static_cast<unsigned>(op.immediate >> kTableBits) & 0xff;
}

void lop3(Warp& warp, const Op& op) {
  apply3(warp, op, LookUp(table_of(op)));
}

template <class F>
void lop2(Warp& warp, const Op& op) {
  const U32* a = warp.lanes<U32>(op.src[0]);
  const U32* b = warp.lanes<U32>(op.src[1]);
  for_words(warp, op.dst, [=](unsigned i) { return F{}(a[i], b[i]); });
}
struct And {
  U32 operator()(U32 a, U32 b) const { return a & b; }
};
struct Or {
  U32 operator()(U32 a, U32 b) const { return a | b; }
};
struct Xor {
  U32 operator()(U32 a, U32 b) const { return a ^ b; }
};

// The predicate: whether the result has a bit set, or another predicate.
void lop3_predicate(Warp& warp, const Op& op) {
  const LookUp f(table_of(op));
  const Words<true> a(warp, op, 0), b(warp, op, 1), c(warp, op, 2);
  alignas(64) std::array<U32, kLanes> results;
  for (unsigned i = 0; i < kLanes; ++i) results[i] = f(a[i], b[i], c[i]);
  const Mask set = ballot([&](unsigned i) { return results[i] != 0; });
  const Mask with = first_condition(warp, op);
  const bool both = (op.immediate >> (kTableBits + 8) & 1) != 0;
  for_words(warp, op.dst, [&](unsigned i) { return results[i]; });
  set_predicate(warp, op.dst2, both ? set & with : set | with);
}

void decode_lop3(MachineBuilder& builder) {
  builder.ignore({"LUT"});
  const bool both = builder.accept("PAND");
  I64 modifiers = 0;
  const Slot dst = builder.destination();
  std::array<Slot, 4> sources{};
  for (unsigned k = 0; k < 3; ++k) sources[k] = builder.source(k, 1, &modifiers, k);
  const auto table = static_cast<unsigned>(builder.immediate(builder.value(3))) & 0xff;
  const Slot set = builder.predicate_result(0);
  bool negated = false;
  sources[3] = builder.condition(0, negated, false);
  const Handler plain = modifiers != 0  ? lop3
                        : table == 0xc0 ? lop2<And>
                        : table == 0xfc ? lop2<Or>
                        : table == 0x3c ? lop2<Xor>
                                        : lop3;
  Op& op = builder.emit(set == kNoSlot ? plain : lop3_predicate, Class::logic);
  op.dst = dst;
  op.dst2 = set;
  op.src = sources;
  op.immediate = modifiers | I64{table} << kTableBits | I64{both} << (kTableBits + 8) |
                 (negated ? kPredicateNegated : 0);
}

// Two functions of three predicates.
void plop3(Warp& warp, const Op& op) {
  const auto in = [&](unsigned k) {
    const bool negated = (op.immediate & negated_bit(k)) != 0;
    if ((op.immediate & inverted_bit(k)) == 0) return condition(warp, op.src[k], negated);
    const U32* words = warp.lanes<U32>(op.src[k]);
    const Mask signs = ballot([=](unsigned i) { return words[i] >> 31 != 0; });
    return negated ? ~signs : signs;
  };
  const Mask a = in(0), b = in(1), c = in(2);
  const auto tables = static_cast<unsigned>(op.immediate >> kTableBits);
  const Mask first = LookUp(tables & 0xff)(a, b, c);
  const Mask second = LookUp(tables >> 8 & 0xff)(a, b, c);
  if (op.dst != kNoSlot) set_predicate(warp, op.dst, first);
  if (op.dst2 != kNoSlot) set_predicate(warp, op.dst2, second);
}

void decode_plop3(MachineBuilder& builder) {
  builder.ignore({"LUT"});
  I64 bits = 0;
  std::array<Slot, 4> sources{kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  // Operands are predicates, or signs of registers.
  unsigned k = 0;
  unsigned predicates = 0;
  std::vector<I64> tables;
  for (unsigned i = 0; i < builder.instruction().operand_count; ++i) {
    const sass::Operand& operand = builder.instruction().operands[i];
    if (operand.written) continue;
    const bool is_predicate =
        operand.kind == sass::OperandKind::predicate || operand.kind == sass::OperandKind::uniform_predicate;
    if (operand.kind == sass::OperandKind::immediate) tables.push_back(operand.value & 0xff);
    const bool is_register = operand.kind == sass::OperandKind::general ||
                             operand.kind == sass::OperandKind::uniform ||
                             operand.kind == sass::OperandKind::constant;
    if (k == 3 || (!is_predicate && !is_register)) continue;
    bool negated = false;
    if (is_predicate) {
      sources[k] = builder.condition(predicates++, negated);
    } else {
      std::int64_t modifiers = 0;
      sources[k] = builder.source(operand, 1, &modifiers, 0);
      negated = modifiers != 0;
      bits |= inverted_bit(k);
    }
    if (negated) bits |= negated_bit(k);
    ++k;
  }
  if (k != 3 || tables.empty()) builder.unsupported("an operand is missing");
  const I64 first = tables[0];
  const I64 second = tables.size() > 1 ? tables[1] : 0;
  Op& op = builder.emit(plop3, Class::logic);
  op.dst = builder.predicate_result(0);
  op.dst2 = builder.predicate_result(1);
  op.src = sources;
  op.immediate = bits | first << kTableBits | second << (kTableBits + 8);
}

// --- Shifts of two words

enum ShiftFlags : std::uint8_t { kRight = 1, kSigned = 2, kLong = 4, kUpper = 8, kWraps = 16 };

template <bool right, bool is_signed, bool upper>
void shift_pair(Warp& warp, const Op& op) {
  const Words<false> low(warp, op, 0), by(warp, op, 1), high(warp, op, 2);
  const auto flags = static_cast<unsigned>(op.immediate >> kFreeBits);
  const U32 most = flags & kLong ? 63 : 32;
  const U32 wrap = flags & kWraps ? (flags & kLong ? 63 : 31) : ~U32{0};
  for_words(warp, op.dst, [=](unsigned i) {
    const U64 value = low[i] | U64{high[i]} << 32;
    const U32 wanted = by[i] & wrap;
    const U32 amount = wanted < most ? wanted : most;
    const bool beyond = most == 63 && wanted > 63;
    U64 result = 0;
    if constexpr (right && is_signed) {
      result = static_cast<U64>(static_cast<I64>(value) >> amount);
    } else if constexpr (right) {
      result = beyond ? 0 : value >> amount;
    } else {
      result = beyond ? 0 : value << amount;
    }
    return static_cast<U32>(upper ? result >> 32 : result);
  });
}

// A shift of one word by a number that is known.
template <bool right, bool is_signed>
void shift_word(Warp& warp, const Op& op) {
  const U32* a = warp.lanes<U32>(op.src[0]);
  const auto by = static_cast<unsigned>(op.immediate);
  for_words(warp, op.dst, [=](unsigned i) {
    if constexpr (right && is_signed) return static_cast<U32>(static_cast<I32>(a[i]) >> by);
    return right ? a[i] >> by : a[i] << by;
  });
}

bool is_zero(const sass::Operand& operand) {
  return (operand.kind == sass::OperandKind::general && operand.index == sass::kZeroRegister) ||
         (operand.kind == sass::OperandKind::uniform && operand.index == sass::kZeroUniformRegister);
}

void decode_shf(MachineBuilder& builder) {
  const bool right = builder.accept("R");
  if (!right && !builder.accept("L")) builder.unsupported("it shifts neither left nor right");
  unsigned flags = builder.accept("W") ? unsigned{kWraps} : 0;
  const int type = builder.accept_one_of({"U32", "S32", "U64", "S64"});
  const bool is_signed = type == 1 || type == 3;
  if (type >= 2) flags |= kLong;
  const bool upper = builder.accept("HI");
  const Slot dst = builder.destination();
  const sass::Operand& by = builder.value(1);
  const bool known = by.kind == sass::OperandKind::immediate && by.value >= 0 && by.value < 32;
  const sass::Operand& word = right ? builder.value(2) : builder.value(0);
  const sass::Operand& rest = right ? builder.value(0) : builder.value(2);
  // The whole value is in the word from which bits do not come in.
  if (known && (right == upper) && (right || !upper) && (right ? true : is_zero(rest))) {
    const Slot from = builder.source(word);
    Op& op = builder.emit(
        right ? (is_signed ? shift_word<true, true> : shift_word<true, false>) : shift_word<false, false>,
        Class::integer);
    op.dst = dst;
    op.src[0] = from;
    op.immediate = by.value;
    return;
  }
  const Slot low = builder.source(0);
  const Slot amount = builder.source(by);
  const Slot high = builder.source(2);
  const Handler handler =
      right ? (is_signed ? (upper ? shift_pair<true, true, true> : shift_pair<true, true, false>)
                         : (upper ? shift_pair<true, false, true> : shift_pair<true, false, false>))
            : (upper ? shift_pair<false, false, true> : shift_pair<false, false, false>);
  Op& op = builder.emit(handler, Class::integer);
  op.dst = dst;
  op.src = {low, amount, high, kNoSlot};
  op.immediate = I64{flags} << kFreeBits;
}

// USHL and USHR of the later uniform datapath.
template <bool right>
void shift_any(Warp& warp, const Op& op) {
  const Words<false> a(warp, op, 0), by(warp, op, 1);
  for_words(warp, op.dst, [=](unsigned i) {
    const U32 value = right ? a[i] >> (by[i] & 31) : a[i] << (by[i] & 31);
    return by[i] > 31 ? 0 : value;
  });
}

template <bool right>
void decode_shift(MachineBuilder& builder) {
  builder.ignore({"U32"});
  const Slot dst = builder.destination();
  const Slot a = builder.source(0);
  const Slot by = builder.source(1);
  Op& op = builder.emit(shift_any<right>, Class::integer);
  op.dst = dst;
  op.src = {a, by, kNoSlot, kNoSlot};
}

// --- PRMT: four bytes out of eight

enum class Choice : std::uint8_t { index, f4e, b4e, rc8, ecl, ecr, rc16 };

template <Choice choice>
void permute(Warp& warp, const Op& op) {
  const Words<false> a(warp, op, 0), selector(warp, op, 1), c(warp, op, 2);
  for_words(warp, op.dst, [=](unsigned i) {
    const U64 bytes = a[i] | U64{c[i]} << 32;
    const U32 select = selector[i];
    U32 result = 0;
    for (unsigned k = 0; k < 4; ++k) {
      U32 which = 0;
      U32 sign = 0;
      const U32 n = select & 3;
      if constexpr (choice == Choice::index) {
        which = select >> (4 * k) & 7;
        sign = select >> (4 * k + 3) & 1;
      } else if constexpr (choice == Choice::f4e) {
        which = (n + k) & 7;
      } else if constexpr (choice == Choice::b4e) {
        which = (n - k) & 7;
      } else if constexpr (choice == Choice::rc8) {
        which = n;
      } else if constexpr (choice == Choice::ecl) {
        which = k > n ? k : n;
      } else if constexpr (choice == Choice::ecr) {
        which = k < n ? k : n;
      } else {
        which = (k & 1) | (n & 1) << 1;
      }
      const auto byte = static_cast<U32>(bytes >> (8 * which)) & 0xff;
      const U32 replicated = byte & 0x80 ? 0xff : 0;
      result |= (sign ? replicated : byte) << (8 * k);
    }
    return result;
  });
}

// Bytes chosen by a number that is known, without signs: each a shift and a mask.
void permute_known(Warp& warp, const Op& op) {
  const Words<false> a(warp, op, 0), c(warp, op, 2);
  const auto select = static_cast<U32>(op.immediate);
  const std::array<unsigned, 4> by{8 * (select & 7), 8 * (select >> 4 & 7), 8 * (select >> 8 & 7),
                                   8 * (select >> 12 & 7)};
  for_words(warp, op.dst, [=](unsigned i) {
    const U64 bytes = a[i] | U64{c[i]} << 32;
    return static_cast<U32>((bytes >> by[0] & 0xff) | (bytes >> by[1] & 0xff) << 8 |
                            (bytes >> by[2] & 0xff) << 16 | (bytes >> by[3] & 0xff) << 24);
  });
}

void decode_prmt(MachineBuilder& builder) {
  constexpr Handler kHandlers[] = {permute<Choice::f4e>, permute<Choice::b4e>, permute<Choice::rc8>,
                                   permute<Choice::ecl>, permute<Choice::ecr>, permute<Choice::rc16>};
  const int choice = builder.accept_one_of({"F4E", "B4E", "RC8", "ECL", "ECR", "RC16"});
  const Slot dst = builder.destination();
  const Slot a = builder.source(0);
  const Slot selector = builder.source(1);
  const Slot c = builder.source(2);
  const sass::Operand& known = builder.value(1);
  const bool is_known =
      choice < 0 && known.kind == sass::OperandKind::immediate && (known.value & 0x8888) == 0;
  Op& op = builder.emit(is_known     ? permute_known
                        : choice < 0 ? permute<Choice::index>
                                     : kHandlers[choice],
                        Class::integer);
  op.dst = dst;
  op.src = {a, selector, c, kNoSlot};
  op.immediate = is_known ? known.value : 0;
}

constexpr MachineOpcode kOpcodes[] = {
    {"LOP3", decode_lop3},         {"ULOP3", decode_lop3},       {"PLOP3", decode_plop3},
    {"UPLOP3", decode_plop3},      {"SHF", decode_shf},          {"USHF", decode_shf},
    {"USHL", decode_shift<false>}, {"USHR", decode_shift<true>}, {"PRMT", decode_prmt},
    {"UPRMT", decode_prmt},
};

}  // namespace

std::span<const MachineOpcode> machine_logic_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
