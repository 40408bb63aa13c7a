// SPDX-License-Identifier: Apache-2.0
// Reads an instruction by its row of the tables.
#include "gpu/sass/instruction.hpp"
#include "gpu/sass/operand_sizes.hpp"
#include "gpu/sass/table.hpp"

namespace manyscale::sass {
namespace {

using Position = OperandField::Position;

constexpr unsigned kUniformBit = 91;  // set where a constant's bank is named by a uniform register

constexpr std::uint16_t kOldest = 70;
constexpr std::uint16_t kNewest = 90;
constexpr std::uint16_t kFirstWithDescriptors = 80;
// Before, the disassembler leaves them out, and takes the position of a constant as a signed number.
constexpr std::uint16_t kFirstNamingDescriptors = 90;

std::int64_t sign_extended(std::uint64_t value, unsigned bits) {
  const unsigned unused = 64 - bits;
  return static_cast<std::int64_t>(value << unused) >> unused;
}

// The word that a field chooses; false where it chooses none that exists.
bool chosen(const ModifierField& field, const Words& words, Modifier& word) {
  const std::uint64_t value = words.bits(field.first, field.count);
  if (value >= field.words.size()) {
    return false;
  }
  word = field.words[value];
  return name_of(word) != "?";
}

bool is_there(const ModifierField& field, const Words& words, Architecture architecture) {
  return field.since <= architecture.number && architecture.number <= field.until &&
         field.condition.holds(words) && field.second_condition.holds(words);
}

class RowReader {
 public:
  RowReader(const Words& words, Architecture architecture, Instruction& instruction)
      : words_{words}, architecture_{architecture}, instruction_{instruction} {}

  bool read(const Row& row) {
    row_ = &row;
    const std::uint64_t guard = words_.bits(12, 4);
    instruction_.guard = guard & 7;
    instruction_.guard_negated = guard >> 3 != 0;
    instruction_.guard_uniform = row.is_uniform;
    unsigned modifiers = 0;
    for (const ModifierField& field : row.modifiers) {
      if (!is_there(field, words_, architecture_)) {
        continue;
      }
      Modifier word{};
      if (!chosen(field, words_, word) || modifiers == Instruction::kMaximumModifiers) {
        return false;
      }
      if (word != Modifier{}) {
        instruction_.modifiers[modifiers++] = word;
      }
    }
    for (const OperandField& field : row.operands) {
      if (field.since > architecture_.number || architecture_.number > field.until ||
          !field.condition.holds(words_)) {
        continue;
      }
      if (instruction_.operand_count == Instruction::kMaximumOperands ||
          !read(field, instruction_.operands[instruction_.operand_count])) {
        return false;
      }
      ++instruction_.operand_count;
    }
    return true;
  }

 private:
  bool read(const OperandField& field, Operand& operand) {
    operand.written = field.is_written;
    operand.format = field.format;
    if (field.read != nullptr) {
      field.read(operand, words_, architecture_);
    } else {
      const unsigned form = static_cast<unsigned>(words_.bits(9, 3));
      const bool third_is_wide = form == 2 || form == 3 || form == 7;
      if (field.position == Position::fixed) {
        read_fixed(field, operand);
      } else if (field.position == Position::wide || (field.position == Position::third) == third_is_wide) {
        if (field.position == Position::narrow) {
          read_narrow(field, operand);
        } else {
          read_wide(field, operand, form);
        }
      } else {
        read_narrow(field, operand);
      }
    }
    unsigned suffixes = 0;
    for (const ModifierField& suffix : field.suffixes) {
      if (!is_there(suffix, words_, architecture_)) {
        continue;
      }
      Modifier word{};
      if (!chosen(suffix, words_, word) || suffixes == operand.suffix.size()) {
        return false;
      }
      if (word != Modifier{}) {
        operand.suffix[suffixes++] = word;
      }
    }
    operand.shown = operand.shown && field.shown_condition.holds(words_) && !is_hidden(field, operand);
    return true;
  }

