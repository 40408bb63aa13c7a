// SPDX-License-Identifier: Apache-2.0
// tex, tld4 and txq of texture objects and references. There are no mipmaps: level 0 is all a texture has.
#include "gpu/exec/instructions/texture_access.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>

#include "gpu/exec/address_space.hpp"
#include "gpu/exec/fault.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/numerics/half.hpp"
#include "gpu/exec/opcodes.hpp"

namespace manyscale::gpu {

using ptx::Operand;
using ptx::OperandKind;
using ptx::Type;

const Texture& find_texture(const Warp& warp, std::uint64_t handle, unsigned lane) {
  const TextureTable* table = warp.launch().textures;
  if (handle >= kHeapBase) {  // the address of a texture reference, in which the handle is
    const std::byte* reference = warp.launch().memory->checked(handle, sizeof handle);
    if (reference == nullptr) throw Fault("there is no texture reference at this address", lane);
    std::memcpy(&handle, reference, sizeof handle);
    if (handle == 0) throw Fault("the texture reference is not bound to memory", lane);
  }
  const Texture* texture = table != nullptr ? table->find(handle) : nullptr;
  if (texture == nullptr) throw Fault(std::to_string(handle) + " is not the handle of a texture", lane);
  return *texture;
}

void check_geometry(const Texture& texture, const GeometryInfo& geometry, unsigned lane) {
  const bool fits = texture.layered == geometry.layered && texture.cube == geometry.cube &&
                    (texture.layered || texture.cube || texture.dimensions == geometry.axes);
  if (fits) return;
  std::string kind = texture.layered ? "layered" : std::to_string(texture.dimensions) + "-dimensional";
  if (texture.cube) kind += " cube";
  throw Fault("a ." + std::string(geometry.name) + " access to a " + kind + " texture", lane);
}

Slot handle_of(Builder& builder, const Operand& operand) {
  if (operand.kind != OperandKind::address || operand.count == 0)
    builder.unsupported("'" + std::string(operand.text) + "' is not a texture in brackets");
  const Operand& base = builder.children(operand)[0];
  return builder.source(base, Type::u64);
}

void add_vector(Builder& builder, const Operand& operand, unsigned count, Type first, Type others,
                std::vector<Slot>& slots) {
  const bool is_vector = operand.kind == OperandKind::vector;
  if (is_vector ? operand.count < count : count != 1)
    builder.unsupported("'" + std::string(operand.text) + "' should be " + std::to_string(count) + " values");
  for (unsigned i = 0; i < count; ++i)
    slots.push_back(
        builder.source(is_vector ? builder.children(operand)[i] : operand, i == 0 ? first : others));
}

namespace {

// What an instruction reads, in Op::immediate. Op::aux lists the registers of the results, the coordinates (a
// layer first), the offsets and the level.
struct Read {
  Geometry geometry = Geometry::one;
  Type result = Type::f32;
  std::uint8_t results = 4;
  bool by_index = false;     // integers, not filtered
  std::uint8_t offsets = 0;  // coordinates that have one
  bool has_level = false;
  std::uint8_t component = 0;  // of tld4
  bool gathers = false;

