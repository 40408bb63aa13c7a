// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/builder.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "gpu/exec/address_space.hpp"
#include "gpu/exec/function_decoder.hpp"
#include "gpu/exec/hidden.hpp"
#include "gpu/exec/numerics/half.hpp"
#include "gpu/exec/warp.hpp"

namespace manyscale::gpu {

using ptx::Operand;
using ptx::OperandKind;
using ptx::Type;

namespace {

struct SpecialName {
  std::string_view name;
  int component;  // -1: the register has none
  Special special;
  unsigned bytes;
};

constexpr SpecialName kSpecials[] = {
    {"%tid", 0, Special::tid_x, 4},
    {"%tid", 1, Special::tid_y, 4},
    {"%tid", 2, Special::tid_z, 4},
    {"%tid", 3, Special::zero, 4},
    {"%ntid", 0, Special::ntid_x, 4},
    {"%ntid", 1, Special::ntid_y, 4},
    {"%ntid", 2, Special::ntid_z, 4},
    {"%ntid", 3, Special::one, 4},
    {"%ctaid", 0, Special::ctaid_x, 4},
    {"%ctaid", 1, Special::ctaid_y, 4},
    {"%ctaid", 2, Special::ctaid_z, 4},
    {"%ctaid", 3, Special::zero, 4},
    {"%nctaid", 0, Special::nctaid_x, 4},
    {"%nctaid", 1, Special::nctaid_y, 4},
    {"%nctaid", 2, Special::nctaid_z, 4},
    {"%nctaid", 3, Special::one, 4},
    {"%laneid", -1, Special::laneid, 4},
    {"%warpid", -1, Special::warpid, 4},
    {"%nwarpid", -1, Special::nwarpid, 4},
    {"%smid", -1, Special::smid, 4},
    {"%nsmid", -1, Special::nsmid, 4},
    {"%gridid", -1, Special::gridid, 8},
    {"%lanemask_eq", -1, Special::lanemask_eq, 4},
    {"%lanemask_le", -1, Special::lanemask_le, 4},
    {"%lanemask_lt", -1, Special::lanemask_lt, 4},
    {"%lanemask_ge", -1, Special::lanemask_ge, 4},
    {"%lanemask_gt", -1, Special::lanemask_gt, 4},
    {"%total_smem_size", -1, Special::total_smem_size, 4},
    {"%aggr_smem_size", -1, Special::total_smem_size, 4},
    {"%dynamic_smem_size", -1, Special::dynamic_smem_size, 4},
    // Where a grid that was launched cooperatively counts the CTAs at its barrier.
    {"%envreg1", -1, Special::workspace_high, 4},
    {"%envreg2", -1, Special::workspace_low, 4},
    // Without clusters, each CTA is a cluster of its own.
    {"%clusterid", 0, Special::ctaid_x, 4},
    {"%clusterid", 1, Special::ctaid_y, 4},
    {"%clusterid", 2, Special::ctaid_z, 4},
    {"%nclusterid", 0, Special::nctaid_x, 4},
    {"%nclusterid", 1, Special::nctaid_y, 4},
    {"%nclusterid", 2, Special::nctaid_z, 4},
    {"%cluster_ctaid", 0, Special::zero, 4},
    {"%cluster_ctaid", 1, Special::zero, 4},
    {"%cluster_ctaid", 2, Special::zero, 4},
    {"%cluster_nctaid", 0, Special::one, 4},
    {"%cluster_nctaid", 1, Special::one, 4},
    {"%cluster_nctaid", 2, Special::one, 4},
    {"%cluster_ctarank", -1, Special::zero, 4},
    {"%cluster_nctarank", -1, Special::one, 4},
};

const SpecialName* find_special(const Operand& operand) {
  const std::string_view name = operand.text.substr(0, operand.text.find('.'));
  const int component = operand.component == 255 ? -1 : operand.component;
  for (const SpecialName& entry : kSpecials)
    if (entry.name == name && entry.component == component) return &entry;
  // Nothing sets the others; programs that read them expect zeros.
  static constexpr SpecialName kEnvironment{"%envreg", -1, Special::zero, 4};
  if (name.starts_with("%envreg")) return &kEnvironment;
  return nullptr;
}

unsigned lane_bytes(Type type) {
  const unsigned bytes = ptx::size_of(type);
  return bytes == 1 ? 2 : bytes;
}

// An immediate as the bits of a type.
std::uint64_t immediate_bits(const Builder& builder, const Operand& operand, Type type) {
  if (operand.kind == OperandKind::integer) {
    const auto value = operand.negated ? -static_cast<std::uint64_t>(operand.value)
                                       : static_cast<std::uint64_t>(operand.value);
    // A whole number where a float is meant is that number.
    const auto number = static_cast<double>(static_cast<std::int64_t>(value));
    if (type == Type::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(number));
    if (type == Type::f64) return std::bit_cast<std::uint64_t>(number);
    return value;
  }
  double number = operand.is_f32 ? std::bit_cast<float>(static_cast<std::uint32_t>(operand.value))
                                 : std::bit_cast<double>(operand.value);
  if (operand.is_f32 && ptx::size_of(type) == 4 && !operand.negated)
    return static_cast<std::uint32_t>(operand.value);
  if (operand.negated) number = -number;
  switch (type) {
    case Type::f32:
    case Type::b32:
    case Type::tf32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(number));
    case Type::f64:
    case Type::b64:
      return std::bit_cast<std::uint64_t>(number);
    case Type::f16:
      return to_f16(number).bits;
    case Type::bf16:
      return to_bf16(number).bits;
    default:
      builder.unsupported("a floating-point number where ." + std::string(ptx::name_of(type)) + " is needed");
  }
}

}  // namespace

