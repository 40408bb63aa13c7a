// SPDX-License-Identifier: Apache-2.0
// Instructions on integers, bits and predicates.
#include <bit>

#include "gpu/sass/table.hpp"

namespace manyscale::sass {
namespace {

const std::initializer_list<std::string_view> kIntegerCompare = {"F",  "LT", "EQ", "LE",
                                                                 "GT", "NE", "GE", "T"};
const std::initializer_list<std::string_view> kIntegerCombine = {"AND", "OR", "XOR"};

OperandField carry_out(std::uint8_t first) {
  return predicate(first).written().hidden_when_nothing();
}

OperandField as_signed(OperandField field) {
  field.signed_value = true;
  return field;
}

// The halves of the truth table of PLOP3 stand apart.
void read_truth_table(Operand& operand, const Words& words, Architecture) {
  operand.kind = OperandKind::immediate;
  operand.value = static_cast<std::int64_t>(words.bits(64, 3) | words.bits(72, 5) << 3);
}

void read_predicates(Operand& operand, const Words&, Architecture) {
  operand.kind = OperandKind::predicates;
}

bool is_zero(const Operand& operand) {
  return operand.kind == OperandKind::general && operand.index == kZeroRegister && !operand.negated;
}

// A sign in an instruction that takes a carry is a complement.
void complement_with_carry(Instruction& instruction, Architecture) {
  if (!instruction.has(mod("X"))) {
    return;
  }
  for (Operand& operand : instruction.operands) {
    const bool is_value = operand.kind == OperandKind::general || operand.kind == OperandKind::uniform ||
                          operand.kind == OperandKind::constant;
    if (is_value && operand.negated) {
      operand.negated = false;
      operand.inverted = true;
    }
  }
}

// A multiplication that moves the lower half up is not called a shift.
constexpr std::int64_t kHalfWordShift = 0x10000;

// The disassembler names what a multiply-add by zero, one or a power of two is used for.
void name_multiply_add(Instruction& instruction, Architecture architecture) {
  complement_with_carry(instruction, architecture);
  const Operand& a = instruction.operands[2];
  const Operand& b = instruction.operands[3];
  const Operand& c = instruction.operands[4];
  if (instruction.has(mod("X"))) {
    return;
  }
  Modifier use{};
  if (is_zero(a) && is_zero(b) && c.kind != OperandKind::uniform) {
    use = mod("MOV");
  } else if (b.kind == OperandKind::immediate && b.value == 1) {
    use = mod("IADD");
  } else if (b.kind == OperandKind::immediate && is_zero(c) && b.value > 0 && b.value != kHalfWordShift &&
             std::has_single_bit(static_cast<std::uint32_t>(b.value))) {
    use = mod("SHL");
  } else {
    return;
  }
  for (unsigned at = Instruction::kMaximumModifiers - 1; at > 0; --at) {
    instruction.modifiers[at] = instruction.modifiers[at - 1];
  }
  instruction.modifiers[0] = use;
}

}  // namespace

std::vector<Row> integer_rows() {
  const OperandField a = source_a();
  const OperandField b = as_signed(source_b());
  const OperandField c = as_signed(source_c());
  const OperandField w = as_signed(wide());
  const OperandField plain_b = source_b();
  const OperandField plain_c = source_c();
  const std::vector<ModifierField> lea = {bit(80, "HI"), bit(74, "X"), bit(73, "SX32")};
  return {
      {"IADD3",
       0x010,
       kTwoSources,
       {bit(74, "X")},
       {destination(), carry_out(81), carry_out(84), a.minus(), b.minus(), c.minus(),
        predicate(87, 90).shown_when(74, 1, 1), predicate(77, 80).shown_when(74, 1, 1)},
       70,
       999,
       false,
       {},
       complement_with_carry},
      {"LEA",
       0x011,
       kTwoSources,
       lea,
       {destination(), carry_out(81), a.minus(), plain_b.minus(),
        general(64).shown_when(73, 1, 0).when(80, 1, 1), number(75, 5),
        predicate(87, 90).shown_when(74, 1, 1)},
       70,
       999,
       false,
       {},
       complement_with_carry},
      // The shift is where the sign of the second source would be.
      {"LEA",
       0x011,
       form(2, 3, 7),
       lea,
       {destination(), carry_out(81), a.minus(), plain_b, plain_c.shown_when(73, 1, 0), number(75, 5),
        predicate(87, 90).shown_when(74, 1, 1)},
       70,
       999,
       false,
       {80, 1, 1},
       complement_with_carry},
      {"LOP3",
       0x012,
       kTwoSources,
       {always("LUT"), bit(80, "PAND")},
       {carry_out(81), destination(), a, plain_b, plain_c, number(72, 8), predicate(87, 90)}},
      {"IABS", 0x013, kTwoSources, {}, {destination(), wide()}},
      {"VABSDIFF", 0x014, kThreeSources, {clear_bit(73, "U32")}, {destination(), a, b, c}},
      {"VABSDIFF4", 0x015, kThreeSources, {clear_bit(73, "U8"), bit(75, "ACC")}, {destination(), a, b, c}},
      {"PRMT",
       0x016,
       kThreeSources,
       {choice(72, 3, {"", "F4E", "B4E", "RC8", "ECL", "ECR", "RC16"})},
       {destination(), a, plain_b, plain_c}},
      {"IMNMX", 0x017, kTwoSources, {clear_bit(73, "U32")}, {destination(), a, w, predicate(87, 90)}},
      {"SHF",
       0x019,
       kThreeSources,
       {choice(76, 1, {"L", "R"}), bit(75, "W"), choice(73, 2, {"S64", "U64", "S32", "U32"}), bit(80, "HI")},
       {destination(), a, plain_b, plain_c}},
      {"SGXT", 0x01a, kTwoSources, {bit(75, "W"), clear_bit(73, "U32")}, {destination(), a, wide()}},
      {"BMSK", 0x01b, kTwoSources, {bit(75, "W")}, {destination(), a, wide()}},
      {"PLOP3",
       0x01c,
       form(4),
       {always("LUT")},
       {predicate(81).written(), predicate(84).written(), predicate(87, 90), predicate(77, 80),
        predicate(68, 71).when(67, 1, 0), uniform_predicate(68, 71).when(67, 1, 1),
        composed(read_truth_table), number(16, 8)}},
      {"PLOP3",
       0x01f,
       form(1, 5, 6),
       {always("LUT")},
       {predicate(81).written(), predicate(84).written(), a.suffix(always("SIGN")),
        wide().suffix(always("SIGN")), general(64).suffix(always("SIGN")), number(72, 8), number(16, 8)}},
      {"IMAD",
       0x024,
       kThreeSources,
       {clear_bit(73, "U32"), bit(74, "X")},
       {destination(), carry_out(81), a, b.minus(), c.minus(), predicate(87, 90).shown_when(74, 1, 1)},
       70,
       999,
       false,
       {},
       name_multiply_add},
      {"IMAD",
       0x025,
       kThreeSources,
       {always("WIDE"), clear_bit(73, "U32"), bit(74, "X")},
       {destination(), carry_out(81), a, b.minus(), c.minus(), predicate(87, 90).shown_when(74, 1, 1)},
       70,
       999,
       false,
       {},
       complement_with_carry},
      {"IMAD",
       0x027,
       kThreeSources,
       {always("HI"), clear_bit(73, "U32"), bit(74, "X")},
       {destination(), carry_out(81), a, b.minus(), c.minus(), predicate(87, 90).shown_when(74, 1, 1)},
       70,
       999,
       false,
       {},
       complement_with_carry},
      {"IDP",
       0x026,
       kThreeSources,
       {choice(76, 1, {"4A", "2A"}), choice(77, 1, {"LO", "HI"}).when(76, 1, 1),
        choice(73, 1, {"U8", "S8"}).when(76, 1, 0), choice(73, 1, {"U16", "S16"}).when(76, 1, 1),
        choice(74, 1, {"U8", "S8"})},
       {destination(), a, plain_b, plain_c}},
      {"I2IP",
       0x039,
       kThreeSources,
       {choice(76, 3, {"U8", "S8", "U16", "S16", "U2", "S2", "U4", "S4"}), always("S32"), always("SAT")},
       {destination(), a, plain_b, plain_c.suffix(choice(72, 2, {"", "", "24", "28"}))}},
      {"I2I",
       0x038,
       form(1),
       {choice(76, 2, {"U8", "S8", "U16", "S16"}), always("S32"), always("SAT")},
       {destination(), wide()}},
      {"F2IP",
       0x043,
       form(1),
       {choice(76, 1, {"U8", "S8"}), always("F32"), choice(78, 2, {"", "FLOOR", "CEIL", "TRUNC"}),
        bit(74, "NTZ")},
       {destination(), general(24), general(32), general(64)},
       80},
      {"PMTRIG", 0x001, form(4), {}, {number(32, 16)}},
      {"VIADD", 0x036, kTwoSources, {bit(73, "16x2")}, {destination(), a.minus(), wide().minus()}, 90},
      {"VIMNMX",
       0x048,
       kTwoSources,
       {choice(72, 2, {"U32", "", "U16x2", "S16x2"}), bit(76, "RELU")},
       {destination(), general(24), w, predicate(87, 90)},
       90},
      {"VIMNMX3",
       0x00f,
       kThreeSources,
       {choice(72, 2, {"U32", "", "U16x2", "S16x2"}), bit(76, "RELU")},
       {destination(), general(24), plain_b, plain_c, predicate(87, 90)},
       90},
      {"VIADDMNMX",
       0x046,
       kThreeSources,
       {choice(72, 2, {"U32", "", "U16x2", "S16x2"}), bit(76, "RELU")},
       {destination(), general(24), plain_b.minus(), plain_c.minus(), predicate(87, 90)},
       90},
      {"ISETP",
       0x00c,
       kTwoSources,
       {choice(76, 3, kIntegerCompare), clear_bit(73, "U32"), choice(74, 2, kIntegerCombine), bit(72, "EX")},
       {predicate(81).written(), predicate(84).written(), general(24), w, predicate(87, 90),
        predicate(68, 71).shown_when(72, 1, 1)}},
      {"FLO",
       0x100,
       kTwoSources,
       {clear_bit(73, "U32"), bit(74, "SH")},
       {destination(), carry_out(81), wide().tilde()}},
      {"BREV", 0x101, kTwoSources, {}, {destination(), wide()}},
      {"POPC", 0x109, kTwoSources, {}, {destination(), wide().tilde()}},
      {"P2R",
       0x003,
       form(1, 4, 5, 6),
       {choice(76, 2, {"", "B1", "B2", "B3"})},
       {destination(), composed(read_predicates), general(24), wide()}},
      {"R2P",
       0x004,
       form(1, 4, 5, 6),
       {},
       {composed(read_predicates).written(), general(24).suffix(choice(76, 2, {"", "B1", "B2", "B3"})),
        wide()}},
  };
}

}  // namespace manyscale::sass
