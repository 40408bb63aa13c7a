// SPDX-License-Identifier: Apache-2.0
// Textures and surfaces.
#include <tuple>

#include "gpu/sass/table.hpp"
#include "gpu/sass/table_parts.hpp"

namespace manyscale::sass {
namespace {

void read_query(Operand& operand, const Words&, Architecture) {
  operand.kind = OperandKind::word;
  operand.suffix[0] = mod("TEX_HEADER_DIMENSION");
}

// The shape of the texture, printed among the operands.
void read_shape(Operand& operand, const Words& words, Architecture) {
  static constexpr Modifier kShapes[] = {mod("1D"),       mod("2D"),       mod("3D"), mod("CUBE"),
                                         mod("ARRAY_1D"), mod("ARRAY_2D"), mod("?"),  mod("ARRAY_CUBE")};
  operand.kind = OperandKind::word;
  operand.suffix[0] = kShapes[words.bits(61, 3)];
}

// Which of the four components are wanted: printed unless all are.
OperandField components() {
  return number(72, 4).shown_unless(72, 4, 15);
}

// A register of an instruction that keeps no operands for reuse, whatever its bits say.
OperandField texture_register(std::uint8_t first) {
  OperandField made = general(first);
  made.reuse = 0;
  return made;
}

struct Layout {
  std::uint8_t form;
  std::uint16_t since;
  std::uint16_t until;
  std::vector<OperandField> texture;  // which one: a number, or a uniform register
};

// The coordinates of a surface, in registers from this one on.
void read_coordinates(Operand& operand, const Words& words, Architecture) {
  operand.kind = OperandKind::address;
  operand.index = static_cast<std::uint8_t>(words.bits(24, 8));
}

void append_surfaces(std::vector<Row>& rows) {
  const ModifierField shape = choice(61, 3, {"1D", "1D_BUFFER", "1D_ARRAY", "2D", "2D_ARRAY", "3D"});
  const ModifierField outside = choice(59, 2, {"IGN", "", "TRAP"});
  const auto with_order = [&](std::vector<ModifierField> fields) {
    append(fields, memory_order());
    fields.push_back(outside);
    return fields;
  };
  const std::vector<ModifierField> bits = with_order({always("D"), always("BA"), shape, access_size()});
  const std::vector<ModifierField> updates =
      with_order({always("D"), always("BA"), shape,
                  choice(87, 3, {"ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR"}),
                  choice(73, 3, {"", "S32", "U64"})});
  const OperandField found = predicate(81).written().hidden_when_nothing();
  const OperandField at = composed(read_coordinates);
  const std::vector<OperandField> numbered = {number(54, 5), number(40, 14)};
  const std::vector<OperandField> named = {uniform(40), number(46, 8)};
  const auto add = [&](std::string_view name, std::uint16_t code, const std::vector<ModifierField>& modifiers,
                       const std::vector<OperandField>& operands, std::uint8_t numbered_form) {
    for (const auto& [which, form_of, since] :
         {std::tuple{numbered, numbered_form, 70}, std::tuple{named, form(7), 90}}) {
      std::vector<OperandField> all = operands;
      all.insert(all.end(), which.begin(), which.end());
      rows.push_back({name, code, form_of, modifiers, all, static_cast<std::uint16_t>(since)});
    }
  };
  add("SULD", 0x199, bits, {found, destination(), at}, form(5));
  add("SUST", 0x19d, bits, {at, general(32)}, form(5));
  add("SUST", 0x19b, with_order({always("P"), shape}), {at, general(32)}, form(5));
  add("SURED", 0x19f, updates, {at, general(32)}, form(2));
}

}  // namespace

std::vector<Row> texture_rows() {
  const OperandField found = predicate(81).written().hidden_when_nothing();
  const OperandField second = texture_register(64).written();  // results three and four
  const OperandField shape = composed(read_shape);
  const ModifierField scalar = bit(60, "SCR");
  const ModifierField half = bit(79, "F16");
  const ModifierField half_rounding = bit(79, "RN");
  const ModifierField level = choice(87, 3, {"", "LZ", "LB", "LL", "LC", "LB.LC"});
  const ModifierField offsets = bit(76, "AOFFI");
  const ModifierField compare = bit(78, "DC");
  const ModifierField no_dependence = bit(90, "NODEP");
  std::vector<Row> rows;
  for (const Layout& layout :
       {Layout{form(5), 70, 999, {number(54, 5), number(40, 14)}},
        Layout{form(7), 90, 999, {uniform(40), number(46, 8)}}, Layout{form(1), 70, 999, {}}}) {
    const ModifierField bindless = bit(59, "B");
    const std::uint16_t unbound = layout.form == form(1) ? 1 : 0;
    const auto add = [&](std::string_view name, std::uint16_t code, std::vector<ModifierField> modifiers,
                         std::vector<OperandField> first, std::vector<OperandField> last) {
      std::vector<OperandField> operands = std::move(first);
      operands.insert(operands.end(), layout.texture.begin(), layout.texture.end());
      operands.insert(operands.end(), last.begin(), last.end());
      rows.push_back({name, static_cast<std::uint16_t>(code + unbound), layout.form, std::move(modifiers),
                      std::move(operands), layout.since, layout.until});
    };
    const std::vector<OperandField> sources = {found, second, destination(), texture_register(24),
                                               texture_register(32).hidden_when_nothing()};
    add("TEX", 0x160,
        {scalar, bindless, half, half_rounding, level, offsets, compare, bit(77, "NDV"), no_dependence},
        sources, {shape, components()});
    add("TLD4", 0x163,
        {scalar, bindless, half, half_rounding, choice(87, 2, {"R", "G", "B", "A"}),
         choice(76, 2, {"", "AOFFI", "PTP"}), compare, no_dependence},
        sources, {shape, components()});
    add("TLD", 0x166,
        {scalar, bindless, half, half_rounding, level, offsets, bit(78, "MS"), bit(77, "CL"), no_dependence},
        sources, {shape, components()});
    add("TXD", 0x16c, {bindless, half, half_rounding, offsets, no_dependence}, sources,
        {shape, components()});
    add("TXQ", 0x16f, {bindless, no_dependence},
        {second, destination(), texture_register(24), composed(read_query)}, {components()});
  }
  append_surfaces(rows);
  return rows;
}

}  // namespace manyscale::sass