  static bool is_hidden(const OperandField& field, const Operand& operand) {
    if (field.hide == OperandField::Hide::when_zero) {
      return operand.value == 0;
    }
    if (field.hide == OperandField::Hide::when_nothing) {
      switch (operand.kind) {
        case OperandKind::general:
          return operand.index == kZeroRegister && !operand.negated;
        case OperandKind::uniform:
          return operand.index == kZeroUniformRegister && !operand.negated;
        case OperandKind::predicate:
        case OperandKind::uniform_predicate:
          return operand.index == kTruePredicate && !operand.negated;
        default:
          return false;
      }
    }
    return false;
  }

  void sign(const OperandField& field, Operand& operand, unsigned negate, unsigned absolute) {
    const bool set = negate != 0 && words_.bit(negate);
    if (field.sign == OperandField::Sign::minus) {
      operand.negated = set;
    } else if (field.sign == OperandField::Sign::tilde) {
      operand.inverted = set;
    }
    operand.absolute = field.takes_absolute && absolute != 0 && words_.bit(absolute);
  }

  static bool is_half(const OperandField& field) {
    return field.format == Operand::Format::float16x2 || field.format == Operand::Format::bfloat16x2;
  }

  // Which halves of a register an instruction on pairs of halves takes.
  void read_halves(const OperandField& field, Operand& operand, unsigned first) {
    static constexpr Modifier kHalves[] = {Modifier{}, mod("F32"), mod("H0_H0"), mod("H1_H1")};
    if (is_half(field)) {
      operand.suffix[0] = kHalves[words_.bits(first, 2)];
    }
  }

  void read_address(const AddressLayout& layout, Operand& operand) {
    static constexpr Modifier kScales[] = {Modifier{}, mod("X4"), mod("X8"), mod("X16")};
    const bool with_uniform = layout.uniform != 0 && words_.bit(kUniformBit);
    operand.index = static_cast<std::uint8_t>(words_.bits(layout.base, 8));
    operand.indexed = layout.indexed;
    if (layout.long_without_uniform && !with_uniform) {
      operand.value = sign_extended(words_.bits(32, 32), 32);
    } else {
      operand.value = sign_extended(words_.bits(layout.offset, layout.offset_bits), layout.offset_bits);
    }
    if (layout.scale != 0) {
      operand.suffix[0] = kScales[words_.bits(layout.scale, 2)];
    }
    if (!with_uniform) {
      return;
    }
    const auto uniform = static_cast<std::uint8_t>(words_.bits(layout.uniform, 6));
    const bool is_descriptor = layout.descriptor != 0 && architecture_.number >= kFirstWithDescriptors &&
                               words_.bit(layout.descriptor);
    if (!is_descriptor) {
      const bool is_left_out = layout.without_zero_uniform && uniform == kZeroUniformRegister;
      operand.uniform = is_left_out ? Operand::kNone : uniform;
    } else if (architecture_.number >= kFirstNamingDescriptors) {
      operand.descriptor = uniform;
    }
    if (layout.wide_base != 0) {
      operand.suffix[0] = words_.bit(layout.wide_base) ? mod("64") : mod("U32");
    }
  }

  static void to_uniform(Operand& operand) {
    if (operand.kind == OperandKind::general) {
      operand.kind = OperandKind::uniform;
      operand.index &= kZeroUniformRegister;
      operand.reuse = false;
    } else if (operand.kind == OperandKind::predicate) {
      operand.kind = OperandKind::uniform_predicate;
    }
  }

  void read_fixed(const OperandField& field, Operand& operand) {
    operand.kind = field.kind;
    if (field.kind == OperandKind::address) {
      read_address(field.layout, operand);
      return;
    }
    const std::uint64_t bits = words_.bits(field.first, field.bits);
    if (field.kind == OperandKind::immediate || field.kind == OperandKind::target ||
        field.kind == OperandKind::special || field.kind == OperandKind::flag_mask) {
      operand.value = (field.signed_value ? sign_extended(bits, field.bits) : static_cast<std::int64_t>(bits))
                      << field.shift;
      return;
    }
    operand.index = static_cast<std::uint8_t>(bits);
    operand.reuse = field.reuse != 0 && words_.bit(field.reuse);
    if (row_->is_uniform) {
      to_uniform(operand);
    }
    sign(field, operand, field.negate, field.absolute);
    read_halves(field, operand, 74);
  }

