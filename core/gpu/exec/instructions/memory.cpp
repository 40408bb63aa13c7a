// SPDX-License-Identifier: Apache-2.0
// Loads, stores and prefetches.
#include <bit>
#include <cstring>

#include "gpu/exec/fault.hpp"
#include "gpu/exec/instructions/memory_lanes.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/memory_access.hpp"
#include "gpu/exec/opcodes.hpp"

namespace manyscale::gpu {
namespace {

using memory_lanes::load;
using memory_lanes::load_parameter;
using memory_lanes::load_vector;
using memory_lanes::store;
using memory_lanes::store_vector;
using memory_lanes::Wide;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Space;
using ptx::Type;

// The handlers of one kind of access for a type in memory and the bytes of the register.
struct Handlers {
  Handler scalar;
  Handler vector;
  Handler parameter;
};

template <class M, class R>
constexpr Handlers loads() {
  return {load<M, R>, load_vector<M, R>, load_parameter<M, R>};
}

template <class M, class R>
constexpr Handlers stores() {
  return {store<M, R>, store_vector<M, R>, nullptr};
}

Handlers choose_load(Type type, unsigned register_bytes) {
  const bool is_signed = ptx::is_signed(type) && !ptx::is_float(type);
  switch (ptx::size_of(type) * 100 + register_bytes) {
    case 102:
      return is_signed ? loads<std::int8_t, std::int16_t>() : loads<std::uint8_t, std::uint16_t>();
    case 104:
      return is_signed ? loads<std::int8_t, std::int32_t>() : loads<std::uint8_t, std::uint32_t>();
    case 108:
      return is_signed ? loads<std::int8_t, std::int64_t>() : loads<std::uint8_t, std::uint64_t>();
    case 202:
      return loads<std::uint16_t, std::uint16_t>();
    case 204:
      return is_signed ? loads<std::int16_t, std::int32_t>() : loads<std::uint16_t, std::uint32_t>();
    case 208:
      return is_signed ? loads<std::int16_t, std::int64_t>() : loads<std::uint16_t, std::uint64_t>();
    case 404:
      return loads<std::uint32_t, std::uint32_t>();
    case 408:
      return is_signed ? loads<std::int32_t, std::int64_t>() : loads<std::uint32_t, std::uint64_t>();
    case 808:
      return loads<std::uint64_t, std::uint64_t>();
    case 1616:
      return loads<Wide, Wide>();
    default:
      return {};
  }
}

Handlers choose_store(Type type, unsigned register_bytes) {
  switch (ptx::size_of(type) * 100 + register_bytes) {
    case 102:
      return stores<std::uint8_t, std::uint16_t>();
    case 104:
      return stores<std::uint8_t, std::uint32_t>();
    case 108:
      return stores<std::uint8_t, std::uint64_t>();
    case 202:
      return stores<std::uint16_t, std::uint16_t>();
    case 204:
      return stores<std::uint16_t, std::uint32_t>();
    case 208:
      return stores<std::uint16_t, std::uint64_t>();
    case 404:
      return stores<std::uint32_t, std::uint32_t>();
    case 408:
      return stores<std::uint32_t, std::uint64_t>();
    case 808:
      return stores<std::uint64_t, std::uint64_t>();
    case 1616:
      return stores<Wide, Wide>();
    default:
      return {};
  }
}

Type type_of_bytes(unsigned bytes) {
  return bytes == 2 ? Type::b16 : bytes == 4 ? Type::b32 : bytes == 8 ? Type::b64 : Type::b128;
}

// Modifiers that say how to cache or order, not what to read.
void ignore_hints(Builder& builder) {
  builder.ignore({"ca",
                  "cg",
                  "cs",
                  "lu",
                  "cv",
                  "wb",
                  "wt",
                  "nc",
                  "weak",
                  "L1::evict_normal",
                  "L1::evict_unchanged",
                  "L1::evict_first",
                  "L1::evict_last",
                  "L1::no_allocate",
                  "L2::evict_normal",
                  "L2::evict_first",
                  "L2::evict_last",
                  "L2::64B",
                  "L2::128B",
                  "L2::256B",
                  "unified"});
}

// Accesses that other threads can be waiting for.
bool accept_strong(Builder& builder) {
  bool strong = builder.accept("volatile");
  strong |= builder.accept_one_of({"relaxed", "acquire", "release", "mmio"}) >= 0;
  builder.accept_one_of({"cta", "cluster", "gpu", "sys"});
  return strong;
}

struct Decoded {
  Space space = Space::generic;
  bool strong = false;
  bool hinted = false;
  unsigned elements = 1;
  Type type = Type::none;
};

Decoded decode_modifiers(Builder& builder) {
  Decoded decoded;
  decoded.strong = accept_strong(builder);
  ignore_hints(builder);
  decoded.hinted = builder.accept("L2::cache_hint");  // a policy operand follows
  decoded.space = decode_space(builder);
  decoded.elements = builder.accept("v2") ? 2 : builder.accept("v4") ? 4 : builder.accept("v8") ? 8 : 1;
  decoded.type = builder.type();
  if (ptx::size_of(decoded.type) == 0) builder.unsupported("it has no type");
  return decoded;
}

// The registers of the value: one, or those between braces. All have the same size.
std::vector<const Operand*> value_operands(Builder& builder, unsigned index, unsigned elements) {
  const Operand& operand = builder.operand(index);
  std::vector<const Operand*> values;
  if (operand.kind == OperandKind::vector) {
    for (const Operand& child : builder.children(operand)) values.push_back(&child);
  } else {
    values.push_back(&operand);
  }
  if (values.size() != elements)
    builder.unsupported("it moves " + std::to_string(elements) + " elements, but names " +
                        std::to_string(values.size()));
  return values;
}

// Bytes of the registers that hold the elements: as the first register says, sinks and immediates follow it.
unsigned common_bytes(Builder& builder, std::span<const Operand* const> values, Type type) {
  const unsigned least = std::max(ptx::size_of(type), 2U);
  for (const Operand* value : values)
    if (value->kind == OperandKind::reg) return builder.register_bytes(*value, least);
  return least;
}

void finish_access(Op& op, const Decoded& decoded, const AddressFields& address) {
  address.apply(op);
  op.bytes = static_cast<std::uint8_t>(ptx::size_of(decoded.type));
  op.count = static_cast<std::uint8_t>(decoded.elements);
  const bool elsewhere = space_of(op) == Space::global || space_of(op) == Space::generic;
  if (decoded.strong && elsewhere) op.flags |= kOrdered;
}

void decode_load(Builder& builder) {
  const Decoded decoded = decode_modifiers(builder);
  builder.expect_operands(2, decoded.hinted ? 3 : 2);
  const auto values = value_operands(builder, 0, decoded.elements);
  const unsigned bytes = common_bytes(builder, values, decoded.type);
  const Handlers handlers = choose_load(decoded.type, bytes);
  if (handlers.scalar == nullptr) builder.unsupported("the destination register is too small for the type");
  const AddressFields address = decode_address(builder, 1, decoded.space);
  std::vector<Slot> slots;
  for (const Operand* value : values) slots.push_back(builder.destination(*value, type_of_bytes(bytes)));
  const bool is_parameter = (address.flags >> kSpaceShift & 7) == static_cast<unsigned>(Space::param) &&
                            address.base == kNoSlot && decoded.elements == 1;
  const std::uint32_t listed = decoded.elements > 1 ? builder.list(slots) : 0;
  Op& op = builder.emit(decoded.elements > 1 ? handlers.vector
                        : is_parameter       ? handlers.parameter
                                             : handlers.scalar,
                        Class::load, decoded.strong ? Flow::yield : Flow::next);
  op.dst = decoded.elements > 1 ? kNoSlot : slots[0];
  op.aux = listed;
  finish_access(op, decoded, address);
}

void decode_store(Builder& builder) {
  const Decoded decoded = decode_modifiers(builder);
  builder.expect_operands(2, decoded.hinted ? 3 : 2);
  const auto values = value_operands(builder, 1, decoded.elements);
  const unsigned bytes = common_bytes(builder, values, decoded.type);
  const Handlers handlers = choose_store(decoded.type, bytes);
  if (handlers.scalar == nullptr) builder.unsupported("the source register is too small for the type");
  if (decoded.space == Space::constant) builder.unsupported("constant memory cannot be written");
  const AddressFields address = decode_address(builder, 0, decoded.space);
  // Immediates are numbers of the access's own type.
  const Type immediate = bytes == ptx::size_of(decoded.type) ? decoded.type : type_of_bytes(bytes);
  std::vector<Slot> slots;
  for (const Operand* value : values)
    slots.push_back(
        builder.source(*value, value->kind == OperandKind::reg ? type_of_bytes(bytes) : immediate));
  const std::uint32_t listed = decoded.elements > 1 ? builder.list(slots) : 0;
  Op& op = builder.emit(decoded.elements > 1 ? handlers.vector : handlers.scalar, Class::store);
  op.src[1] = decoded.elements > 1 ? kNoSlot : slots[0];
  op.aux = listed;
  finish_access(op, decoded, address);
}

void do_nothing(Warp&, const Op&) {}

// Caches hold nothing that memory does not: hints about them change no result.
void decode_prefetch(Builder& builder) {
  decode_space(builder);
  builder.ignore(
      {"L1", "L2", "L1::evict_normal", "L2::evict_last", "L2::evict_normal", "tensormap", "L2::128B"});
  builder.emit(do_nothing, Class::other);
}

void decode_create_policy(Builder& builder) {
  builder.ignore({"fractional", "range", "global", "cvt", "L2", "L2::evict_last", "L2::evict_normal",
                  "L2::evict_first", "L2::evict_unchanged"});
  builder.type();
  const Slot dst = builder.destination(0, Type::b64);
  Op& op = builder.emit(do_nothing, Class::other);
  op.dst = dst;
}

constexpr Opcode kOpcodes[] = {
    {"ld", decode_load},
    {"ldu", decode_load},
    {"st", decode_store},
    {"prefetch", decode_prefetch},
    {"prefetchu", decode_prefetch},
    {"applypriority", decode_prefetch},
    {"discard", decode_prefetch},
    {"createpolicy", decode_create_policy},
};

}  // namespace

std::span<const Opcode> memory_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
