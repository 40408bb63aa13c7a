// SPDX-License-Identifier: Apache-2.0
// Moves: between registers, from special registers, to and from vectors, and between address spaces.
#include <cstring>

#include "gpu/exec/address_space.hpp"
#include "gpu/exec/hidden.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/memory_access.hpp"
#include "gpu/exec/opcodes.hpp"

namespace manyscale::gpu {
namespace {

using ptx::Operand;
using ptx::OperandKind;
using ptx::Space;
using ptx::Type;

struct Wide {
  std::uint64_t low;
  std::uint64_t high;
};

template <class T>
void move(Warp& warp, const Op& op) {
  map1<T, T>(warp, op, [](T a) { return a; });
}

void move_predicate(Warp& warp, const Op& op) {
  const Mask value = warp.predicate(op.src[0]);
  set_predicate(warp, op.dst, op.flags & 1 ? ~value : value);
}

Handler move_of(unsigned bytes) {
  switch (bytes) {
    case 2:
      return move<std::uint16_t>;
    case 4:
      return move<std::uint32_t>;
    case 8:
      return move<std::uint64_t>;
    default:
      return move<Wide>;
  }
}

// What a clock shows; `shift` takes the upper half.
template <class T>
void read_clock(Warp& warp, const Op& op) {
  const T value = static_cast<T>(warp.clock() >> op.immediate);
  for_lanes(warp, warp.lanes<T>(op.dst), [=](unsigned) { return value; });
}

// Packs elements of P bytes from the list into one register of D, or unpacks them.
template <class D, class P>
void pack(Warp& warp, const Op& op) {
  D* result = warp.lanes<D>(op.dst);
  for_each_active(warp.mask, [&](unsigned lane) {
    std::byte bytes[sizeof(D)] = {};
    for (unsigned i = 0; i < op.count; ++i)
      std::memcpy(bytes + i * sizeof(P), &warp.lanes<P>(warp.listed(op, i))[lane], sizeof(P));
    std::memcpy(&result[lane], bytes, sizeof(D));
  });
}

template <class D, class P>
void unpack(Warp& warp, const Op& op) {
  const D* source = warp.lanes<D>(op.src[0]);
  for (unsigned i = 0; i < op.count; ++i) {
    P* result = warp.lanes<P>(warp.listed(op, i));
    for_lanes(warp, result, [=](unsigned lane) {
      P part;
      std::memcpy(&part, reinterpret_cast<const std::byte*>(&source[lane]) + i * sizeof(P), sizeof(P));
      return part;
    });
  }
}

// A byte of a vector lies in a 16-bit register: unpacked with zeros above, packed from its lower half.
template <class D>
void pack_bytes(Warp& warp, const Op& op) {
  D* result = warp.lanes<D>(op.dst);
  for_each_active(warp.mask, [&](unsigned lane) {
    D value = 0;
    for (unsigned i = 0; i < op.count; ++i)
      value |= static_cast<D>(static_cast<D>(warp.lanes<std::uint16_t>(warp.listed(op, i))[lane] & 0xff)
                              << (8 * i));
    result[lane] = value;
  });
}

template <class D>
void unpack_bytes(Warp& warp, const Op& op) {
  const D* source = warp.lanes<D>(op.src[0]);
  for (unsigned i = 0; i < op.count; ++i)
    for_lanes(warp, warp.lanes<std::uint16_t>(warp.listed(op, i)),
              [=](unsigned lane) { return static_cast<std::uint16_t>(source[lane] >> (8 * i) & 0xff); });
}

struct Packing {
  Handler pack = nullptr;
  Handler unpack = nullptr;
};

Packing packing(unsigned whole, unsigned part) {
  switch (whole * 100 + part) {
    case 201:
      return {pack_bytes<std::uint16_t>, unpack_bytes<std::uint16_t>};
    case 401:
      return {pack_bytes<std::uint32_t>, unpack_bytes<std::uint32_t>};
    case 402:
      return {pack<std::uint32_t, std::uint16_t>, unpack<std::uint32_t, std::uint16_t>};
    case 802:
      return {pack<std::uint64_t, std::uint16_t>, unpack<std::uint64_t, std::uint16_t>};
    case 804:
      return {pack<std::uint64_t, std::uint32_t>, unpack<std::uint64_t, std::uint32_t>};
    case 1604:
      return {pack<Wide, std::uint32_t>, unpack<Wide, std::uint32_t>};
    case 1608:
      return {pack<Wide, std::uint64_t>, unpack<Wide, std::uint64_t>};
    default:
      return {};
  }
}

Type bits_type(unsigned bytes) {
  return bytes <= 1   ? Type::b8
         : bytes == 2 ? Type::b16
         : bytes == 4 ? Type::b32
         : bytes == 8 ? Type::b64
                      : Type::b128;
}

void decode_packing(Builder& builder, Type type, bool packs) {
  const unsigned whole = ptx::size_of(type);
  const Operand& vector = builder.operand(packs ? 1 : 0);
  const auto elements = builder.children(vector);
  if (elements.empty() || whole % elements.size() != 0)
    builder.unsupported("its vector does not fill the type");
  const auto part = static_cast<unsigned>(whole / elements.size());
  const Packing handlers = packing(whole, part);
  if (handlers.pack == nullptr) builder.unsupported("its vector does not fill the type");
  const Type part_type = bits_type(part);
  std::vector<Slot> slots;
  for (const Operand& element : elements)
    slots.push_back(packs ? builder.source(element, part_type) : builder.destination(element, part_type));
  const Slot whole_slot = packs ? builder.destination(0, type) : builder.source(1, type);
  const std::uint32_t listed = builder.list(slots);
  Op& op = builder.emit(packs ? handlers.pack : handlers.unpack, Class::move);
  (packs ? op.dst : op.src[0]) = whole_slot;
  op.aux = listed;
  op.count = static_cast<std::uint8_t>(elements.size());
}

struct ClockName {
  std::string_view name;
  unsigned bytes;
  unsigned shift;
};
constexpr ClockName kClocks[] = {
    {"%clock", 4, 0},       {"%clock_hi", 4, 32},      {"%clock64", 8, 0},
    {"%globaltimer", 8, 0}, {"%globaltimer_lo", 4, 0}, {"%globaltimer_hi", 4, 32},
};

bool decode_clock(Builder& builder, Type type) {
  const Operand& operand = builder.operand(1);
  if (operand.kind != OperandKind::special) return false;
  for (const ClockName& clock : kClocks) {
    if (operand.text != clock.name) continue;
    if (ptx::size_of(type) != clock.bytes) builder.unsupported("the clock has another size");
    const Slot dst = builder.destination(0, type);
    Op& op = builder.emit(clock.bytes == 8 ? read_clock<std::uint64_t> : read_clock<std::uint32_t>,
                          Class::move, Flow::yield);
    op.dst = dst;
    op.immediate = clock.shift;
    return true;
  }
  return false;
}

void decode_mov(Builder& builder) {
  builder.ignore({"volatile"});
  const Type type = builder.type();
  builder.expect_operands(2);
  if (type == Type::pred) {
    bool negated = false;
    const Slot dst = builder.predicate_destination(builder.operand(0));
    const Slot src = builder.predicate_source(builder.operand(1), &negated);
    Op& op = builder.emit(move_predicate, Class::move);
    op.dst = dst;
    op.src[0] = src;
    op.flags = negated ? 1 : 0;
    return;
  }
  if (ptx::size_of(type) == 0) builder.unsupported("it has no type");
  if (builder.operand(1).kind == OperandKind::vector) return decode_packing(builder, type, true);
  if (builder.operand(0).kind == OperandKind::vector) return decode_packing(builder, type, false);
  if (decode_clock(builder, type)) return;
  const Slot dst = builder.destination(0, type);
  const Slot src = builder.source(1, type);
  Op& op = builder.emit(move_of(std::max(ptx::size_of(type), 2U)), Class::move);
  op.dst = dst;
  op.src[0] = src;
}

// Adds (or takes off) the window of a space; null stays null.
template <class T>
void convert_address(Warp& warp, const Op& op) {
  const T added = static_cast<T>(op.immediate);
  map1<T, T>(warp, op, [=](T a) { return static_cast<T>(a + added); });
}

std::uint64_t window_of(Space space) {
  switch (space) {
    case Space::shared:
      return kSharedWindow;
    case Space::local:
      return kLocalWindow;
    case Space::param:
      return kParameterWindow;
    default:
      return 0;
  }
}

void decode_cvta(Builder& builder) {
  const bool to_space = builder.accept("to");
  const Space space = decode_space(builder);
  if (space == Space::generic) builder.unsupported("it names no state space");
  const Type type = builder.type();
  builder.expect_operands(2);
  const Slot dst = builder.destination(0, type);
  const Slot src = builder.source(1, type);
  Op& op = builder.emit(
      ptx::size_of(type) == 8 ? convert_address<std::uint64_t> : convert_address<std::uint32_t>, Class::move);
  op.dst = dst;
  op.src[0] = src;
  const std::uint64_t window = window_of(space);
  op.immediate = static_cast<std::int64_t>(to_space ? -window : window);
}

void is_in_space(Warp& warp, const Op& op) {
  const auto* addresses = warp.lanes<std::uint64_t>(op.src[0]);
  const auto window = static_cast<std::uint64_t>(op.immediate);
  set_predicate(warp, op.dst,
                window != 0
                    ? ballot([=](unsigned i) { return in_window(addresses[i], window); })
                    : ballot([=](unsigned i) { return addresses[i] < kWindows && addresses[i] != 0; }));
}

void decode_isspacep(Builder& builder) {
  const Space space = decode_space(builder);
  builder.expect_operands(2);
  const Slot dst = builder.predicate_destination(builder.operand(0));
  const Slot src = builder.source(1, Type::b64);
  Op& op = builder.emit(is_in_space, Class::compare);
  op.dst = dst;
  op.src[0] = src;
  op.immediate = static_cast<std::int64_t>(window_of(space));
}

template <class From, class To>
void resize(Warp& warp, const Op& op) {
  map1<To, From>(warp, op, [](From a) { return static_cast<To>(a); });
}

template <class T>
void frame_address(Warp& warp, const Op& op) {
  const T value = static_cast<T>(static_cast<std::uint64_t>(op.immediate) + warp.frame().local_base);
  for_lanes(warp, warp.lanes<T>(op.dst), [=](unsigned) { return value; });
}

constexpr Opcode kOpcodes[] = {{"mov", decode_mov}, {"cvta", decode_cvta}, {"isspacep", decode_isspacep}};

}  // namespace

Handler hidden_resize(unsigned from_bytes, unsigned to_bytes) {
  if (from_bytes == 4)
    return to_bytes == 8 ? resize<std::uint32_t, std::uint64_t> : resize<std::uint32_t, std::uint16_t>;
  return to_bytes == 4 ? resize<std::uint64_t, std::uint32_t> : resize<std::uint64_t, std::uint16_t>;
}

Handler hidden_frame_address(unsigned bytes) {
  return bytes == 8 ? frame_address<std::uint64_t> : frame_address<std::uint32_t>;
}

std::span<const Opcode> move_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