Builder::Builder(FunctionDecoder& decoder, const ptx::Instruction& instruction)
    : decoder_(decoder), instruction_(instruction) {}

std::span<const std::string_view> Builder::modifiers() const {
  return decoder_.module().modifiers_of(instruction_);
}

bool Builder::accept(std::string_view modifier) {
  const auto words = modifiers();
  for (std::size_t i = 0; i < words.size() && i < 64; ++i) {
    if (words[i] == modifier && !(accepted_ >> i & 1)) {
      accepted_ |= std::uint64_t{1} << i;
      return true;
    }
  }
  return false;
}

int Builder::accept_one_of(std::initializer_list<std::string_view> choices) {
  int index = 0;
  for (std::string_view choice : choices) {
    if (accept(choice)) return index;
    ++index;
  }
  return -1;
}

void Builder::ignore(std::initializer_list<std::string_view> modifiers) {
  for (std::string_view modifier : modifiers) accept(modifier);
}

Type Builder::type() {
  const auto words = modifiers();
  for (std::size_t i = 0; i < words.size() && i < 64; ++i) {
    if (accepted_ >> i & 1) continue;
    const Type type = ptx::type_named(words[i]);
    if (type == Type::none) continue;
    accepted_ |= std::uint64_t{1} << i;
    return type;
  }
  return Type::none;
}

unsigned Builder::operands() const {
  return instruction_.operands;
}

const Operand& Builder::operand(unsigned index) const {
  if (index >= operands()) unsupported("operand " + std::to_string(index + 1) + " is missing");
  return decoder_.module().operands_of(instruction_)[index];
}

std::span<const Operand> Builder::children(const Operand& operand) const {
  return decoder_.module().children(operand);
}

void Builder::expect_operands(unsigned least, unsigned most) {
  if (operands() >= least && operands() <= most) return;
  const std::string wanted =
      least == most ? std::to_string(least) : std::to_string(least) + " to " + std::to_string(most);
  unsupported("it has " + std::to_string(operands()) + " operands, but takes " + wanted);
}

Slot Builder::source(const Operand& operand, Type type) {
  refuse_part(operand);
  const unsigned bytes = lane_bytes(type);
  if (bytes == 0) unsupported("an operand has no type");
  switch (operand.kind) {
    case OperandKind::reg: {
      if (operand.negated) unsupported("operand '-" + std::string(operand.text) + "' is negated");
      const unsigned element = operand.component == 255 ? 0 : operand.component;
      if (decoder_.is_predicate(operand.id) || decoder_.bytes_of(operand.id) != bytes)
        unsupported("register " + std::string(operand.text) + " is not of the size of ." +
                    std::string(ptx::name_of(type)));
      return decoder_.read(operand.id, element);
    }
    case OperandKind::integer:
    case OperandKind::floating:
      return constant(immediate_bits(*this, operand, type), bytes);
    case OperandKind::special: {
      if (operand.text == "WARP_SZ") return constant(kLanes, bytes);
      const SpecialName* special = find_special(operand);
      if (special == nullptr)
        unsupported("special register " + std::string(operand.text) + " is not supported here");
      const Slot slot = make_slot(Base::warp, static_cast<std::uint32_t>(special->special) * kSpecialStride);
      if (special->bytes == bytes) return slot;
      return decoder_.emit_hidden(instruction_, hidden_resize(special->bytes, bytes), bytes, slot, 0);
    }
    case OperandKind::variable: {
      const ptx::Variable& variable = decoder_.variable(operand);
      if (operand.is_local && decoder_.in_frame(variable)) {
        const auto offset = static_cast<std::int64_t>(decoder_.frame_offset(operand.id)) + operand.value;
        return decoder_.emit_hidden(instruction_, hidden_frame_address(bytes), bytes, kNoSlot, offset);
      }
      return constant(decoder_.address(operand) + static_cast<std::uint64_t>(operand.value), bytes);
    }
    case OperandKind::function:
      return constant(kCodeWindow + operand.id * kFunctionStride, bytes);
    default:
      unsupported("operand '" + std::string(operand.text) + "' is not a value");
  }
}