  const GeometryInfo& info() const { return info_of(geometry); }
  unsigned coordinates() const { return info().coordinates + (info().layered ? 1 : 0); }
};
static_assert(sizeof(Read) == sizeof(Op::immediate));

TextureReader open(Warp& warp, const Texture& texture, const GeometryInfo& geometry, unsigned lane) {
  check_geometry(texture, geometry, lane);
  const std::byte* memory = warp.launch().memory->checked(texture.memory, texture.bytes);
  if (memory == nullptr) throw Fault("the memory of the texture has been freed", lane);
  TextureReader reader(texture, memory, geometry.axes, warp.access->texture);
  if (reader.bytes() > texture.bytes) throw Fault("the texture is larger than its memory", lane);
  return reader;
}

// The face of a cube that a direction points at, and where on it, from 0 to 1.
unsigned find_face(TextureReader::Coordinates& direction) {
  const auto [x, y, z] = direction;
  const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  unsigned face = 0;
  float major = 0, s = 0, t = 0;
  if (ax >= ay && ax >= az) {
    face = x >= 0 ? 0 : 1;
    major = ax;
    s = x >= 0 ? -z : z;
    t = -y;
  } else if (ay >= az) {
    face = y >= 0 ? 2 : 3;
    major = ay;
    s = x;
    t = y >= 0 ? z : -z;
  } else {
    face = z >= 0 ? 4 : 5;
    major = az;
    s = z >= 0 ? x : -x;
    t = -y;
  }
  direction = {(s / major + 1) / 2, (t / major + 1) / 2, 0};
  return face;
}

void check_level(Warp& warp, Slot slot, bool by_index, unsigned lane) {
  const double level =
      by_index ? warp.lanes<std::int32_t>(slot)[lane] : double{warp.lanes<float>(slot)[lane]};
  if (level >= 0.5)
    throw Fault("mipmap level " + std::to_string(level) + " of a texture that has level 0 only", lane);
}

}  // namespace

Colour read_point(Warp& warp, std::uint64_t handle, TexturePoint point, unsigned lane) {
  const Texture& texture = find_texture(warp, handle, lane);
  if (point.geometry == Geometry::two && texture.dimensions == 1 && !texture.layered && !texture.cube)
    point.geometry = Geometry::one;
  const GeometryInfo& geometry = info_of(point.geometry);
  const TextureReader reader = open(warp, texture, geometry, lane);
  std::uint32_t layer = point.layer;
  if (geometry.cube) layer = layer * 6 + find_face(point.coordinates);
  return point.by_index  ? reader.fetch(point.indices, point.offsets, layer)
         : point.gathers ? reader.gather(point.coordinates, point.offsets, layer, point.component)
                         : reader.sample(point.coordinates, point.offsets, layer);
}

namespace {

void write_results(Warp& warp, const Op& op, const Read& read, const Texture& texture, const Colour& colour,
                   unsigned lane) {
  const auto half = [&](unsigned i) {
    return texture.reads_floats() ? to_f16(std::bit_cast<float>(colour[i])).bits
                                  : static_cast<std::uint16_t>(colour[i]);
  };
  for (unsigned i = 0; i < read.results; ++i) {
    const Slot slot = warp.listed(op, i);
    if (read.result == Type::f16)
      warp.lanes<std::uint16_t>(slot)[lane] = half(i);
    else if (read.result == Type::f16x2)
      warp.lanes<std::uint32_t>(slot)[lane] = half(2 * i) | static_cast<std::uint32_t>(half(2 * i + 1)) << 16;
    else
      warp.lanes<std::uint32_t>(slot)[lane] = colour[i];
  }
}

void read_texture(Warp& warp, const Op& op) {
  const auto read = std::bit_cast<Read>(op.immediate);
  const GeometryInfo& geometry = read.info();
  const auto* handles = warp.lanes<const std::uint64_t>(op.src[0]);
  const Texture* texture = nullptr;
  std::optional<TextureReader> reader;
  std::uint64_t last = 0;
  warp.access->texture.clear();
  for_each_active(warp.mask, [&](unsigned lane) {
    if (texture == nullptr || handles[lane] != last) {
      last = handles[lane];
      texture = &find_texture(warp, last, lane);
      reader.emplace(open(warp, *texture, geometry, lane));
    }
    unsigned next = read.results;
    std::uint32_t layer = geometry.layered ? warp.lanes<std::uint32_t>(warp.listed(op, next++))[lane] : 0;
    TextureReader::Coordinates coordinates{};
    TextureReader::Indices indices{}, offsets{};
    for (unsigned i = 0; i < geometry.coordinates; ++i) {
      const Slot slot = warp.listed(op, next++);
      indices[i] = warp.lanes<std::int32_t>(slot)[lane];
      coordinates[i] = std::bit_cast<float>(indices[i]);
    }
    for (unsigned i = 0; i < read.offsets; ++i)
      offsets[i] = warp.lanes<std::int32_t>(warp.listed(op, next++))[lane];
    if (read.has_level) check_level(warp, warp.listed(op, next), read.by_index, lane);
    if (geometry.cube) layer = layer * 6 + find_face(coordinates);
    const Colour colour = read.by_index  ? reader->fetch(indices, offsets, layer)
                          : read.gathers ? reader->gather(coordinates, offsets, layer, read.component)
                                         : reader->sample(coordinates, offsets, layer);
    write_results(warp, op, read, *texture, colour, lane);
  });
  if (op.dst2 != kNoSlot) set_predicate(warp, op.dst2, kAllLanes);
}

// --- Decoding -------------------------------------------------------------------------------------

unsigned results_of(Builder& builder, Type type) {
  const bool two = type == Type::f16x2;
  if (!builder.accept(two ? "v2" : "v4"))
    builder.unsupported(two ? "it should have two results (.v2)" : "it should have four results (.v4)");
  return two ? 2 : 4;
}

// Results, in braces and perhaps with a predicate, then [texture, {coordinates}]. Further operands are the
// caller's.
struct ReadOperands {
  Read read;
  Slot handle = kNoSlot;
  Slot resident = kNoSlot;
  std::vector<Slot> slots;
};

ReadOperands decode_read(Builder& builder) {
  ReadOperands result;
  Read& read = result.read;
  const int geometry = builder.accept_one_of({"1d", "2d", "3d", "a1d", "a2d", "cube", "acube"});
  if (geometry < 0) builder.unsupported("textures of this geometry are not supported");
  read.geometry = static_cast<Geometry>(geometry);
  read.result = builder.type();
  const Type coordinate = builder.type();
  if (coordinate != Type::f32 && coordinate != Type::s32) builder.unsupported("coordinates are .f32 or .s32");
  read.by_index = coordinate == Type::s32;
  if (read.by_index && read.info().cube) builder.unsupported("cubes are read with .f32 coordinates");
  switch (read.result) {
    case Type::f32:
    case Type::s32:
    case Type::u32:
    case Type::f16:
    case Type::f16x2:
      break;
    default:
      builder.unsupported("textures give .f32, .s32, .u32, .f16 or .f16x2");
  }
  read.results = static_cast<std::uint8_t>(results_of(builder, read.result));

  const Operand* destination = &builder.operand(0);
  if (destination->kind == OperandKind::pair) {
    const auto both = builder.children(*destination);
    result.resident = builder.predicate_destination(both[1]);
    destination = &both[0];
  }
  if (destination->kind != OperandKind::vector || destination->count != read.results)
    builder.unsupported("'" + std::string(destination->text) + "' should be " + std::to_string(read.results) +
                        " registers in braces");
  for (const Operand& child : builder.children(*destination))
    result.slots.push_back(builder.destination(child, read.result));

  const Operand& address = builder.operand(1);
  result.handle = handle_of(builder, address);
  if (address.count > 2) builder.unsupported("samplers apart from textures are not supported");
  if (address.count < 2) builder.unsupported("it has no coordinates");
  const Operand& coordinates = builder.children(address)[1];
  const Type first = read.info().layered ? Type::b32 : coordinate;
  add_vector(builder, coordinates, read.coordinates(), first, coordinate, result.slots);
  return result;
}

void emit_read(Builder& builder, const ReadOperands& operands) {
  const std::uint32_t list = builder.list(operands.slots);
  Op& op = builder.emit(read_texture, Class::texture);
  op.src[0] = operands.handle;
  op.dst2 = operands.resident;
  op.aux = list;
  op.count = static_cast<std::uint8_t>(operands.slots.size());
  op.immediate = std::bit_cast<std::int64_t>(operands.read);
}

// A vector of offsets from operand `index` on; a scalar there is what a depth texture is compared with.
void add_offsets(Builder& builder, unsigned index, ReadOperands& operands) {
  if (index >= builder.operands()) return;
  const Operand& operand = builder.operand(index);
  if (operand.kind != OperandKind::vector || index + 1 != builder.operands())
    builder.unsupported("depth textures are not supported");
  operands.read.offsets = static_cast<std::uint8_t>(operands.read.info().axes);
  add_vector(builder, operand, operands.read.offsets, Type::s32, Type::s32, operands.slots);
}

void decode_tex(Builder& builder) {
  builder.expect_operands(2, 6);
  const bool level = builder.accept("level"), gradients = builder.accept("grad");
  builder.accept("base");
  ReadOperands operands = decode_read(builder);
  // Gradients choose a level, and there is only one.
  add_offsets(builder, 2 + (level ? 1 : gradients ? 2 : 0), operands);
  if (level) {
    operands.read.has_level = true;
    operands.slots.push_back(builder.source(2, operands.read.by_index ? Type::s32 : Type::f32));
  }
  emit_read(builder, operands);
}

void decode_tld4(Builder& builder) {
  builder.expect_operands(2, 4);
  const int component = builder.accept_one_of({"r", "g", "b", "a"});
  if (component < 0) builder.unsupported("it does not name a component");
  ReadOperands operands = decode_read(builder);
  if (operands.read.info().axes != 2 || operands.read.by_index)
    builder.unsupported("it takes .2d, .a2d, .cube or .acube, and .f32 coordinates");
  operands.read.gathers = true;
  operands.read.component = static_cast<std::uint8_t>(component);
  add_offsets(builder, 2, operands);
  emit_read(builder, operands);
}

// --- txq ------------------------------------------------------------------------------------------

// Formats by the numbers of OpenCL: as they are, or read as parts of their largest value.
constexpr std::array<std::uint32_t, 8> kFormats{0x10da, 0x10db, 0x10dc, 0x10d7,
                                                0x10d8, 0x10d9, 0x10dd, 0x10de};

std::uint32_t channel_data_type(const Texture& texture) {
  if (texture.normalized_values) {
    switch (texture.format) {
      case Texture::Format::s8:
        return 0x10d0;
      case Texture::Format::s16:
        return 0x10d1;
      case Texture::Format::u8:
        return 0x10d2;
      case Texture::Format::u16:
        return 0x10d3;
      default:
        break;
    }
  }
  return kFormats[static_cast<unsigned>(texture.format)];
}

std::uint32_t channel_order(const Texture& texture) {
  return texture.channels == 1 ? 0x10b0 : texture.channels == 2 ? 0x10b2 : 0x10b5;
}

template <unsigned Axis>
std::uint32_t extent(const Texture& texture) {
  return texture.extent[Axis];
}

template <unsigned Axis>
std::uint32_t address_mode(const Texture& texture) {
  // In the order wrap, mirror, clamp_ogl, clamp_to_edge, clamp_to_border.
  constexpr std::array<std::uint32_t, 4> kModes{0, 3, 1, 4};
  return kModes[static_cast<unsigned>(texture.address[Axis])];
}

std::uint32_t layers(const Texture& texture) {
  return texture.layered ? texture.extent[texture.dimensions < 2 ? 1 : 2] : 0;
}

std::uint32_t filter_mode(const Texture& texture) {
  return texture.filter == Texture::Filter::linear ? 1 : 0;
}

std::uint32_t has_normalized_coordinates(const Texture& texture) {
  return texture.normalized_coordinates ? 1 : 0;
}

std::uint32_t has_texel_coordinates(const Texture& texture) {
  return texture.normalized_coordinates ? 0 : 1;
}

std::uint32_t one(const Texture&) {
  return 1;
}

using Answer = std::uint32_t (*)(const Texture&);

template <Answer answer>
void query(Warp& warp, const Op& op) {
  const auto* handles = warp.lanes<const std::uint64_t>(op.src[0]);
  warp.access->texture.clear();
  auto* results = warp.lanes<std::uint32_t>(op.dst);
  for_each_active(warp.mask, [&](unsigned lane) {
    if (op.src[1] != kNoSlot) check_level(warp, op.src[1], true, lane);
    results[lane] = answer(find_texture(warp, handles[lane], lane));
  });
}

struct Query {
  std::string_view name;
  Handler handler;
};

constexpr Query kQueries[] = {
    {"width", query<extent<0>>},
    {"height", query<extent<1>>},
    {"depth", query<extent<2>>},
    {"channel_data_type", query<channel_data_type>},
    {"channel_order", query<channel_order>},
    {"normalized_coords", query<has_normalized_coordinates>},
    {"array_size", query<layers>},
    {"num_mipmap_levels", query<one>},
    {"num_samples", query<one>},
    {"force_unnormalized_coords", query<has_texel_coordinates>},
    {"filter_mode", query<filter_mode>},
    {"addr_mode_0", query<address_mode<0>>},
    {"addr_mode_1", query<address_mode<1>>},
    {"addr_mode_2", query<address_mode<2>>},
};

void decode_txq(Builder& builder) {
  builder.expect_operands(2, 3);
  const bool level = builder.accept("level");
  if (builder.type() != Type::b32) builder.unsupported("answers are .b32");
  Handler handler = nullptr;
  for (const Query& entry : kQueries)
    if (handler == nullptr && builder.accept(entry.name)) handler = entry.handler;
  if (handler == nullptr) builder.unsupported("this question is not supported");
  const Slot dst = builder.destination(0, Type::b32);
  const Slot handle = handle_of(builder, builder.operand(1));
  const Slot lod = level ? builder.source(2, Type::b32) : kNoSlot;
  Op& op = builder.emit(handler, Class::texture);
  op.dst = dst;
  op.src = {handle, lod, kNoSlot, kNoSlot};
}

constexpr Opcode kOpcodes[] = {{"tex", decode_tex}, {"tld4", decode_tld4}, {"txq", decode_txq}};

}  // namespace

std::span<const Opcode> texture_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
