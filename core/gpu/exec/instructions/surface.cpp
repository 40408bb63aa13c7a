// SPDX-License-Identifier: Apache-2.0
// suld and sust of surface objects: arrays that kernels read and write by coordinates, as plain bits. A
// surface has an entry in the device's table of textures.
#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "gpu/exec/fault.hpp"
#include "gpu/exec/instructions/surface_access.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/opcodes.hpp"

namespace manyscale::gpu {
namespace {

using ptx::Operand;
using ptx::OperandKind;
using ptx::Type;

// What an instruction moves, in Op::immediate. Op::aux lists the registers of the elements and the
// coordinates, a layer first.
struct Access {
  Geometry geometry = Geometry::one;
  Outside outside = Outside::trap;
  std::uint8_t bytes = 4;  // of an element in memory
  std::uint8_t register_bytes = 4;
  std::uint8_t elements = 1;
  std::array<std::uint8_t, 3> unused{};

  const GeometryInfo& info() const { return info_of(geometry); }
  unsigned coordinates() const { return info().coordinates + (info().layered ? 1 : 0); }
};
static_assert(sizeof(Access) == sizeof(Op::immediate));

// Brings a coordinate into its range; false if nothing is there.
bool resolve_index(std::int64_t& index, std::int64_t end, Outside outside, const char* what, unsigned lane) {
  if (index >= 0 && index < end) return true;
  if (outside == Outside::trap)
    throw Fault(std::string(what) + " " + std::to_string(index) + " is out of bounds of a surface with " +
                    std::to_string(end),
                lane, FaultKind::invalid_address);
  index = std::clamp<std::int64_t>(index, 0, end - 1);
  return outside == Outside::clamp;
}

// Where in memory a lane's elements are; null if outside and nothing is to be done.
std::byte* locate(Warp& warp, const Op& op, const Access& access, const Texture& surface, unsigned lane) {
  const GeometryInfo& geometry = access.info();
  unsigned next = access.elements;
  const auto coordinate = [&] { return warp.lanes<const std::int32_t>(warp.listed(op, next++))[lane]; };
  SurfaceElement element;
  element.geometry = access.geometry;
  element.outside = access.outside;
  element.bytes = std::uint32_t{access.bytes} * access.elements;
  if (geometry.layered) element.layer = coordinate();
  for (unsigned axis = 0; axis < geometry.axes; ++axis) element.coordinates[axis] = coordinate();
  return surface_address(warp, surface, element, lane);
}

// The register of an element as bytes; those above the element are zeros.
std::byte* register_of(Warp& warp, const Op& op, const Access& access, unsigned element, unsigned lane) {
  return reinterpret_cast<std::byte*>(warp.lanes<std::uint8_t>(warp.listed(op, element))) +
         std::size_t{access.register_bytes} * lane;
}

template <bool Store>
void access_surface(Warp& warp, const Op& op) {
  const auto access = std::bit_cast<Access>(op.immediate);
  warp.access->mask = 0;
  const auto* handles = warp.lanes<const std::uint64_t>(op.src[0]);
  for_each_active(warp.mask, [&](unsigned lane) {
    const Texture& surface = find_texture(warp, handles[lane], lane);
    std::byte* memory = locate(warp, op, access, surface, lane);
    for (unsigned i = 0; i < access.elements; ++i) {
      std::byte* value = register_of(warp, op, access, i, lane);
      if constexpr (Store) {
        if (memory != nullptr) std::memcpy(memory + std::size_t{i} * access.bytes, value, access.bytes);
      } else {
        std::memset(value, 0, access.register_bytes);
        if (memory != nullptr) std::memcpy(value, memory + std::size_t{i} * access.bytes, access.bytes);
      }
    }
  });
}

// --- Decoding -------------------------------------------------------------------------------------

Type bits(unsigned bytes) {
  return bytes == 1 ? Type::b8 : bytes == 2 ? Type::b16 : bytes == 4 ? Type::b32 : Type::b64;
}

template <bool Store>
void decode_access(Builder& builder) {
  builder.expect_operands(2);
  if (!builder.accept("b"))
    builder.unsupported("surfaces are accessed as bits (.b), not by their format (.p)");
  Access access;
  const int geometry = builder.accept_one_of({"1d", "2d", "3d", "a1d", "a2d"});
  if (geometry < 0) builder.unsupported("surfaces of this geometry are not supported");
  access.geometry = static_cast<Geometry>(geometry);
  access.elements = builder.accept("v4") ? 4 : builder.accept("v2") ? 2 : 1;
  builder.ignore({"ca", "cg", "cs", "cv", "wb", "wt"});
  const Type type = builder.type();
  if (type != Type::b8 && type != Type::b16 && type != Type::b32 && type != Type::b64)
    builder.unsupported("elements are .b8, .b16, .b32 or .b64");
  access.bytes = static_cast<std::uint8_t>(ptx::size_of(type));
  const int outside = builder.accept_one_of({"trap", "clamp", "zero"});
  access.outside = outside < 0 ? Outside::trap : static_cast<Outside>(outside);

  const Operand& values = builder.operand(Store ? 1 : 0);
  const Operand& where = builder.operand(Store ? 0 : 1);
  std::vector<Operand> elements{values};
  if (values.kind == OperandKind::vector) {
    const auto children = builder.children(values);
    elements.assign(children.begin(), children.end());
  }
  if (elements.size() != access.elements)
    builder.unsupported("'" + std::string(values.text) + "' should be " + std::to_string(access.elements) +
                        " registers");
  access.register_bytes = access.bytes;
  for (const Operand& element : elements)
    access.register_bytes = std::max(
        access.register_bytes, static_cast<std::uint8_t>(builder.register_bytes(element, access.bytes)));
  std::vector<Slot> slots;
  for (const Operand& element : elements)
    slots.push_back(Store ? builder.source(element, bits(access.register_bytes))
                          : builder.destination(element, bits(access.register_bytes)));
  const Slot handle = handle_of(builder, where);
  if (where.count != 2) builder.unsupported("it has no coordinates");
  add_vector(builder, builder.children(where)[1], access.coordinates(), Type::b32, Type::b32, slots);
  const std::uint32_t list = builder.list(slots);
  Op& op = builder.emit(access_surface<Store>, Class::texture);
  op.src[0] = handle;
  op.aux = list;
  op.count = static_cast<std::uint8_t>(slots.size());
  op.immediate = std::bit_cast<std::int64_t>(access);
}

constexpr Opcode kOpcodes[] = {{"suld", decode_access<false>}, {"sust", decode_access<true>}};

}  // namespace

std::byte* surface_address(Warp& warp, const Texture& surface, const SurfaceElement& wanted, unsigned lane) {
  const GeometryInfo& geometry = info_of(wanted.geometry);
  check_geometry(surface, geometry, lane);
  const std::uint64_t width = std::uint64_t{surface.extent[0]} * surface.texel_bytes();
  const std::uint64_t row = surface.pitch != 0 ? surface.pitch : width;
  const std::uint64_t rows = geometry.axes > 1 ? surface.extent[1] : 1;
  const unsigned slice_axis = geometry.axes == 1 ? 1 : 2;
  const std::uint64_t slices = geometry.axes == 3 || geometry.layered ? surface.extent[slice_axis] : 1;
  if ((slices - 1) * row * rows + (rows - 1) * row + width > surface.bytes)
    throw Fault("the surface is larger than its memory", lane);
  std::byte* memory = warp.launch().memory->checked(surface.memory, surface.bytes);
  if (memory == nullptr) throw Fault("the memory of the surface has been freed", lane);

  const std::int64_t x = wanted.coordinates[0];
  std::int64_t y = geometry.axes > 1 ? wanted.coordinates[1] : 0;
  std::int64_t slice = geometry.axes > 2 ? wanted.coordinates[2] : geometry.layered ? wanted.layer : 0;
  const std::int64_t size = wanted.bytes;
  if (x % size != 0)
    throw Fault("misaligned access: byte " + std::to_string(x) + " of a row is no address of " +
                    std::to_string(size) + " bytes",
                lane, FaultKind::misaligned_address);
  std::int64_t element = x / size;
  bool inside =
      resolve_index(element, static_cast<std::int64_t>(width) / size, wanted.outside, "element", lane);
  inside &= resolve_index(y, static_cast<std::int64_t>(rows), wanted.outside, "row", lane);
  inside &= resolve_index(slice, static_cast<std::int64_t>(slices), wanted.outside, "layer", lane);
  if (!inside) return nullptr;
  const std::uint64_t offset =
      (static_cast<std::uint64_t>(slice) * rows + static_cast<std::uint64_t>(y)) * row +
      static_cast<std::uint64_t>(element * size);
  warp.access->space = ptx::Space::global;
  warp.access->bytes = static_cast<std::uint8_t>(size);
  warp.access->mask |= Mask{1} << lane;
  warp.access->addresses[lane] = surface.memory + offset;
  return memory + offset;
}

std::span<const Opcode> surface_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
