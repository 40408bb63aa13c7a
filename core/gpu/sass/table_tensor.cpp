// SPDX-License-Identifier: Apache-2.0
// Matrix multiply-accumulate instructions.
#include "gpu/sass/table.hpp"

namespace manyscale::sass {

namespace {

// Products of a warp group: 64 rows, and so many columns and steps as its opcode counts them.
void shape_product(Instruction& instruction, Architecture) {
  const auto number = static_cast<std::uint16_t>(instruction.words.bits(53, 6));
  // Up to 32 columns in steps of 8, then of 16.
  const auto stepped_columns = [](unsigned at) { return at < 4 ? 8 * (at + 1) : 16 * (at - 1); };
  unsigned columns = 8U * ((number & 31U) + 1U);
  unsigned depth = 32;
  bool exists = number < 32;
  switch (instruction.opcode) {
    case op("HGMMA"):
      depth = number < 32 ? 16 : 8;
      exists = true;
      break;
    case op("IGMMA"):
      columns = stepped_columns(number / 3);
      exists = number % 3 == 0 && columns <= 256;
      break;
    case op("BGMMA"):
      columns = stepped_columns(number);
      depth = 256;
      exists = columns <= 256;
      break;
    default:
      break;
  }
  if (!exists) {
    instruction.opcode = {};
    return;
  }
  instruction.shape = {64, static_cast<std::uint16_t>(columns), static_cast<std::uint16_t>(depth)};
}

// The matrices in shared memory, both or only the second.
void read_matrices(Operand& operand, const Words& words, Architecture) {
  operand.kind = OperandKind::matrices;
  operand.index = static_cast<std::uint8_t>(words.bits(24, 6));
}

void read_second_matrix(Operand& operand, const Words& words, Architecture) {
  operand.kind = OperandKind::matrices;
  operand.index = static_cast<std::uint8_t>(words.bits(32, 6));
}

// Whether what was there is added to; it is written with its bits inverted.
void read_adds(Operand& operand, const Words& words, Architecture) {
  operand.kind = OperandKind::uniform_predicate;
  operand.index = static_cast<std::uint8_t>(7 - words.bits(87, 3));
  operand.negated = words.bit(90);
  operand.shown = operand.index != kTruePredicate || operand.negated;
}

// The group of products that this one ends.
void read_group(Operand& operand, const Words&, Architecture) {
  operand.kind = OperandKind::word;
  operand.suffix[0] = mod("gsb0");
}

void append_products(std::vector<Row>& rows) {
  const ModifierField negate_first = bit(72, "negA");
  const ModifierField negate_second = bit(63, "negB");
  const ModifierField turn_first = bit(61, "tnspA");
  const ModifierField turn_second = bit(62, "tnspB");
  const OperandField adds = composed(read_adds);
  const OperandField group = composed(read_group).shown_when(84, 3, 0);
  const auto add = [&](std::string_view name, std::uint16_t code,
                       const std::vector<ModifierField>& modifiers) {
    const Condition dense{73, 1, 0};
    rows.push_back({name,
                    code,
                    form(4),
                    modifiers,
                    {destination(),
                     composed(read_matrices)
                         .suffix(negate_first)
                         .suffix(negate_second)
                         .suffix(turn_first)
                         .suffix(turn_second),
                     general(64), adds, group},
                    90,
                    999,
                    false,
                    dense,
                    shape_product});
    rows.push_back(
        {name,
         code,
         form(6),
         modifiers,
         {destination(), general(24).negated_by(72),
          composed(read_second_matrix).suffix(negate_second).suffix(turn_second), general(64), adds, group},
         90,
         999,
         false,
         dense,
         shape_product});
  };
  const ModifierField sum = choice(75, 1, {"F16", "F32"});
  add("HGMMA", 0x1f0, {sum, choice(76, 2, {"", "BF16", "TF32"})});
  add("IGMMA", 0x1f1, {choice(76, 2, {"U8", "S8"}), choice(82, 2, {"U8", "S8"}), bit(75, "SAT")});
  add("BGMMA", 0x1f2, {choice(77, 2, {"?", "?", "AND"}), choice(80, 1, {"?", "POPC"})});
  add("QGMMA", 0x1f3, {sum, choice(76, 1, {"E4M3", "E5M2"}), choice(77, 1, {"E4M3", "E5M2"})});
  rows.push_back(
      {"WARPGROUP", 0x1c5, form(4), {choice(79, 1, {"ARRIVE", "WAIT"})}, {}, 90, 999, false, {80, 1, 0}});
  rows.push_back({"WARPGROUP",
                  0x1c5,
                  form(4),
                  {always("DEPBAR"), choice(47, 1, {"?", "LE"})},
                  {composed(read_group), number(72, 3)},
                  90,
                  999,
                  false,
                  {80, 1, 1}});
}

}  // namespace

std::vector<Row> tensor_rows() {
  const OperandField a = general(24).suffix(choice(73, 1, {"ROW", "COL"}));
  const OperandField b = general(32).suffix(choice(74, 1, {"ROW", "COL"}));
  const OperandField c = general(64);
  const ModifierField rounding = choice(78, 2, {"", "RM", "RP", "RZ"});
  const auto with_sign = [](OperandField field, std::uint8_t negate, std::uint8_t absolute) {
    field.negate = negate;
    field.absolute = absolute;
    return field.minus_and_absolute();
  };
  // Doubles may be negated on the way.
  const std::vector<OperandField> doubles = {destination(), with_sign(general(24), 72, 73),
                                             with_sign(general(32), 63, 62), with_sign(c, 75, 74)};
  // Which of four numbers are there, two bits for each of two: the register, and which threads' registers.
  OperandField metadata = general(40);
  metadata.reuse = 50;
  const OperandField selector = number(48, 2);
  const ModifierField half_type = choice(82, 2, {"", "BF16", "TF32"});
  const OperandField on_condition = composed(read_adds).on(86);
  std::vector<Row> rows = {
      {"HMMA",
       0x036,
       form(1),
       {always("884"), choice(76, 1, {"F16", "F32"}), choice(78, 1, {"F16", "F32"}),
        choice(79, 2, {"STEP0", "STEP1", "STEP2", "STEP3"})},
       {destination(), a, b, c}},
      {"HMMA",
       0x03c,
       form(1),
       {choice(75, 1, {"1688", "16816"}).when(78, 1, 0), choice(75, 1, {"1684", "?"}).when(78, 1, 1),
        choice(76, 1, {"F16", "F32"}), half_type},
       {destination(), general(24), general(32), c, on_condition},
       70,
       999,
       false,
       {73, 1, 0}},
      {"HMMA",
       0x03c,
       form(1),
       {always("SP"), choice(75, 1, {"1688", "16816"}).when(78, 1, 0),
        choice(75, 1, {"?", "16832"}).when(78, 1, 1), choice(76, 1, {"F16", "F32"}), half_type},
       {destination(), general(24), general(32), c, metadata, selector, on_condition},
       80,
       999,
       false,
       {73, 1, 1}},
      {"QMMA",
       0x07a,
       form(1),
       {bit(80, "SP"), choice(75, 2, {"16816", "16832"}).when(80, 1, 0),
        choice(75, 2, {"?", "16832", "16864"}).when(80, 1, 1), choice(77, 1, {"F16", "F32"}),
        choice(78, 1, {"E4M3", "E5M2"}), choice(79, 1, {"E4M3", "E5M2"})},
       {destination(), a.negated_by(72), b, c, metadata.when(80, 1, 1), selector.when(80, 1, 1),
        on_condition},
       89,
       89},
      {"IMMA",
       0x037,
       form(1),
       {choice(75, 1, {"8816", "?"}).when(85, 2, 0), choice(75, 1, {"8832", "?"}).when(85, 2, 1),
        choice(75, 1, {"16816", "16832"}).when(85, 2, 2), choice(75, 1, {"16864", "?"}).when(85, 2, 3),
        choice(76, 1, {"U8", "S8"}).when(83, 1, 0), choice(76, 1, {"U4", "S4"}).when(83, 1, 1),
        choice(78, 1, {"U8", "S8"}).when(84, 1, 0), choice(78, 1, {"U4", "S4"}).when(84, 1, 1),
        bit(82, "SAT")},
       {destination(), a, b, c},
       70,
       999,
       false,
       {72, 1, 0}},
      {"IMMA",
       0x037,
       form(1),
       {always("SP"), choice(75, 1, {"?", "16832"}).when(85, 2, 2),
        choice(75, 1, {"16864", "168128"}).when(85, 2, 3), choice(85, 2, {"?", "?", "", ""}),
        choice(76, 1, {"U8", "S8"}).when(83, 1, 0), choice(76, 1, {"U4", "S4"}).when(83, 1, 1),
        choice(78, 1, {"U8", "S8"}).when(84, 1, 0), choice(78, 1, {"U4", "S4"}).when(84, 1, 1),
        bit(82, "SAT")},
       {destination(), a, b, c, metadata, selector},
       80,
       999,
       false,
       {72, 1, 1}},
      {"BMMA",
       0x03d,
       form(1),
       {choice(75, 2, {"88128", "168128", "168256"}), choice(78, 1, {"XOR", "AND"}), bit(80, "POPC")},
       {destination(), a, b, c},
       75},
      {"DMMA", 0x03f, form(1), {always("884"), rounding}, doubles, 80, 89},
      {"DMMA",
       0x03f,
       form(1),
       {choice(76, 2, {"8x8x4", "16x8x4", "16x8x8", "16x8x16"}), rounding},
       doubles,
       90},
  };
  append_products(rows);
  return rows;
}

}  // namespace manyscale::sass
