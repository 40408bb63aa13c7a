// SPDX-License-Identifier: Apache-2.0
// How the tables are written down and looked up.
#include "gpu/sass/table.hpp"

#include <algorithm>
#include <array>

namespace manyscale::sass {
namespace {

Modifier word(std::string_view name) {
  return static_cast<Modifier>(position_of(kModifierNames, name));
}

}  // namespace

ModifierField ModifierField::on(std::uint16_t first_architecture, std::uint16_t last_architecture) const {
  ModifierField copy = *this;
  copy.since = first_architecture;
  copy.until = last_architecture;
  return copy;
}

ModifierField ModifierField::when(std::uint8_t at, std::uint8_t bits, std::uint64_t value) const {
  ModifierField copy = *this;
  (copy.condition.count == 0 ? copy.condition : copy.second_condition) = {at, bits, value, true};
  return copy;
}

ModifierField ModifierField::unless(std::uint8_t at, std::uint8_t bits, std::uint64_t value) const {
  ModifierField copy = *this;
  (copy.condition.count == 0 ? copy.condition : copy.second_condition) = {at, bits, value, false};
  return copy;
}

ModifierField choice(std::uint8_t first, std::uint8_t count, std::initializer_list<std::string_view> words) {
  ModifierField field;
  field.first = first;
  field.count = count;
  for (const std::string_view name : words) {
    field.words.push_back(word(name));
  }
  return field;
}

ModifierField bit(std::uint8_t position, std::string_view name) {
  return choice(position, 1, {"", name});
}
ModifierField clear_bit(std::uint8_t position, std::string_view name) {
  return choice(position, 1, {name, ""});
}
ModifierField always(std::string_view name) {
  return choice(0, 0, {name});
}

OperandField OperandField::written() const {
  OperandField copy = *this;
  copy.is_written = true;
  return copy;
}

OperandField OperandField::hidden_when_nothing() const {
  OperandField copy = *this;
  copy.hide = Hide::when_nothing;
  return copy;
}

OperandField OperandField::hidden_when_zero() const {
  OperandField copy = *this;
  copy.hide = Hide::when_zero;
  return copy;
}

OperandField OperandField::negated_by(std::uint8_t position) const {
  OperandField copy = *this;
  copy.negate = position;
  copy.sign = Sign::minus;
  return copy;
}

OperandField OperandField::inverted_by(std::uint8_t position) const {
  OperandField copy = *this;
  copy.negate = position;
  copy.sign = Sign::tilde;
  return copy;
}

OperandField OperandField::minus() const {
  OperandField copy = *this;
  copy.sign = Sign::minus;
  return copy;
}

OperandField OperandField::minus_and_absolute() const {
  OperandField copy = minus();
  copy.takes_absolute = true;
  return copy;
}

OperandField OperandField::tilde() const {
  OperandField copy = *this;
  copy.sign = Sign::tilde;
  return copy;
}

OperandField OperandField::as(Operand::Format meant) const {
  OperandField copy = *this;
  copy.format = meant;
  return copy;
}

OperandField OperandField::on(std::uint16_t first_architecture, std::uint16_t last_architecture) const {
  OperandField copy = *this;
  copy.since = first_architecture;
  copy.until = last_architecture;
  return copy;
}

OperandField OperandField::when(std::uint8_t at, std::uint8_t bits_, std::uint64_t value) const {
  OperandField copy = *this;
  copy.condition = {at, bits_, value, true};
  return copy;
}

OperandField OperandField::shown_when(std::uint8_t at, std::uint8_t bits_, std::uint64_t value) const {
  OperandField copy = *this;
  copy.shown_condition = {at, bits_, value, true};
  return copy;
}

OperandField OperandField::shown_unless(std::uint8_t at, std::uint8_t bits_, std::uint64_t value) const {
  OperandField copy = *this;
  copy.shown_condition = {at, bits_, value, false};
  return copy;
}

OperandField OperandField::suffix(ModifierField field) const {
  OperandField copy = *this;
  copy.suffixes.push_back(std::move(field));
  return copy;
}

namespace {

OperandField field(OperandField::Position position, OperandKind kind, std::uint8_t first, std::uint8_t bits) {
  OperandField made;
  made.position = position;
  made.kind = kind;
  made.first = first;
  made.bits = bits;
  return made;
}

OperandField fixed(OperandKind kind, std::uint8_t first, std::uint8_t bits) {
  return field(OperandField::Position::fixed, kind, first, bits);
}

}  // namespace

OperandField general(std::uint8_t first) {
  OperandField made = fixed(OperandKind::general, first, 8);
  made.reuse = first == 24 ? 122 : first == 32 ? 123 : first == 64 ? 124 : 0;
  return made;
}

OperandField uniform(std::uint8_t first) {
  return fixed(OperandKind::uniform, first, 6);
}

OperandField predicate(std::uint8_t first, std::uint8_t negate) {
  OperandField made = fixed(OperandKind::predicate, first, 3);
  return negate != 0 ? made.negated_by(negate) : made;
}

OperandField uniform_predicate(std::uint8_t first, std::uint8_t negate) {
  OperandField made = fixed(OperandKind::uniform_predicate, first, 3);
  return negate != 0 ? made.negated_by(negate) : made;
}

OperandField convergence(std::uint8_t first) {
  return fixed(OperandKind::convergence, first, 4);
}
OperandField number(std::uint8_t first, std::uint8_t bits) {
  return fixed(OperandKind::immediate, first, bits);
}

OperandField signed_number(std::uint8_t first, std::uint8_t bits) {
  OperandField made = number(first, bits);
  made.signed_value = true;
  return made;
}

OperandField composed(void (*read)(Operand&, const Words&, Architecture)) {
  OperandField made;
  made.read = read;
  return made;
}

OperandField address(AddressLayout layout) {
  OperandField made = fixed(OperandKind::address, 0, 0);
  made.layout = layout;
  return made;
}

OperandField special(std::uint8_t first) {
  return fixed(OperandKind::special, first, 8);
}

OperandField target(std::uint8_t first, std::uint8_t bits) {
  OperandField made = fixed(OperandKind::target, first, bits);
  made.signed_value = true;
  return made;
}

OperandField destination() {
  return fixed(OperandKind::general, 16, 8).written();
}
OperandField uniform_destination() {
  return uniform(16).written();
}

OperandField source_a() {
  OperandField made = general(24);
  made.negate = 72;
  made.absolute = 73;
  return made;
}

namespace {

// Where the bits that keep a source's register for reuse stand, by the source and not by its slot.
constexpr std::uint8_t kReuseB = 123;
constexpr std::uint8_t kReuseC = 124;

OperandField source(OperandField::Position position, std::uint8_t first, std::uint8_t reuse) {
  OperandField made = field(position, OperandKind::general, first, 8);
  made.reuse = reuse;
  return made;
}

}  // namespace

OperandField wide() {
  return source(OperandField::Position::wide, 32, kReuseB);
}
OperandField late() {
  return source(OperandField::Position::wide, 32, kReuseC);
}
OperandField narrow() {
  return source(OperandField::Position::narrow, 64, kReuseC);
}
OperandField source_b() {
  return source(OperandField::Position::second, 32, kReuseB);
}
OperandField source_c() {
  return source(OperandField::Position::third, 64, kReuseC);
}

namespace {

// All rows, found by the twelve bits of opcode and form.
class Table {
 public:
  Table() {
    for (auto* rows :
         {integer_rows, float_rows, half_rows, conversion_rows, move_rows, memory_rows, atomic_rows,
          async_rows, control_rows, warp_rows, uniform_rows, tensor_rows, texture_rows}) {
      for (Row& row : rows()) {
        rows_.push_back(std::move(row));
      }
    }
    for (std::size_t at = 0; at < rows_.size(); ++at) {
      for (unsigned form = 0; form < 8; ++form) {
        if ((rows_[at].forms >> form & 1) != 0) {
          by_code_[form << 9 | rows_[at].code].push_back(static_cast<std::uint16_t>(at));
        }
      }
    }
  }

  const Row* find(const Words& words, Architecture architecture) const {
    for (const std::uint16_t at : by_code_[words.bits(0, 12)]) {
      const Row& row = rows_[at];
      if (row.since <= architecture.number && architecture.number <= row.until &&
          row.condition.holds(words)) {
        return &row;
      }
    }
    return nullptr;
  }

 private:
  std::vector<Row> rows_;
  std::array<std::vector<std::uint16_t>, 4096> by_code_;
};

}  // namespace

const Row* find_row(const Words& words, Architecture architecture) {
  static const Table table;
  return table.find(words, architecture);
}

}  // namespace manyscale::sass
