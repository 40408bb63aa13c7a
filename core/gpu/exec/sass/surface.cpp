// SPDX-License-Identifier: Apache-2.0
// Surfaces: loads, stores and updates of elements by coordinates, of which the first counts bytes and a layer
// comes last; queries of textures.
#include <cstring>

#include "gpu/exec/instructions/atomic_lanes.hpp"
#include "gpu/exec/instructions/surface_access.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/sass/builder.hpp"
#include "gpu/exec/sass/decoder.hpp"
#include "gpu/exec/sass/texture_handle.hpp"

namespace manyscale::gpu {
namespace {

using sass::Operand;
using sass::OperandKind;
using I32 = std::int32_t;
using I64 = std::int64_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

enum class Update : std::uint8_t { none, add, minimum, maximum, increment, decrement, all, any, odd };

// What an instruction does, in Op::immediate. The handle is in src[0], the coordinates in src[1] and on, the
// value in src[2] or dst.
struct Access {
  Geometry geometry = Geometry::one;
  Outside outside = Outside::trap;
  std::uint8_t bytes = 4;
  std::uint8_t words = 1;
  Update update = Update::none;
  bool is_signed = false;
  std::array<std::uint8_t, 2> unused{};
};
static_assert(sizeof(Access) == sizeof(Op::immediate));

std::byte* address_of(Warp& warp, const Op& op, const Access& access, unsigned lane) {
  const GeometryInfo& geometry = info_of(access.geometry);
  const Texture& surface = find_texture(warp, warp.lanes<U32>(op.src[0])[lane], lane);
  SurfaceElement element;
  element.geometry = access.geometry;
  element.outside = access.outside;
  element.bytes = access.bytes;
  for (unsigned axis = 0; axis < geometry.axes; ++axis)
    element.coordinates[axis] = warp.lanes<I32>(next_word(op.src[1], axis))[lane];
  if (geometry.layered) element.layer = warp.lanes<I32>(next_word(op.src[1], geometry.axes))[lane];
  return surface_address(warp, surface, element, lane);
}

void load(Warp& warp, const Op& op) {
  warp.access->mask = 0;
  const auto access = std::bit_cast<Access>(op.immediate);
  for_each_active(warp.mask, [&](unsigned lane) {
    std::array<U32, 4> value{};
    if (const std::byte* from = address_of(warp, op, access, lane))
      std::memcpy(value.data(), from, access.bytes);
    for (unsigned k = 0; k < access.words; ++k) warp.lanes<U32>(next_word(op.dst, k))[lane] = value[k];
  });
}

void store(Warp& warp, const Op& op) {
  warp.access->mask = 0;
  const auto access = std::bit_cast<Access>(op.immediate);
  for_each_active(warp.mask, [&](unsigned lane) {
    std::array<U32, 4> value{};
    for (unsigned k = 0; k < access.words; ++k) value[k] = warp.lanes<U32>(next_word(op.src[2], k))[lane];
    if (std::byte* to = address_of(warp, op, access, lane)) std::memcpy(to, value.data(), access.bytes);
  });
}

template <class T, class Signed>
T updated(const Access& access, T old, T value) {
  const auto a = static_cast<Signed>(old);
  const auto b = static_cast<Signed>(value);
  switch (access.update) {
    case Update::add:
      return old + value;
    case Update::minimum:
      return access.is_signed ? static_cast<T>(std::min(a, b)) : std::min(old, value);
    case Update::maximum:
      return access.is_signed ? static_cast<T>(std::max(a, b)) : std::max(old, value);
    case Update::increment:
      return old >= value ? 0 : old + 1;
    case Update::decrement:
      return old == 0 || old > value ? value : old - 1;
    case Update::all:
      return old & value;
    case Update::any:
      return old | value;
    default:
      return old ^ value;
  }
}

void update(Warp& warp, const Op& op) {
  warp.access->mask = 0;
  const auto access = std::bit_cast<Access>(op.immediate);
  for_each_active(warp.mask, [&](unsigned lane) {
    std::byte* at = address_of(warp, op, access, lane);
    if (at == nullptr) return;
    const U32 low = warp.lanes<U32>(op.src[2])[lane];
    if (access.words == 1) {
      atomic_lanes::modify<U32>(at, true, [&](U32 old) { return updated<U32, I32>(access, old, low); });
    } else {
      const U64 value = low | U64{warp.lanes<U32>(next_word(op.src[2]))[lane]} << 32;
      atomic_lanes::modify<U64>(at, true, [&](U64 old) { return updated<U64, I64>(access, old, value); });
    }
  });
}

// Modifiers of all: the geometry, and what happens outside.
Access decode_access(MachineBuilder& builder) {
  constexpr Geometry kGeometries[] = {Geometry::one, Geometry::layers_of_one, Geometry::two,
                                      Geometry::layers_of_two, Geometry::three};
  if (!builder.accept("D") || !builder.accept("BA"))
    builder.unsupported("surfaces are accessed as bits, not by their format");
  Access access;
  const int geometry = builder.accept_one_of({"1D", "1D_ARRAY", "2D", "2D_ARRAY", "3D"});
  if (geometry < 0) builder.unsupported("surfaces of this geometry are not supported");
  access.geometry = kGeometries[geometry];
  access.outside = builder.accept("TRAP")  ? Outside::trap
                   : builder.accept("IGN") ? Outside::zero
                                           : Outside::clamp;
  builder.ignore({"STRONG", "CTA", "SM", "GPU", "SYS", "CONSTANT"});
  return access;
}

Slot coordinates_of(MachineBuilder& builder, const Access& access) {
  const Operand* address = builder.find(OperandKind::address);
  const GeometryInfo& geometry = info_of(access.geometry);
  const unsigned words = geometry.axes + (geometry.layered ? 1 : 0);
  if (address == nullptr || address->index + words > sass::kZeroRegister)
    builder.unsupported("coordinates are missing");
  return general_register(address->index);
}

void accept_size(MachineBuilder& builder, Access& access) {
  constexpr std::array<std::uint8_t, 6> kBytes = {1, 1, 2, 2, 8, 16};
  const int size = builder.accept_one_of({"U8", "S8", "U16", "S16", "64", "128"});
  if (size == 1 || size == 3) builder.unsupported("elements with a sign");
  if (size >= 0) access.bytes = kBytes[static_cast<unsigned>(size)];
  access.words = static_cast<std::uint8_t>(std::max(1, access.bytes / 4));
}

void finish(MachineBuilder& builder, Op& op, const Access& access, Slot handle, Slot coordinates) {
  op.src[0] = handle;
  op.src[1] = coordinates;
  op.immediate = std::bit_cast<I64>(access);
  op.dst2 = builder.predicate_result(0);
}

void decode_load(MachineBuilder& builder) {
  Access access = decode_access(builder);
  accept_size(builder, access);
  const Slot coordinates = coordinates_of(builder, access);
  const Slot handle = texture_handle(builder);
  const Slot dst = builder.destination(0, access.words);
  if (builder.predicate_result(0) != kNoSlot) builder.unsupported("a load that gives a predicate");
  Op& op = builder.emit(load, Class::texture);
  op.dst = dst;
  finish(builder, op, access, handle, coordinates);
}

void decode_store(MachineBuilder& builder) {
  Access access = decode_access(builder);
  accept_size(builder, access);
  const Slot coordinates = coordinates_of(builder, access);
  const Slot handle = texture_handle(builder);
  const Slot value = builder.source(0, access.words);
  Op& op = builder.emit(store, Class::texture);
  op.src[2] = value;
  finish(builder, op, access, handle, coordinates);
}

void decode_update(MachineBuilder& builder) {
  Access access = decode_access(builder);
  const int kind = builder.accept_one_of({"ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR"});
  if (kind < 0) builder.unsupported("no such operation");
  access.update = static_cast<Update>(kind + 1);
  access.is_signed = builder.accept("S32") || builder.accept("S64");
  if (builder.accept("U64")) access.bytes = 8;
  access.words = access.bytes / 4;
  const Slot coordinates = coordinates_of(builder, access);
  const Slot handle = texture_handle(builder);
  const Slot value = builder.source(0, access.words);
  Op& op = builder.emit(update, Class::texture);
  op.src[2] = value;
  finish(builder, op, access, handle, coordinates);
}

// --- TXQ: the extents of a texture, as far as a mask asks for them, and its levels

void query(Warp& warp, const Op& op) {
  warp.access->texture.clear();
  for_each_active(warp.mask, [&](unsigned lane) {
    const Texture& texture = find_texture(warp, warp.lanes<U32>(op.src[0])[lane], lane);
    const std::array<U32, 4> values = {texture.extent[0], texture.extent[1], texture.extent[2], 1};
    unsigned next = 0;
    for (unsigned k = 0; k < values.size(); ++k)
      if ((op.immediate >> k & 1) != 0) warp.lanes<U32>(warp.listed(op, next++))[lane] = values[k];
  });
}

void decode_query(MachineBuilder& builder) {
  const Slot handle = texture_handle(builder);
  const std::uint8_t mask = texture_mask(builder);
  const std::vector<Slot> results = texture_results(builder, mask);
  Op& op = builder.emit(query, Class::texture);
  op.src[0] = handle;
  op.aux = builder.list(results);
  op.count = static_cast<std::uint8_t>(results.size());
  op.immediate = mask;
}

constexpr MachineOpcode kOpcodes[] = {
    {"SULD", decode_load}, {"SUST", decode_store}, {"SURED", decode_update}, {"TXQ", decode_query}};

}  // namespace

std::span<const MachineOpcode> machine_surface_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
