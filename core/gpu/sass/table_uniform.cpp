// SPDX-License-Identifier: Apache-2.0
// Instructions of the uniform datapath (from sm_75 on): one value for all lanes of a warp.
#include <utility>

#include "gpu/sass/table.hpp"

namespace manyscale::sass {
namespace {

// Most are the instruction of the same name on uniform registers, with this bit of the opcode set.
constexpr std::uint16_t kUniformCode = 0x080;
constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"IADD3", "UIADD3"}, {"LEA", "ULEA"},   {"LOP3", "ULOP3"},   {"PRMT", "UPRMT"},
    {"SHF", "USHF"},     {"SGXT", "USGXT"}, {"BMSK", "UBMSK"},   {"IMAD", "UIMAD"},
    {"ISETP", "UISETP"}, {"SEL", "USEL"},   {"PLOP3", "UPLOP3"},
};

void read_uniform_predicates(Operand& operand, const Words&, Architecture) {
  operand.kind = OperandKind::uniform_predicates;
}

// c[bank][UR+offset]
void read_uniform_entry(Operand& operand, const Words& words, Architecture) {
  operand.kind = OperandKind::constant;
  operand.index = kZeroRegister;
  operand.uniform = static_cast<std::uint8_t>(words.bits(24, 6));
  operand.bank = static_cast<std::uint8_t>(words.bits(54, 5));
  operand.value = static_cast<std::int16_t>(words.bits(38, 16));
}

void add(std::vector<Row>& rows, Row row) {
  row.since = 75;
  row.is_uniform = true;
  rows.push_back(std::move(row));
}

}  // namespace

std::vector<Row> uniform_rows() {
  std::vector<Row> rows;
  std::vector<Row> plain = integer_rows();
  for (Row& row : move_rows()) {
    plain.push_back(std::move(row));
  }
  for (Row& row : plain) {
    for (const auto& [name, uniform_name] : kNames) {
      if (row.name == name && row.code != 0x01f) {
        row.name = uniform_name;
        row.code |= kUniformCode;
        row.forms &= kUniformSources;
        if (row.code == 0x0a4) {
          row.finish = nullptr;  // what a multiply-add is used for is not named here
        }
        add(rows, std::move(row));
        break;
      }
    }
  }
  const std::vector<ModifierField> size = {choice(73, 3, {"U8", "S8", "U16", "S16", "", "64", "128"})};
  add(rows, {"UMOV", 0x082, form(4, 6), {}, {uniform_destination(), wide()}});
  add(rows, {"UFLO",
             0x0bd,
             form(1, 4),
             {clear_bit(73, "U32"), bit(74, "SH")},
             {uniform_destination(), predicate(81).written().hidden_when_nothing(), wide().tilde()}});
  add(rows, {"UBREV", 0x0be, form(1, 4), {}, {uniform_destination(), wide()}});
  add(rows, {"UPOPC", 0x0bf, form(1, 4), {}, {uniform_destination(), wide().tilde()}});
  const ModifierField byte = choice(76, 2, {"", "B1", "B2", "B3"});
  add(rows, {"UP2UR",
             0x083,
             form(4, 6),
             {byte},
             {uniform_destination(), composed(read_uniform_predicates), uniform(24), wide()}});
  add(rows, {"UR2UP",
             0x084,
             form(4, 6),
             {},
             {composed(read_uniform_predicates).written(), uniform(24).suffix(byte), wide()}});
  add(rows, {"ULDC", 0x0b9, form(5), size, {uniform_destination(), wide()}});
  add(rows, {"ULDC", 0x0bb, form(5), size, {uniform_destination(), composed(read_uniform_entry)}});
  add(rows, {"S2UR", 0x1c3, form(4), {}, {uniform_destination(), special(72)}});
  rows.push_back({"R2UR",
                  0x1c2,
                  form(1),
                  {},
                  {predicate(81).written().hidden_when_nothing(), uniform_destination(), general(24)},
                  75});
  rows.push_back({"R2UR",
                  0x0ca,
                  form(1),
                  {bit(84, "OR")},
                  {predicate(81).written().hidden_when_nothing(), uniform_destination(), general(24)},
                  90});
  rows.push_back({"REDUX",
                  0x1c4,
                  form(1),
                  {choice(78, 3, {"", "OR", "XOR", "SUM", "MIN", "MAX"}), bit(73, "S32")},
                  {uniform_destination(), general(24)},
                  80});
  rows.push_back(
      {"VOTEU",
       0x086,
       form(4),
       {choice(72, 2, {"ALL", "ANY", "EQ"})},
       {uniform_destination().hidden_when_nothing(), uniform_predicate(81).written(), predicate(87, 90)},
       75});
  return rows;
}

}  // namespace manyscale::sass
