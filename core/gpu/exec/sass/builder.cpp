// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/sass/builder.hpp"

#include "gpu/exec/memory_access.hpp"
#include "gpu/exec/sass/address.hpp"
#include "gpu/exec/sass/decoder.hpp"

namespace manyscale::gpu {

using sass::Operand;
using sass::OperandKind;

MachineBuilder::MachineBuilder(MachineDecoder& decoder, const sass::Instruction& instruction, Op& op,
                               Class& kind)
    : decoder_(decoder), instruction_(instruction), op_(op), kind_(kind) {
  for (unsigned i = 0; i < instruction.operand_count; ++i) {
    const Operand& operand = instruction.operands[i];
    switch (operand.kind) {
      case OperandKind::general:
      case OperandKind::uniform:
        if (operand.written)
          results_.push_back(&operand);
        else if (operand.shown)
          values_.push_back(&operand);
        break;
      case OperandKind::immediate:
      case OperandKind::constant:
        if (operand.shown) values_.push_back(&operand);
        break;
      case OperandKind::predicate:
      case OperandKind::uniform_predicate:
        (operand.written ? predicate_results_ : conditions_).push_back(&operand);
        break;
      default:
        break;
    }
  }
}

namespace {

bool is_true(const Operand& predicate) {
  return predicate.index == sass::kTruePredicate && !predicate.negated && !predicate.inverted;
}

}  // namespace

bool MachineBuilder::accept(std::string_view modifier) {
  for (unsigned i = 0; i < instruction_.modifiers.size(); ++i) {
    if ((accepted_ >> i & 1) != 0 || instruction_.modifiers[i] == sass::Modifier{}) continue;
    if (sass::name_of(instruction_.modifiers[i]) != modifier) continue;
    accepted_ |= 1U << i;
    return true;
  }
  return false;
}

int MachineBuilder::accept_one_of(std::initializer_list<std::string_view> choices) {
  int index = 0;
  for (std::string_view choice : choices) {
    if (accept(choice)) return index;
    ++index;
  }
  return -1;
}

void MachineBuilder::ignore(std::initializer_list<std::string_view> modifiers) {
  for (std::string_view modifier : modifiers) accept(modifier);
}

const Operand& MachineBuilder::value(unsigned index) const {
  if (index >= values_.size()) unsupported("a source is missing");
  return *values_[index];
}

const Operand& MachineBuilder::result(unsigned index) const {
  if (index >= results_.size()) unsupported("a destination is missing");
  return *results_[index];
}

const Operand* MachineBuilder::find(OperandKind kind) const {
  for (unsigned i = 0; i < instruction_.operand_count; ++i)
    if (instruction_.operands[i].kind == kind) return &instruction_.operands[i];
  return nullptr;
}

Slot MachineBuilder::source(const Operand& operand, unsigned words, std::int64_t* modifiers, unsigned k) {
  if (operand.negated || operand.inverted || operand.absolute) {
    if (modifiers == nullptr) unsupported("an operand is negated, inverted or taken without its sign");
    if (operand.negated) *modifiers |= negated_bit(k);
    if (operand.inverted) *modifiers |= inverted_bit(k);
    if (operand.absolute) *modifiers |= absolute_bit(k);
  }
  switch (operand.kind) {
    case OperandKind::general:
      if (operand.index == sass::kZeroRegister)
        return decoder_.constant(std::vector<std::uint32_t>(words, 0));
      return general_register(operand.index);
    case OperandKind::uniform:
      if (operand.index == sass::kZeroUniformRegister)
        return decoder_.constant(std::vector<std::uint32_t>(words, 0));
      return decoder_.layout().uniform_register(operand.index);
    case OperandKind::immediate: {
      std::vector<std::uint32_t> value(words, 0);
      const auto bits = static_cast<std::uint64_t>(operand.value);
      if (operand.format == Operand::Format::float64_high) {
        value[words - 1] = static_cast<std::uint32_t>(bits);
      } else {
        value[0] = static_cast<std::uint32_t>(bits);
        if (words > 1) value[1] = static_cast<std::uint32_t>(bits >> 32);
      }
      return decoder_.constant(value);
    }
    case OperandKind::constant:
      if (operand.descriptor != Operand::kNone) unsupported("a constant of a bound table");
      if (operand.index != sass::kZeroRegister) unsupported("a constant at an address that is not known");
      return decoder_.bank_words(operand.bank, static_cast<std::uint32_t>(operand.value), words);
    default:
      unsupported("an operand is not a value");
  }
}

bool MachineBuilder::is_wanted(const Operand& operand) const {
  return operand.kind == OperandKind::uniform ? operand.index != sass::kZeroUniformRegister
                                              : operand.index != sass::kZeroRegister;
}

Slot MachineBuilder::destination(const Operand& operand, unsigned words) {
  if (!is_wanted(operand)) {
    if (words > RegisterLayout::kDiscardWords) unsupported("too many registers are written");
    return decoder_.layout().discard();
  }
  if (operand.kind == OperandKind::uniform) return decoder_.layout().uniform_register(operand.index);
  if (operand.index + words > sass::kZeroRegister) unsupported("registers beyond the last are written");
  return general_register(operand.index);
}

Slot MachineBuilder::condition(unsigned index, bool& negated, bool otherwise) {
  negated = false;
  if (index >= conditions_.size()) {
    negated = !otherwise;
    return constant(kAllLanes);
  }
  read_ |= 1U << index;
  const Operand& operand = *conditions_[index];
  negated = operand.negated || operand.inverted;
  if (operand.index == sass::kTruePredicate) return constant(kAllLanes);
  return operand.kind == OperandKind::uniform_predicate ? decoder_.layout().uniform_predicate(operand.index)
                                                        : decoder_.layout().predicate(operand.index);
}

Slot MachineBuilder::only_condition(bool& negated) {
  Slot found = kNoSlot;
  negated = false;
  for (unsigned i = 0; i < conditions_.size(); ++i) {
    if (is_true(*conditions_[i])) continue;
    if (found != kNoSlot) unsupported("it has two conditions");
    found = condition(i, negated);
  }
  return found;
}

Slot MachineBuilder::predicate_result(unsigned index) {
  if (index >= predicate_results_.size()) return kNoSlot;
  const Operand& operand = *predicate_results_[index];
  if (operand.index == sass::kTruePredicate) return kNoSlot;
  return operand.kind == OperandKind::uniform_predicate ? decoder_.layout().uniform_predicate(operand.index)
                                                        : decoder_.layout().predicate(operand.index);
}

Slot MachineBuilder::barrier(const Operand& operand) {
  if (operand.kind != OperandKind::convergence || operand.index >= RegisterLayout::kBarriers)
    unsupported("an operand is not a convergence barrier");
  return decoder_.layout().barrier(operand.index);
}

Slot MachineBuilder::constant(std::uint32_t word) {
  return decoder_.constant(std::span(&word, 1));
}

Slot MachineBuilder::constant_pair(std::uint64_t value) {
  const std::array words{static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32)};
  return decoder_.constant(words);
}

