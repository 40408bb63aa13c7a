// SPDX-License-Identifier: Apache-2.0
// The form of the instruction tables: one row for each opcode says where its modifiers and operands stand in
// the 128 bits.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "gpu/sass/instruction.hpp"

namespace manyscale::sass {

// Bits that must have a value for a field to be there.
struct Condition {
  std::uint8_t first = 0;
  std::uint8_t count = 0;  // 0: always
  std::uint64_t value = 0;
  bool equal = true;

  bool holds(const Words& words) const { return count == 0 || (words.bits(first, count) == value) == equal; }
};

// Words after a dot that some bits choose among. An empty word prints nothing; a value without a word is no
// instruction.
struct ModifierField {
  std::uint8_t first = 0;
  std::uint8_t count = 0;
  std::vector<Modifier> words;
  std::uint16_t since = 0;
  std::uint16_t until = 999;
  Condition condition{};
  Condition second_condition;

  ModifierField on(std::uint16_t first_architecture, std::uint16_t last_architecture = 999) const;
  ModifierField when(std::uint8_t at, std::uint8_t bits, std::uint64_t value) const;
  ModifierField unless(std::uint8_t at, std::uint8_t bits, std::uint64_t value) const;
};

ModifierField bit(std::uint8_t position, std::string_view word);        // the word if the bit is set
ModifierField clear_bit(std::uint8_t position, std::string_view word);  // the word if it is not
ModifierField choice(std::uint8_t first, std::uint8_t count, std::initializer_list<std::string_view> words);
ModifierField always(std::string_view word);

// Where the parts of a memory address stand.
struct AddressLayout {
  std::uint8_t offset = 40;  // a signed number
  std::uint8_t offset_bits = 24;
  std::uint8_t base = 24;       // the register
  std::uint8_t uniform = 0;     // a uniform register that is added, if bit 91 is set; 0: there is none
  std::uint8_t wide_base = 0;   // the bit that makes a base beside a uniform register one of 64 bits, not 32
  std::uint8_t descriptor = 0;  // the bit that makes the uniform register a descriptor (from sm_80 on)
  std::uint8_t scale = 0;       // two bits: the register counts units of 1, 4, 8 or 16 bytes
  bool long_without_uniform = false;  // without bit 91 the offset takes all of 32..63
  bool indexed = false;               // the base is printed even if it is RZ
  bool without_zero_uniform = false;  // URZ is no register that is added
};

// One operand and where it stands.
struct OperandField {
  enum class Position : std::uint8_t {
    fixed,  // a register, predicate, number … at `first`
    wide,  // the slot of 32 bits at 32, which the form makes a register, number, constant or uniform register
    narrow,  // the register at 64
    second,  // source B of three: wide or narrow as the form says
    third,   // source C of three: the other of the two
  };
  enum class Hide : std::uint8_t { never, when_nothing, when_zero };
  enum class Sign : std::uint8_t { none, minus, tilde };

  Position position = Position::fixed;
  OperandKind kind = OperandKind::none;
  std::uint8_t first = 0;
  std::uint8_t bits = 0;
  bool signed_value = false;
  std::uint8_t shift = 0;     // the number is in units of 2^shift
  std::uint8_t negate = 0;    // the bit that negates, or 0
  std::uint8_t absolute = 0;  // the bit that takes the absolute value, or 0
  std::uint8_t reuse = 0;     // the bit that keeps the operand for reuse, or 0
  Sign sign = Sign::none;
  bool takes_absolute = false;
  Hide hide = Hide::never;
  bool is_written = false;
  Operand::Format format = Operand::Format::integer;
  std::uint16_t since = 0;
  std::uint16_t until = 999;
  Condition condition{};      // the operand is there
  Condition shown_condition;  // the operand is printed
  std::vector<ModifierField> suffixes;
  AddressLayout layout;
  void (*read)(Operand&, const Words&, Architecture) = nullptr;  // for addresses and other composed operands

  OperandField written() const;
  OperandField hidden_when_nothing() const;  // not printed if RZ, URZ, PT
  OperandField hidden_when_zero() const;
  OperandField negated_by(std::uint8_t position) const;   // -x, !p
  OperandField inverted_by(std::uint8_t position) const;  // ~x
  OperandField minus() const;                             // sources of arithmetic: the slot's own sign bit
  OperandField minus_and_absolute() const;
  OperandField tilde() const;
  OperandField as(Operand::Format meant) const;
  OperandField on(std::uint16_t first_architecture, std::uint16_t last_architecture = 999) const;
  OperandField when(std::uint8_t at, std::uint8_t bits_, std::uint64_t value) const;
  OperandField shown_when(std::uint8_t at, std::uint8_t bits_, std::uint64_t value) const;
  OperandField shown_unless(std::uint8_t at, std::uint8_t bits_, std::uint64_t value) const;
  OperandField suffix(ModifierField field) const;
};

OperandField general(std::uint8_t first);
OperandField uniform(std::uint8_t first);
OperandField predicate(std::uint8_t first, std::uint8_t negate = 0);
OperandField uniform_predicate(std::uint8_t first, std::uint8_t negate = 0);
OperandField convergence(std::uint8_t first);
OperandField number(std::uint8_t first, std::uint8_t bits);
OperandField signed_number(std::uint8_t first, std::uint8_t bits);
OperandField address(AddressLayout layout);
OperandField special(std::uint8_t first);
OperandField target(std::uint8_t first, std::uint8_t bits);
OperandField composed(void (*read)(Operand&, const Words&, Architecture));
OperandField destination();          // Rd at 16
OperandField uniform_destination();  // URd at 16
OperandField source_a();
OperandField wide();
OperandField late();  // the wide slot of instructions whose second source counts as their third
OperandField narrow();
OperandField source_b();
OperandField source_c();

// What one opcode looks like. `code` is bits 0..8, `forms` a set of values of bits 9..11.
struct Row {
  std::string_view name;
  std::uint16_t code = 0;
  std::uint8_t forms = 0;
  std::vector<ModifierField> modifiers;
  std::vector<OperandField> operands;
  std::uint16_t since = 70;
  std::uint16_t until = 999;
  bool is_uniform = false;  // an instruction of the uniform datapath: its registers are UR, its guard a UP
  Condition condition{};
  // Names that depend on several fields at once; without an opcode behind it, it is no instruction.
  void (*finish)(Instruction&, Architecture) = nullptr;
};

// Sets of forms: form(1, 4, 5) is register, number and constant in the wide slot.
template <class... Numbers>
constexpr std::uint8_t form(Numbers... numbers) {
  return static_cast<std::uint8_t>(((1U << numbers) | ...));
}
constexpr std::uint8_t kThreeSources = form(1, 2, 3, 4, 5, 6, 7);
constexpr std::uint8_t kTwoSources = form(1, 4, 5, 6);
constexpr std::uint8_t kTwoSourcesLate = form(1, 2, 3, 7);
constexpr std::uint8_t kUniformSources = form(1, 2, 4);

// The tables, by kind.
std::vector<Row> integer_rows();
std::vector<Row> float_rows();
std::vector<Row> half_rows();
std::vector<Row> conversion_rows();
std::vector<Row> move_rows();
std::vector<Row> memory_rows();
std::vector<Row> atomic_rows();
std::vector<Row> async_rows();
std::vector<Row> control_rows();
std::vector<Row> warp_rows();
std::vector<Row> uniform_rows();
std::vector<Row> tensor_rows();
std::vector<Row> texture_rows();

// The row for those bits, or null.
const Row* find_row(const Words& words, Architecture architecture);

}  // namespace manyscale::sass
