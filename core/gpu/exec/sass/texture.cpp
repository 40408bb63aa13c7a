// SPDX-License-Identifier: Apache-2.0
// Reads of textures. The handle is a word of a constant bank or a uniform register; the coordinates, a layer
// first, then a level and offsets, are in two vectors of registers; the components that a mask names go to
// two others.
#include "gpu/exec/instructions/texture_access.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/sass/builder.hpp"
#include "gpu/exec/sass/decoder.hpp"
#include "gpu/exec/sass/texture_handle.hpp"

namespace manyscale::gpu {
namespace {

using U32 = std::uint32_t;

// What an instruction reads, in Op::immediate. Op::aux lists four results, then the words of the coordinates.
struct Fetch {
  Geometry geometry = Geometry::one;
  bool by_index = false;
  bool gathers = false;
  std::uint8_t component = 0;
  std::uint8_t mask = 15;        // components that are wanted
  std::uint8_t offset_bits = 0;  // of each axis in the word in src[1]; 0: there are no offsets
  bool layer_is_last = false;
  std::uint8_t unused = 0;
};
static_assert(sizeof(Fetch) == sizeof(Op::immediate));

void fetch_texture(Warp& warp, const Op& op) {
  const auto fetch = std::bit_cast<Fetch>(op.immediate);
  const GeometryInfo& geometry = info_of(fetch.geometry);
  const U32* handles = warp.lanes<U32>(op.src[0]);
  std::array<Colour, kLanes> colours;
  warp.access->texture.clear();
  for_each_active(warp.mask, [&](unsigned lane) {
    unsigned next = 4;
    const auto word = [&] { return warp.lanes<U32>(warp.listed(op, next++))[lane]; };
    TexturePoint point;
    point.geometry = fetch.geometry;
    point.by_index = fetch.by_index;
    point.gathers = fetch.gathers;
    point.component = fetch.component;
    if (geometry.layered && !fetch.layer_is_last) point.layer = word() & 0xffff;
    for (unsigned axis = 0; axis < geometry.coordinates; ++axis) {
      const U32 bits = word();
      point.indices[axis] = static_cast<std::int32_t>(bits);
      point.coordinates[axis] = std::bit_cast<float>(bits);
    }
    if (geometry.layered && fetch.layer_is_last) point.layer = word() & 0xffff;
    if (fetch.offset_bits != 0) {
      const U32 packed = warp.lanes<U32>(op.src[1])[lane];
      const unsigned above = 32 - fetch.offset_bits;
      for (unsigned axis = 0; axis < geometry.coordinates; ++axis)
        point.offsets[axis] =
            static_cast<std::int32_t>(packed >> axis * fetch.offset_bits << above) >> static_cast<int>(above);
    }
    colours[lane] = read_point(warp, handles[lane], point, lane);
  });
  unsigned next = 0;
  for (unsigned component = 0; component < 4; ++component) {
    if ((fetch.mask >> component & 1) == 0) continue;
    auto* to = warp.lanes<U32>(warp.listed(op, next++));
    for_each_active(warp.mask, [&](unsigned lane) { to[lane] = colours[lane][component]; });
  }
  // Which lanes miss what they read: all of it is there.
  if (op.dst2 != kNoSlot) set_predicate(warp, op.dst2, 0);
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
    if (operand.kind != sass::OperandKind::word) continue;
    for (sass::Modifier suffix : operand.suffix)
      for (const Named& entry : kNames)
        if (sass::name_of(suffix) == entry.name) return entry.geometry;
  }
  builder.unsupported("textures of this geometry are not supported");
}

// Offsets of texels that an instruction adds: of each axis some bits of a word, with a sign.
void accept_offsets(MachineBuilder& builder, Fetch& fetch, unsigned bits) {
  if (builder.accept("PTP")) builder.unsupported("four offsets");
  if (builder.accept("AOFFI")) fetch.offset_bits = static_cast<std::uint8_t>(bits);
}

void decode_fetch(MachineBuilder& builder, Fetch fetch) {
  const bool has_level = builder.accept("LL") || builder.accept("LB");
  const bool scattered = builder.accept("SCR");
  builder.ignore({"LZ", "DC", "NODEP", "EF", "EL", "LU", "EU", "NDV"});
  fetch.geometry = geometry_of(builder);
  std::vector<const sass::Operand*> coordinates;
  for (unsigned i = 0; i < builder.instruction().operand_count; ++i) {
    const sass::Operand& operand = builder.instruction().operands[i];
    if (!operand.written && operand.kind == sass::OperandKind::general && operand.shown)
      coordinates.push_back(&operand);
  }
  if (coordinates.empty() || builder.results() == 0) builder.unsupported("operands are missing");
  const Slot handle = texture_handle(builder);
  fetch.mask = texture_mask(builder);
  std::vector<Slot> slots = texture_results(builder, fetch.mask);
  const auto word = [&](const sass::Operand& vector, unsigned i) {
    return vector.index + i >= sass::kZeroRegister ? builder.constant(0)
                                                   : next_word(general_register(vector.index), i);
  };
  // Scattered ones fill two registers of the first vector, then go on in the second.
  const GeometryInfo& geometry = info_of(fetch.geometry);
  const unsigned needed = geometry.coordinates + (geometry.layered ? 1 : 0);
  const unsigned inside = scattered ? 2 : 4;
  if (needed > inside && coordinates.size() < 2) builder.unsupported("coordinates are missing");
  for (unsigned i = 0; i < needed; ++i)
    slots.push_back(i < inside ? word(*coordinates[0], i) : word(*coordinates[1], i - inside));
  Slot offsets = kNoSlot;
  if (fetch.offset_bits != 0) {
    if (coordinates.size() < 2) builder.unsupported("the offsets are missing");
    offsets = word(*coordinates[1], (needed > inside ? needed - inside : 0) + (has_level ? 1 : 0));
  }
  Op& op = builder.emit(fetch_texture, Class::texture);
  op.src[0] = handle;
  op.src[1] = offsets;
  op.dst2 = builder.predicate_result(0);
  op.aux = builder.list(slots);
  op.count = static_cast<std::uint8_t>(slots.size());
  op.immediate = std::bit_cast<std::int64_t>(fetch);
}

constexpr unsigned kOffsetBits = 4;
constexpr unsigned kGatherOffsetBits = 8;

void decode_tex(MachineBuilder& builder) {
  Fetch fetch;
  builder.ignore({"B"});
  accept_offsets(builder, fetch, kOffsetBits);
  decode_fetch(builder, fetch);
}

// With derivatives, which choose a level: textures have one.
void decode_txd(MachineBuilder& builder) {
  Fetch fetch;
  fetch.layer_is_last = true;
  builder.ignore({"B"});
  decode_fetch(builder, fetch);
}

void decode_tld(MachineBuilder& builder) {
  Fetch fetch;
  fetch.by_index = true;
  builder.ignore({"B", "CL"});
  accept_offsets(builder, fetch, kOffsetBits);
  decode_fetch(builder, fetch);
}

void decode_tld4(MachineBuilder& builder) {
  Fetch fetch;
  fetch.gathers = true;
  const int component = builder.accept_one_of({"R", "G", "B", "A"});
  fetch.component = static_cast<std::uint8_t>(std::max(component, 0));
  accept_offsets(builder, fetch, kGatherOffsetBits);
  decode_fetch(builder, fetch);
}

constexpr MachineOpcode kOpcodes[] = {
    {"TEX", decode_tex}, {"TLD", decode_tld}, {"TLD4", decode_tld4}, {"TXD", decode_txd}};

// The numbers among the operands.
std::vector<const sass::Operand*> numbers_of(const MachineBuilder& builder) {
  std::vector<const sass::Operand*> numbers;
  for (unsigned i = 0; i < builder.instruction().operand_count; ++i)
    if (builder.instruction().operands[i].kind == sass::OperandKind::immediate)
      numbers.push_back(&builder.instruction().operands[i]);
  return numbers;
}

// The uniform register that names the texture; null if numbers do.
const sass::Operand* uniform_of(const MachineBuilder& builder) {
  const sass::Operand* found = builder.find(sass::OperandKind::uniform);
  return found != nullptr && found->index != sass::kZeroUniformRegister ? found : nullptr;
}

}  // namespace

