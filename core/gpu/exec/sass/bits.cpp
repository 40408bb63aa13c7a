// SPDX-License-Identifier: Apache-2.0
// Counting and finding bits, fields of bits, and predicates as bits of a register.
#include <algorithm>
#include <bit>

#include "gpu/exec/sass/builder.hpp"
#include "gpu/exec/sass/decoder.hpp"

namespace manyscale::gpu {
namespace {

using I32 = std::int32_t;
using I64 = std::int64_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

template <auto f>
void map_word(Warp& warp, const Op& op) {
  const Words<true> a(warp, op, 0);
  for_words(warp, op.dst, [=](unsigned i) { return f(a[i]); });
}

constexpr auto kCount = [](U32 a) { return static_cast<U32>(std::popcount(a)); };
constexpr auto kReverse = [](U32 a) {
  a = (a >> 1 & 0x55555555) | (a & 0x55555555) << 1;
  a = (a >> 2 & 0x33333333) | (a & 0x33333333) << 2;
  a = (a >> 4 & 0x0f0f0f0f) | (a & 0x0f0f0f0f) << 4;
  return __builtin_bswap32(a);
};
// The highest bit that is set, or that differs from the sign; all ones if there is none.
constexpr auto kHighest = [](U32 a) { return a == 0 ? ~U32{0} : 31 - static_cast<U32>(std::countl_zero(a)); };
constexpr auto kHighestSigned = [](U32 a) { return kHighest(static_cast<I32>(a) < 0 ? ~a : a); };
// The shift that brings it to the top.
constexpr auto kShift = [](U32 a) { return a == 0 ? ~U32{0} : static_cast<U32>(std::countl_zero(a)); };
constexpr auto kShiftSigned = [](U32 a) { return kShift(static_cast<I32>(a) < 0 ? ~a : a); };

void emit_word(MachineBuilder& builder, Handler handler) {
  I64 modifiers = 0;
  const Slot dst = builder.destination();
  const Slot a = builder.source(0, 1, &modifiers, 0);
  Op& op = builder.emit(handler, Class::convert);
  op.dst = dst;
  op.src[0] = a;
  op.immediate = modifiers;
}

template <auto f>
void decode_word(MachineBuilder& builder) {
  emit_word(builder, map_word<f>);
}

void decode_flo(MachineBuilder& builder) {
  const bool is_unsigned = builder.accept("U32");
  const bool shift = builder.accept("SH");
  emit_word(builder, is_unsigned ? (shift ? map_word<kShift> : map_word<kHighest>)
                                 : (shift ? map_word<kShiftSigned> : map_word<kHighestSigned>));
}

// So many bits from a position on; beyond the word there is nothing, or it wraps.
template <bool wraps>
void bit_mask(Warp& warp, const Op& op) {
  const Words<false> from(warp, op, 0), width(warp, op, 1);
  for_words(warp, op.dst, [=](unsigned i) {
    const U32 first = wraps ? from[i] & 31 : from[i];
    const U32 bits = wraps ? width[i] & 31 : width[i];
    const U64 ones = bits >= 32 ? 0xffffffff : (U64{1} << bits) - 1;
    return first >= 32 ? U32{0} : static_cast<U32>(ones << first);
  });
}

void decode_bmsk(MachineBuilder& builder) {
  const bool wraps = builder.accept("W");
  builder.ignore({"C"});
  const Slot dst = builder.destination();
  const Slot a = builder.source(0);
  const Slot b = builder.source(1);
  Op& op = builder.emit(wraps ? bit_mask<true> : bit_mask<false>, Class::integer);
  op.dst = dst;
  op.src = {a, b, kNoSlot, kNoSlot};
}

// The lowest bits, extended by the highest of them or by zeros.
template <bool is_signed, bool wraps>
void extend(Warp& warp, const Op& op) {
  const Words<false> a(warp, op, 0), width(warp, op, 1);
  for_words(warp, op.dst, [=](unsigned i) {
    const U32 wanted = wraps ? width[i] & 31 : width[i];
    const U32 bits = wanted < 32 ? wanted : 32;
    const U32 unused = 32 - bits;
    const U32 top = bits == 0 ? 0 : a[i] << (unused & 31);
    const U32 result =
        is_signed ? static_cast<U32>(static_cast<I32>(top) >> (unused & 31)) : top >> (unused & 31);
    return bits == 0 ? 0 : result;
  });
}

void decode_sgxt(MachineBuilder& builder) {
  const bool wraps = builder.accept("W");
  const bool is_signed = !builder.accept("U32");
  const Slot dst = builder.destination();
  const Slot a = builder.source(0);
  const Slot b = builder.source(1);
  Op& op = builder.emit(is_signed ? (wraps ? extend<true, true> : extend<true, false>)
                                  : (wraps ? extend<false, true> : extend<false, false>),
                        Class::integer);
  op.dst = dst;
  op.src = {a, b, kNoSlot, kNoSlot};
}

// --- All predicates as bits of a register. P0 to P6, and UP0 to UP6, lie one after the other from src[3] on.

constexpr unsigned kPredicates = 7;

Slot all_predicates(MachineBuilder& builder) {
  const auto& layout = builder.decoder().layout();
  const auto& operands = builder.instruction().operands;
  const bool uniform = std::any_of(operands.begin(), operands.end(), [](const sass::Operand& operand) {
    return operand.kind == sass::OperandKind::uniform_predicates;
  });
  return uniform ? layout.uniform_predicate(0) : layout.predicate(0);
}

void predicates_to_word(Warp& warp, const Op& op) {
  const Words<false> old(warp, op, 0), chosen(warp, op, 1);
  const auto shift = static_cast<unsigned>(op.immediate);
  const auto* predicates = warp.lanes<Mask>(op.src[3]);
  for_words(warp, op.dst, [=](unsigned i) {
    U32 bits = 0;
    for (unsigned p = 0; p < kPredicates; ++p) bits |= (predicates[p] >> i & 1) << p;
    const U32 mask = (chosen[i] & 0x7f) << shift;
    return (old[i] & ~mask) | ((bits << shift) & mask);
  });
}

void word_to_predicates(Warp& warp, const Op& op) {
  const Words<false> from(warp, op, 0);
  const auto shift = static_cast<unsigned>(op.immediate);
  const auto chosen = warp.lanes<U32>(op.src[1])[__builtin_ctz(warp.mask)];
  for (unsigned p = 0; p < kPredicates; ++p)
    if (chosen >> p & 1)
      set_predicate(warp, op.src[3] + 4 * p,
                    ballot([&](unsigned i) { return (from[i] >> (shift + p) & 1) != 0; }));
}

// Which byte of the register: .B1 and so on, behind the opcode or the register.
unsigned byte_shift(MachineBuilder& builder) {
  int byte = builder.accept_one_of({"B0", "B1", "B2", "B3"});
  for (unsigned i = 0; i < builder.instruction().operand_count; ++i)
    for (sass::Modifier suffix : builder.instruction().operands[i].suffix) {
      const std::string_view word = sass::name_of(suffix);
      if (word.size() == 2 && word[0] == 'B' && word[1] >= '0' && word[1] <= '3') byte = word[1] - '0';
    }
  return 8 * static_cast<unsigned>(std::max(byte, 0));
}

void decode_p2r(MachineBuilder& builder) {
  const unsigned shift = byte_shift(builder);
  const Slot dst = builder.destination();
  const Slot old = builder.source(0);
  const Slot chosen = builder.source(1);
  Op& op = builder.emit(predicates_to_word, Class::logic);
  op.dst = dst;
  op.src = {old, chosen, kNoSlot, all_predicates(builder)};
  op.immediate = shift;
}

void decode_r2p(MachineBuilder& builder) {
  const unsigned shift = byte_shift(builder);
  const Slot from = builder.source(0);
  const Slot chosen = builder.source(1);
  Op& op = builder.emit(word_to_predicates, Class::logic);
  op.src = {from, chosen, kNoSlot, all_predicates(builder)};
  op.immediate = shift;
}

constexpr MachineOpcode kOpcodes[] = {
    {"POPC", decode_word<kCount>},
    {"UPOPC", decode_word<kCount>},
    {"BREV", decode_word<kReverse>},
    {"UBREV", decode_word<kReverse>},
    {"FLO", decode_flo},
    {"UFLO", decode_flo},
    {"BMSK", decode_bmsk},
    {"UBMSK", decode_bmsk},
    {"SGXT", decode_sgxt},
    {"USGXT", decode_sgxt},
    {"P2R", decode_p2r},
    {"UP2UR", decode_p2r},
    {"R2P", decode_r2p},
    {"UR2UP", decode_r2p},
};

}  // namespace

std::span<const MachineOpcode> machine_bits_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