std::uint32_t MachineBuilder::list(std::span<const Slot> slots) {
  auto& all = decoder_.code().slots;
  const auto first = static_cast<std::uint32_t>(all.size());
  all.insert(all.end(), slots.begin(), slots.end());
  return first;
}

std::uint32_t MachineBuilder::list(std::initializer_list<Slot> slots) {
  return list(std::span(slots.begin(), slots.size()));
}

std::int64_t MachineBuilder::immediate(const Operand& operand) const {
  if (operand.kind != OperandKind::immediate) unsupported("an operand is not a number");
  return operand.value;
}

void MachineBuilder::address(Op& op, const Operand& operand, ptx::Space space) {
  if (operand.kind != OperandKind::address) unsupported("an operand is not an address");
  MachineAddress fields;
  const bool is_wide = space == ptx::Space::global || space == ptx::Space::generic;
  fields.wraps = !is_wide;
  unsigned suffixes = 0;
  for (sass::Modifier suffix : operand.suffix) {
    const std::string_view word = sass::name_of(suffix);
    if (word.empty()) continue;
    ++suffixes;
    if (word == "64")
      fields.base_is_pair = true;
    else if (word == "U32")
      fields.is_unsigned = true;
    else if (word == "X4" || word == "X8" || word == "X16")
      fields.shift = word == "X4" ? 2 : word == "X8" ? 3 : 4;
    else
      unsupported("an address with ." + std::string(word));
  }
  const bool has_uniform = operand.uniform != Operand::kNone && operand.uniform != sass::kZeroUniformRegister;
  // Without a uniform register an address of 64 bits is two registers, also where that is not printed.
  if (is_wide && operand.uniform == Operand::kNone && suffixes == 0) fields.base_is_pair = true;
  const bool has_base = operand.index != sass::kZeroRegister;
  op.src[0] = has_base ? general_register(operand.index) : kNoSlot;
  op.src[3] = has_uniform ? decoder_.layout().uniform_register(operand.uniform) : kNoSlot;
  fields.offset = static_cast<std::int32_t>(operand.value);
  op.immediate = packed(fields);
  op.flags = static_cast<std::uint8_t>(op.flags | kSassAddress | static_cast<unsigned>(space) << kSpaceShift);
}

void MachineBuilder::located_address(Op& op, const Operand& operand, ptx::Space space) {
  address(op, operand, space);
  const auto fields = std::bit_cast<MachineAddress>(op.immediate);
  if (!fields.wraps || fields.shift != 0 || op.src[0] == kNoSlot || op.src[3] != kNoSlot) return;
  op.flags = static_cast<std::uint8_t>((op.flags & ~kSassAddress) | kNarrowBase);
  op.immediate = fields.offset;
}

Op& MachineBuilder::emit(Handler handler, Class kind, Flow flow) {
  op_.handler = handler;
  op_.flow = flow;
  kind_ = kind;
  return op_;
}

std::string MachineBuilder::unaccounted() const {
  for (unsigned i = 0; i < instruction_.modifiers.size(); ++i)
    if ((accepted_ >> i & 1) == 0 && instruction_.modifiers[i] != sass::Modifier{})
      return "." + std::string(sass::name_of(instruction_.modifiers[i]));
  for (unsigned i = 0; i < conditions_.size(); ++i)
    if ((read_ >> i & 1) == 0 && conditions_[i]->index != sass::kTruePredicate)
      return "a predicate that it reads";
  return {};
}

void MachineBuilder::unsupported(const std::string& why) const {
  throw Unsupported(why);
}

}  // namespace manyscale::gpu