Slot texture_handle(MachineBuilder& builder) {
  if (const sass::Operand* uniform = uniform_of(builder))
    return builder.decoder().layout().uniform_register(uniform->index);
  const auto numbers = numbers_of(builder);
  if (numbers.size() < 2) builder.unsupported("the texture is not named");
  return builder.decoder().bank_words(static_cast<unsigned>(numbers[0]->value),
                                      static_cast<std::uint32_t>(4 * numbers[1]->value), 1);
}

std::uint8_t texture_mask(MachineBuilder& builder) {
  const auto numbers = numbers_of(builder);
  const std::size_t used = uniform_of(builder) != nullptr ? 1 : 2;
  return numbers.size() > used ? static_cast<std::uint8_t>(numbers[used]->value & 15) : 15;
}

std::vector<Slot> texture_results(MachineBuilder& builder, std::uint8_t mask) {
  const unsigned wanted = static_cast<unsigned>(std::popcount(mask));
  const sass::Operand& first = builder.result(builder.results() - 1);
  const sass::Operand& second = builder.result(0);
  std::vector<Slot> slots;
  for (unsigned i = 0; i < 4; ++i) {
    const sass::Operand& operand = i < 2 ? first : second;
    const bool exists = i < wanted && builder.is_wanted(operand);
    slots.push_back(exists ? next_word(builder.destination(operand, 2), i % 2)
                           : builder.decoder().layout().discard());
  }
  return slots;
}

std::span<const MachineOpcode> machine_texture_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
