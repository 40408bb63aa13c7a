// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic: RV64I, M, Zba, Zbb, Zbs and Zicond.
#include <array>
#include <bit>
#include <cstdint>

#include "cpu/riscv/handlers.hpp"
#include "cpu/riscv/machine.hpp"

namespace manyscale::cpu::riscv {

namespace {

__extension__ using u128 = unsigned __int128;
__extension__ using i128 = __int128;

constexpr u64 word(u64 value) {
  return static_cast<u64>(static_cast<i64>(static_cast<i32>(value)));
}

template <class Op, auto compute>
const Op* binary(const Op* op, Hart* h, Machine* m) {
  note(op, m);
  h->x[op->rd] = compute(h->x[op->rs1], h->x[op->rs2]);
  return next(op, h, m);
}

template <class Op, auto compute>
const Op* immediate(const Op* op, Hart* h, Machine* m) {
  note(op, m);
  h->x[op->rd] = compute(h->x[op->rs1], static_cast<u64>(static_cast<i64>(op->immediate)));
  return next(op, h, m);
}

template <class Op, auto compute>
const Op* unary(const Op* op, Hart* h, Machine* m) {
  note(op, m);
  h->x[op->rd] = compute(h->x[op->rs1]);
  return next(op, h, m);
}

constexpr auto add = [](u64 a, u64 b) -> u64 { return a + b; };
constexpr auto sub = [](u64 a, u64 b) -> u64 { return a - b; };
constexpr auto bit_and = [](u64 a, u64 b) -> u64 { return a & b; };
constexpr auto bit_or = [](u64 a, u64 b) -> u64 { return a | b; };
constexpr auto bit_xor = [](u64 a, u64 b) -> u64 { return a ^ b; };
constexpr auto less = [](u64 a, u64 b) -> u64 { return static_cast<i64>(a) < static_cast<i64>(b); };
constexpr auto less_unsigned = [](u64 a, u64 b) -> u64 { return a < b; };
constexpr auto left = [](u64 a, u64 b) -> u64 { return a << (b & 63); };
constexpr auto right = [](u64 a, u64 b) -> u64 { return a >> (b & 63); };
constexpr auto right_signed = [](u64 a, u64 b) -> u64 {
  return static_cast<u64>(static_cast<i64>(a) >> (b & 63));
};

constexpr auto add_word = [](u64 a, u64 b) -> u64 { return word(a + b); };
constexpr auto sub_word = [](u64 a, u64 b) -> u64 { return word(a - b); };
constexpr auto left_word = [](u64 a, u64 b) -> u64 { return word(a << (b & 31)); };
constexpr auto right_word = [](u64 a, u64 b) -> u64 { return word(static_cast<u32>(a) >> (b & 31)); };
constexpr auto right_signed_word = [](u64 a, u64 b) -> u64 {
  return word(static_cast<u64>(static_cast<i32>(a) >> (b & 31)));
};

constexpr auto multiply = [](u64 a, u64 b) -> u64 { return a * b; };
constexpr auto multiply_word = [](u64 a, u64 b) -> u64 { return word(a * b); };
constexpr auto multiply_high = [](u64 a, u64 b) -> u64 {
  return static_cast<u64>((static_cast<i128>(static_cast<i64>(a)) * static_cast<i64>(b)) >> 64);
};
constexpr auto multiply_high_unsigned = [](u64 a, u64 b) -> u64 {
  return static_cast<u64>((static_cast<u128>(a) * b) >> 64);
};
constexpr auto multiply_high_mixed = [](u64 a, u64 b) -> u64 {
  return multiply_high_unsigned(a, b) - (static_cast<i64>(a) < 0 ? b : 0);
};

// Division by zero gives all ones and the dividend as remainder; an overflow gives the dividend and 0.
template <class Signed>
constexpr auto quotient = [](u64 a, u64 b) -> u64 {
  const auto dividend = static_cast<Signed>(a), divisor = static_cast<Signed>(b);
  if (divisor == 0) return ~u64{0};
  if (divisor == -1)
    return static_cast<u64>(static_cast<i64>(static_cast<Signed>(u64{0} - static_cast<u64>(dividend))));
  return static_cast<u64>(static_cast<i64>(dividend / divisor));
};
template <class Signed>
constexpr auto remainder = [](u64 a, u64 b) -> u64 {
  const auto dividend = static_cast<Signed>(a), divisor = static_cast<Signed>(b);
  if (divisor == 0) return static_cast<u64>(static_cast<i64>(dividend));
  if (divisor == -1) return 0;
  return static_cast<u64>(static_cast<i64>(dividend % divisor));
};
constexpr auto quotient_unsigned = [](u64 a, u64 b) -> u64 { return b == 0 ? ~u64{0} : a / b; };
constexpr auto remainder_unsigned = [](u64 a, u64 b) -> u64 { return b == 0 ? a : a % b; };
constexpr auto quotient_unsigned_word = [](u64 a, u64 b) -> u64 {
  return static_cast<u32>(b) == 0 ? ~u64{0} : word(static_cast<u32>(a) / static_cast<u32>(b));
};
constexpr auto remainder_unsigned_word = [](u64 a, u64 b) -> u64 {
  return static_cast<u32>(b) == 0 ? word(a) : word(static_cast<u32>(a) % static_cast<u32>(b));
};

// rs1, shifted or not, is an index that is added to rs2.
template <unsigned shift>
constexpr auto shift_add = [](u64 a, u64 b) -> u64 { return (a << shift) + b; };
template <unsigned shift>
constexpr auto shift_add_word = [](u64 a, u64 b) -> u64 { return (u64{static_cast<u32>(a)} << shift) + b; };
constexpr auto left_unsigned_word = [](u64 a, u64 b) -> u64 { return u64{static_cast<u32>(a)} << (b & 63); };

constexpr auto and_not = [](u64 a, u64 b) -> u64 { return a & ~b; };
constexpr auto or_not = [](u64 a, u64 b) -> u64 { return a | ~b; };
constexpr auto xor_not = [](u64 a, u64 b) -> u64 { return ~(a ^ b); };
constexpr auto maximum = [](u64 a, u64 b) -> u64 {
  return static_cast<i64>(a) < static_cast<i64>(b) ? b : a;
};
constexpr auto minimum = [](u64 a, u64 b) -> u64 {
  return static_cast<i64>(a) < static_cast<i64>(b) ? a : b;
};
constexpr auto maximum_unsigned = [](u64 a, u64 b) -> u64 { return a < b ? b : a; };
constexpr auto minimum_unsigned = [](u64 a, u64 b) -> u64 { return a < b ? a : b; };
constexpr auto rotate_left = [](u64 a, u64 b) -> u64 { return std::rotl(a, static_cast<int>(b & 63)); };
constexpr auto rotate_right = [](u64 a, u64 b) -> u64 { return std::rotr(a, static_cast<int>(b & 63)); };
constexpr auto rotate_left_word = [](u64 a, u64 b) -> u64 {
  return word(std::rotl(static_cast<u32>(a), static_cast<int>(b & 31)));
};
constexpr auto rotate_right_word = [](u64 a, u64 b) -> u64 {
  return word(std::rotr(static_cast<u32>(a), static_cast<int>(b & 31)));
};

constexpr auto leading_zeros = [](u64 a) -> u64 { return std::countl_zero(a); };
constexpr auto trailing_zeros = [](u64 a) -> u64 { return std::countr_zero(a); };
constexpr auto ones = [](u64 a) -> u64 { return std::popcount(a); };
constexpr auto leading_zeros_word = [](u64 a) -> u64 { return std::countl_zero(static_cast<u32>(a)); };
constexpr auto trailing_zeros_word = [](u64 a) -> u64 { return std::countr_zero(static_cast<u32>(a)); };
constexpr auto ones_word = [](u64 a) -> u64 { return std::popcount(static_cast<u32>(a)); };
constexpr auto extend_byte = [](u64 a) -> u64 {
  return static_cast<u64>(static_cast<i64>(static_cast<std::int8_t>(a)));
};
constexpr auto extend_half = [](u64 a) -> u64 {
  return static_cast<u64>(static_cast<i64>(static_cast<std::int16_t>(a)));
};
constexpr auto extend_half_zero = [](u64 a) -> u64 { return a & 0xffff; };
constexpr auto reverse_bytes = [](u64 a) -> u64 { return __builtin_bswap64(a); };
constexpr auto or_within_bytes = [](u64 a) -> u64 {
  for (unsigned shift : {1U, 2U, 4U}) {
    const u64 low = ~u64{0} / 255 * ((1U << (8 - shift)) - 1);  // what stays in its byte when shifted left
    a |= (a & low) << shift | (a >> shift & low);
  }
  return a;
};

constexpr auto clear_bit = [](u64 a, u64 b) -> u64 { return a & ~(u64{1} << (b & 63)); };
constexpr auto get_bit = [](u64 a, u64 b) -> u64 { return a >> (b & 63) & 1; };
constexpr auto flip_bit = [](u64 a, u64 b) -> u64 { return a ^ u64{1} << (b & 63); };
constexpr auto set_bit = [](u64 a, u64 b) -> u64 { return a | u64{1} << (b & 63); };
constexpr auto zero_if_zero = [](u64 a, u64 b) -> u64 { return b == 0 ? 0 : a; };
constexpr auto zero_unless_zero = [](u64 a, u64 b) -> u64 { return b != 0 ? 0 : a; };

}  // namespace

template <class Op>
std::span<const Handler<Op>> integer_handlers() {
  static constexpr auto handlers = std::to_array<Handler<Op>>({
      {"addi", immediate<Op, add>},
      {"slti", immediate<Op, less>},
      {"sltiu", immediate<Op, less_unsigned>},
      {"xori", immediate<Op, bit_xor>},
      {"ori", immediate<Op, bit_or>},
      {"andi", immediate<Op, bit_and>},
      {"slli", immediate<Op, left>},
      {"srli", immediate<Op, right>},
      {"srai", immediate<Op, right_signed>},
      {"addiw", immediate<Op, add_word>},
      {"slliw", immediate<Op, left_word>},
      {"srliw", immediate<Op, right_word>},
      {"sraiw", immediate<Op, right_signed_word>},
      {"add", binary<Op, add>},
      {"sub", binary<Op, sub>},
      {"sll", binary<Op, left>},
      {"slt", binary<Op, less>},
      {"sltu", binary<Op, less_unsigned>},
      {"xor", binary<Op, bit_xor>},
      {"srl", binary<Op, right>},
      {"sra", binary<Op, right_signed>},
      {"or", binary<Op, bit_or>},
      {"and", binary<Op, bit_and>},
      {"addw", binary<Op, add_word>},
      {"subw", binary<Op, sub_word>},
      {"sllw", binary<Op, left_word>},
      {"srlw", binary<Op, right_word>},
      {"sraw", binary<Op, right_signed_word>},
      {"mul", binary<Op, multiply>},
      {"mulh", binary<Op, multiply_high>},
      {"mulhsu", binary<Op, multiply_high_mixed>},
      {"mulhu", binary<Op, multiply_high_unsigned>},
      {"div", binary<Op, quotient<i64>>},
      {"divu", binary<Op, quotient_unsigned>},
      {"rem", binary<Op, remainder<i64>>},
      {"remu", binary<Op, remainder_unsigned>},
      {"mulw", binary<Op, multiply_word>},
      {"divw", binary<Op, quotient<i32>>},
      {"divuw", binary<Op, quotient_unsigned_word>},
      {"remw", binary<Op, remainder<i32>>},
      {"remuw", binary<Op, remainder_unsigned_word>},
      {"add.uw", binary<Op, shift_add_word<0>>},
      {"sh1add", binary<Op, shift_add<1>>},
      {"sh2add", binary<Op, shift_add<2>>},
      {"sh3add", binary<Op, shift_add<3>>},
      {"sh1add.uw", binary<Op, shift_add_word<1>>},
      {"sh2add.uw", binary<Op, shift_add_word<2>>},
      {"sh3add.uw", binary<Op, shift_add_word<3>>},
      {"slli.uw", immediate<Op, left_unsigned_word>},
      {"andn", binary<Op, and_not>},
      {"orn", binary<Op, or_not>},
      {"xnor", binary<Op, xor_not>},
      {"clz", unary<Op, leading_zeros>},
      {"ctz", unary<Op, trailing_zeros>},
      {"cpop", unary<Op, ones>},
      {"clzw", unary<Op, leading_zeros_word>},
      {"ctzw", unary<Op, trailing_zeros_word>},
      {"cpopw", unary<Op, ones_word>},
      {"max", binary<Op, maximum>},
      {"maxu", binary<Op, maximum_unsigned>},
      {"min", binary<Op, minimum>},
      {"minu", binary<Op, minimum_unsigned>},
      {"sext.b", unary<Op, extend_byte>},
      {"sext.h", unary<Op, extend_half>},
      {"zext.h", unary<Op, extend_half_zero>},
      {"rol", binary<Op, rotate_left>},
      {"ror", binary<Op, rotate_right>},
      {"rori", immediate<Op, rotate_right>},
      {"rolw", binary<Op, rotate_left_word>},
      {"rorw", binary<Op, rotate_right_word>},
      {"roriw", immediate<Op, rotate_right_word>},
      {"orc.b", unary<Op, or_within_bytes>},
      {"rev8", unary<Op, reverse_bytes>},
      {"bclr", binary<Op, clear_bit>},
      {"bext", binary<Op, get_bit>},
      {"binv", binary<Op, flip_bit>},
      {"bset", binary<Op, set_bit>},
      {"bclri", immediate<Op, clear_bit>},
      {"bexti", immediate<Op, get_bit>},
      {"binvi", immediate<Op, flip_bit>},
      {"bseti", immediate<Op, set_bit>},
      {"czero.eqz", binary<Op, zero_if_zero>},
      {"czero.nez", binary<Op, zero_unless_zero>},
  });
  return handlers;
}

template std::span<const Handler<PlainOperation>> integer_handlers();
template std::span<const Handler<RecordingOperation>> integer_handlers();

}  // namespace manyscale::cpu::riscv
