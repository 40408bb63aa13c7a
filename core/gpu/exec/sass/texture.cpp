// SPDX-License-Identifier: Apache-2.0
// Reads of textures. The handle is a word of a constant bank or a uniform register; the coordinates are in
// registers one after the other, a layer first, and the level is in another; the components that a mask names
// go to two vectors of registers.
#include "gpu/exec/instructions/texture_access.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/sass/builder.hpp"
#include "gpu/exec/sass/decoder.hpp"

namespace manyscale::gpu {
namespace {

using U32 = std::uint32_t;

// What an instruction reads, in Op::immediate. Op::aux lists four results, then the words of the coordinates.
struct Fetch {
  Geometry geometry = Geometry::one;
  bool by_index = false;
  bool gathers = false;
  std::uint8_t component = 0;
  std::uint8_t mask = 15;  // components that are wanted
  std::array<std::uint8_t, 3> unused{};
};
static_assert(sizeof(Fetch) == sizeof(Op::immediate));

void fetch_texture(Warp& warp, const Op& op) {
  const auto fetch = std::bit_cast<Fetch>(op.immediate);
  const GeometryInfo& geometry = info_of(fetch.geometry);
  const U32* handles = warp.lanes<U32>(op.src[0]);
  std::array<Colour, kLanes> colours;
  for_each_active(warp.mask, [&](unsigned lane) {
    unsigned next = 4;
    const auto word = [&] { return warp.lanes<U32>(warp.listed(op, next++))[lane]; };
    TexturePoint point;
    point.geometry = fetch.geometry;
    point.by_index = fetch.by_index;
    point.gathers = fetch.gathers;
    point.component = fetch.component;
    if (geometry.layered) point.layer = word() & 0xffff;
    for (unsigned axis = 0; axis < geometry.coordinates; ++axis) {
      const U32 bits = word();
      point.indices[axis] = static_cast<std::int32_t>(bits);
      point.coordinates[axis] = std::bit_cast<float>(bits);
    }
    colours[lane] = read_point(warp, handles[lane], point, lane);
  });
  unsigned next = 0;
  for (unsigned component = 0; component < 4; ++component) {
    if ((fetch.mask >> component & 1) == 0) continue;
    auto* to = warp.lanes<U32>(warp.listed(op, next++));
    for_each_active(warp.mask, [&](unsigned lane) { to[lane] = colours[lane][component]; });
  }
  if (op.dst2 != kNoSlot) set_predicate(warp, op.dst2, kAllLanes);
}

Geometry geometry_of(MachineBuilder& builder) {
  struct Named {
    std::string_view name;
    Geometry geometry;
  };
  constexpr Named kNames[] = {{"1D", Geometry::one},
                              {"2D", Geometry::two},
                              {"3D", Geometry::three},
                              {"ARRAY_1D", Geometry::layers_of_one},
                              {"ARRAY_2D", Geometry::layers_of_two},
                              {"CUBE", Geometry::cube},
                              {"ARRAY_CUBE", Geometry::layers_of_cubes}};
  for (unsigned i = 0; i < builder.instruction().operand_count; ++i) {
    const sass::Operand& operand = builder.instruction().operands[i];
    if (operand.kind != sass::Operand::Kind::word) continue;
    for (sass::Modifier suffix : operand.suffix)
      for (const Named& entry : kNames)
        if (sass::name_of(suffix) == entry.name) return entry.geometry;
  }
  builder.unsupported("textures of this geometry are not supported");
}

void decode_fetch(MachineBuilder& builder, Fetch fetch) {
  builder.ignore({"SCR", "B", "LL", "LZ", "LB", "DC", "NODEP", "EF", "EL", "LU", "EU"});
  if (builder.accept("AOFFI") || builder.accept("PTP")) builder.unsupported("offsets of coordinates");
  fetch.geometry = geometry_of(builder);
  // Registers: two vectors of results, two of coordinates; then the handle.
  std::vector<const sass::Operand*> numbers;
  std::vector<const sass::Operand*> coordinates;
  const sass::Operand* uniform = nullptr;
  for (unsigned i = 0; i < builder.instruction().operand_count; ++i) {
    const sass::Operand& operand = builder.instruction().operands[i];
    if (operand.written) continue;
    if (operand.kind == sass::Operand::Kind::immediate) numbers.push_back(&operand);
    if (operand.kind == sass::Operand::Kind::general && operand.shown) coordinates.push_back(&operand);
    if (operand.kind == sass::Operand::Kind::uniform) uniform = &operand;
  }
  if (coordinates.empty() || builder.results() == 0) builder.unsupported("operands are missing");
  Slot handle = kNoSlot;
  std::size_t used = 0;
  if (uniform != nullptr && uniform->index != sass::kZeroUniformRegister) {
    handle = builder.decoder().layout().uniform_register(uniform->index);
    used = 1;
  } else {
    if (numbers.size() < 2) builder.unsupported("the texture is not named");
    handle = builder.decoder().bank_words(static_cast<unsigned>(numbers[0]->value),
                                          static_cast<std::uint32_t>(4 * numbers[1]->value), 1);
    used = 2;
  }
  if (numbers.size() > used) fetch.mask = static_cast<std::uint8_t>(numbers[used]->value & 15);
  std::vector<Slot> slots;
  // The first two components are in the vector that is named last.
  const unsigned wanted = static_cast<unsigned>(std::popcount(fetch.mask));
  const sass::Operand& first = builder.result(builder.results() - 1);
  const sass::Operand& second = builder.result(0);
  for (unsigned i = 0; i < 4; ++i) {
    const sass::Operand& operand = i < 2 ? first : second;
    const bool exists = i < wanted && builder.is_wanted(operand);
    slots.push_back(exists ? next_word(builder.destination(operand, 2), i % 2)
                           : builder.decoder().layout().discard());
  }
  const sass::Operand& vector = *coordinates[0];
  for (unsigned i = 0; i < 4; ++i)
    slots.push_back(vector.index + i >= sass::kZeroRegister ? builder.constant(0)
                                                            : next_word(general_register(vector.index), i));
  Op& op = builder.emit(fetch_texture, Class::texture);
  op.src[0] = handle;
  op.dst2 = builder.predicate_result(0);
  op.aux = builder.list(slots);
  op.count = static_cast<std::uint8_t>(slots.size());
  op.immediate = std::bit_cast<std::int64_t>(fetch);
}

void decode_tex(MachineBuilder& builder) {
  decode_fetch(builder, {});
}

void decode_tld(MachineBuilder& builder) {
  Fetch fetch;
  fetch.by_index = true;
  decode_fetch(builder, fetch);
}

void decode_tld4(MachineBuilder& builder) {
  Fetch fetch;
  fetch.gathers = true;
  const int component = builder.accept_one_of({"R", "G", "B", "A"});
  fetch.component = static_cast<std::uint8_t>(std::max(component, 0));
  decode_fetch(builder, fetch);
}

constexpr MachineOpcode kOpcodes[] = {{"TEX", decode_tex}, {"TLD", decode_tld}, {"TLD4", decode_tld4}};

}  // namespace

std::span<const MachineOpcode> machine_texture_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