Slot Builder::destination(const Operand& operand, Type type) {
  refuse_part(operand);
  const unsigned bytes = lane_bytes(type);
  if (bytes == 0) unsupported("the destination has no type");
  if (operand.kind == OperandKind::sink) return scratch(bytes);
  if (operand.kind != OperandKind::reg || operand.negated)
    unsupported("'" + std::string(operand.text) + "' is not a register to write");
  if (decoder_.is_predicate(operand.id) || decoder_.bytes_of(operand.id) != bytes)
    unsupported("register " + std::string(operand.text) + " is not of the size of ." +
                std::string(ptx::name_of(type)));
  return decoder_.write(operand.id, operand.component == 255 ? 0 : operand.component);
}

void Builder::refuse_part(const Operand& operand) const {
  if (operand.part != 255)
    unsupported("parts of registers, as in " + std::string(operand.text) + ", are not supported");
}

Slot Builder::predicate_source(const Operand& operand, bool* negated) {
  if (negated != nullptr) *negated = operand.negated;
  if (operand.kind == OperandKind::integer) return constant(operand.value != 0 ? kAllLanes : 0, 4);
  if (operand.kind == OperandKind::special) {
    if (operand.text == "%is_explicit_cluster") return constant(0, 4);
    unsupported("special register " + std::string(operand.text) + " is not a predicate");
  }
  if (operand.kind != OperandKind::reg || !decoder_.is_predicate(operand.id))
    unsupported("'" + std::string(operand.text) + "' is not a predicate");
  if (operand.negated && negated == nullptr)
    unsupported("predicate " + std::string(operand.text) + " is negated");
  return decoder_.read(operand.id, 0);
}

Slot Builder::predicate_destination(const Operand& operand) {
  if (operand.kind == OperandKind::sink) return scratch(0);
  if (operand.kind != OperandKind::reg || operand.negated || !decoder_.is_predicate(operand.id))
    unsupported("'" + std::string(operand.text) + "' is not a predicate to write");
  return decoder_.write(operand.id, 0);
}

unsigned Builder::register_bytes(const Operand& operand, unsigned otherwise) const {
  if (operand.kind != OperandKind::reg) return otherwise;
  return decoder_.is_predicate(operand.id) ? 0 : decoder_.bytes_of(operand.id);
}

Slot Builder::constant(std::uint64_t bits, unsigned bytes) {
  return decoder_.program().constant(bits, bytes);
}

Slot Builder::scratch(unsigned bytes) {
  return decoder_.scratch(bytes);
}

std::int64_t Builder::integer(unsigned index) const {
  if (operand(index).kind != OperandKind::integer)
    unsupported("operand '" + std::string(operand(index).text) + "' must be a whole number");
  return operand(index).negated ? static_cast<std::int64_t>(-static_cast<std::uint64_t>(operand(index).value))
                                : operand(index).value;
}

Builder::Address Builder::address(const Operand& operand, ptx::Space space, bool* narrow) {
  if (operand.kind != OperandKind::address || operand.count == 0)
    unsupported("'" + std::string(operand.text) + "' is not an address in brackets");
  const Operand& base = children(operand)[0];
  Address result;
  result.offset = operand.value;
  result.space = space;
  if (narrow != nullptr) *narrow = false;
  switch (base.kind) {
    case OperandKind::integer:
      result.offset = static_cast<std::int64_t>(static_cast<std::uint64_t>(operand.value) +
                                                static_cast<std::uint64_t>(base.value));
      return result;
    case OperandKind::variable: {
      const ptx::Variable& variable = decoder_.variable(base);
      result.is_variable = true;
      result.space = variable.space;
      const auto extra = static_cast<std::uint64_t>(operand.value) + static_cast<std::uint64_t>(base.value);
      if (base.is_local && decoder_.in_frame(variable)) {
        result.is_frame = true;
        result.offset = static_cast<std::int64_t>(decoder_.frame_offset(base.id) + extra);
      } else {
        result.offset = static_cast<std::int64_t>(decoder_.address(base) + extra);
      }
      return result;
    }
    case OperandKind::reg: {
      const unsigned bytes = register_bytes(base, 8);
      const unsigned element = base.component == 255 ? 0 : base.component;
      if (bytes == 8) {
        result.base = decoder_.read(base.id, element);
        return result;
      }
      if (bytes != 4) unsupported("register " + std::string(base.text) + " cannot hold an address");
      if (narrow != nullptr) {
        *narrow = true;
        result.base = decoder_.read(base.id, element);
        return result;
      }
      result.base =
          decoder_.emit_hidden(instruction_, hidden_resize(4, 8), 8, decoder_.read(base.id, element), 0);
      return result;
    }
    default:
      unsupported("'" + std::string(operand.text) + "' is not an address");
  }
}

Op& Builder::emit(Handler handler, Class kind, Flow flow) {
  return decoder_.emit(instruction_, handler, kind, flow);
}

std::uint32_t Builder::list(std::span<const Slot> slots) {
  return decoder_.list(slots);
}

std::string Builder::unaccounted() const {
  const auto words = modifiers();
  for (std::size_t i = 0; i < words.size(); ++i)
    if (i >= 64 || !(accepted_ >> i & 1)) return std::string(words[i]);
  return "";
}

void Builder::unsupported(const std::string& why) const {
  throw Unsupported(why);
}

}  // namespace manyscale::gpu