  void read_narrow(const OperandField& field, Operand& operand) {
    operand.kind = row_->is_uniform ? OperandKind::uniform : OperandKind::general;
    operand.index = static_cast<std::uint8_t>(words_.bits(64, row_->is_uniform ? 6 : 8));
    operand.reuse = !row_->is_uniform && words_.bit(field.reuse);
    sign(field, operand, is_half(field) ? 84 : 75, is_half(field) ? 83 : 74);
    read_halves(field, operand, 81);
  }

  void read_wide(const OperandField& field, Operand& operand, unsigned form) {
    switch (form) {
      case 2:
      case 4:
        operand.kind = OperandKind::immediate;
        operand.value = field.signed_value ? sign_extended(words_.bits(32, 32), 32)
                                           : static_cast<std::int64_t>(words_.bits(32, 32));
        return;
      case 3:
      case 5:
        operand.kind = OperandKind::constant;
        operand.index = kZeroRegister;
        if (words_.bit(kUniformBit)) {
          operand.descriptor = static_cast<std::uint8_t>(words_.bits(32, 6));
        } else {
          operand.bank = static_cast<std::uint8_t>(words_.bits(54, 5));
        }
        operand.value = static_cast<std::int64_t>(words_.bits(38, 16));
        operand.signed_offset = architecture_.number < kFirstNamingDescriptors;
        break;
      case 6:
      case 7:
        operand.kind = OperandKind::uniform;
        operand.index = static_cast<std::uint8_t>(words_.bits(32, 6));
        break;
      default:
        operand.kind = row_->is_uniform ? OperandKind::uniform : OperandKind::general;
        operand.index = static_cast<std::uint8_t>(words_.bits(32, row_->is_uniform ? 6 : 8));
        operand.reuse = !row_->is_uniform && words_.bit(field.reuse);
        break;
    }
    sign(field, operand, 63, 62);
    read_halves(field, operand, 60);
  }

  const Words& words_;
  Architecture architecture_;
  Instruction& instruction_;
  const Row* row_ = nullptr;
};

Schedule schedule_of(const Words& words) {
  Schedule schedule;
  schedule.stall = static_cast<std::uint8_t>(words.bits(105, 4));
  // The bit says "stay with this warp".
  schedule.yield = !words.bit(109);
  schedule.write_barrier = static_cast<std::uint8_t>(words.bits(110, 3));
  schedule.read_barrier = static_cast<std::uint8_t>(words.bits(113, 3));
  schedule.wait_mask = static_cast<std::uint8_t>(words.bits(116, 6));
  schedule.reuse = static_cast<std::uint8_t>(words.bits(122, 4));
  return schedule;
}

}  // namespace

bool Instruction::has(Modifier wanted) const {
  for (const Modifier modifier : modifiers) {
    if (modifier == wanted) {
      return true;
    }
  }
  return false;
}

Instruction decode(Words words, Architecture architecture, std::uint32_t offset) {
  Instruction instruction;
  instruction.words = words;
  instruction.offset = offset;
  instruction.schedule = schedule_of(words);
  const bool is_readable = architecture.number >= kOldest && architecture.number <= kNewest;
  const Row* row = is_readable ? find_row(words, architecture) : nullptr;
  if (row == nullptr) {
    return instruction;
  }
  const Instruction unknown = instruction;
  if (!RowReader{words, architecture, instruction}.read(*row)) {
    return unknown;
  }
  instruction.opcode = static_cast<Opcode>(position_of(kOpcodeNames, row->name));
  for (unsigned at = 0; at < instruction.operand_count; ++at) {
    Operand& operand = instruction.operands[at];
    if (operand.kind == OperandKind::target) {
      operand.value += offset + Instruction::kBytes;
    }
  }
  if (row->finish != nullptr) {
    row->finish(instruction, architecture);
  }
  if (!instruction.known()) {
    return unknown;
  }
  size_operands(instruction);
  return instruction;
}

}  // namespace manyscale::sass
