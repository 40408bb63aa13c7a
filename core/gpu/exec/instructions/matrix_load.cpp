// SPDX-License-Identifier: Apache-2.0
// wmma.load and wmma.store, ldmatrix, stmatrix and movmatrix.
#include "gpu/exec/instructions/matrix_load.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <string>

#include "gpu/exec/fault.hpp"
#include "gpu/exec/instructions/tensor_multiply.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/memory_access.hpp"

namespace manyscale::gpu {

using ptx::Operand;
using ptx::OperandKind;
using ptx::Space;
using ptx::Type;

namespace {

// --- Decoding -------------------------------------------------------------------------------------

// m16n8k16 -> {16, 8, 16}; {} if it is something else.
MatrixShape shape_named(std::string_view word) {
  std::array<unsigned, 3> sizes{};
  for (unsigned i = 0; i < 3; ++i) {
    if (word.empty() || word.front() != "mnk"[i]) return {};
    const auto [end, error] = std::from_chars(word.data() + 1, word.data() + word.size(), sizes[i]);
    if (error != std::errc{}) return {};
    word.remove_prefix(static_cast<std::size_t>(end - word.data()));
  }
  if (!word.empty() || sizes[0] > 32 || sizes[1] > 32 || sizes[2] > 256) return {};
  return {static_cast<std::uint8_t>(sizes[0]), static_cast<std::uint8_t>(sizes[1]),
          static_cast<std::uint16_t>(sizes[2])};
}

template <class Take>
std::vector<Slot> fragment_slots(Builder& builder, const Operand& operand, unsigned count, Take take) {
  if (operand.kind != OperandKind::vector || operand.count != count)
    builder.unsupported("'" + std::string(operand.text) + "' should be " + std::to_string(count) +
                        " registers in braces");
  std::vector<Slot> slots;
  for (const Operand& child : builder.children(operand)) slots.push_back(take(child));
  return slots;
}

Type register_type(Type type) {
  return element_bits(type) == 64 ? Type::b64 : Type::b32;
}

// Everything about a wmma.load or wmma.store but its operands. It travels in Op::immediate.
struct MatrixAccess {
  MatrixShape shape;
  Type type = Type::none;
  Role role = Role::a;
  MatrixLayout layout = MatrixLayout::row;
  Space space = Space::generic;
};
static_assert(sizeof(MatrixAccess) == sizeof(Op::immediate));

// Finds the memory behind the addresses of an instruction's first lanes; all lanes take part in the
// instruction.
Located locate_lanes(Warp& warp, const Op& op, unsigned lanes, unsigned bytes, Does does) {
  warp.mask = kAllLanes >> (kLanes - lanes);
  const Located located = locate(warp, op, bytes, does);
  warp.mask = kAllLanes;
  return located;
}

// --- wmma.load and wmma.store ---------------------------------------------------------------------

constexpr unsigned kMaximumBytes = 1024;  // of a matrix

// How a matrix is copied between memory and registers. The elements of A and B that share a register often
// follow each other in memory too: they are then taken as one.
struct Copying {
  unsigned bits = 0;         // of what is copied as one
  bool along_lines = false;  // the lines of the fragment are those in memory

  explicit Copying(const MatrixAccess& access)
      : bits(element_bits(access.type)),
        along_lines((access.layout == MatrixLayout::row) != (access.role == Role::b)) {
    if (along_lines && access.role != Role::c) bits = std::max(bits, 32u);
  }
};

// A matrix as it lies in memory, its lines one after the other, and as it lies in registers, in elements of
// type T.
template <class T, bool Along>
struct Storage {
  static constexpr unsigned kPerRegister = sizeof(T) == 8 ? 1 : 4 / sizeof(T);
  Fragment fragment;
  unsigned lines;
  unsigned line_elements;

  explicit Storage(const MatrixAccess& access) {
    const unsigned together = 8 * sizeof(T) / element_bits(access.type);
    fragment = {access.role, access.shape, 8 * sizeof(T)};
    fragment.shape.k = static_cast<std::uint16_t>(access.shape.k / together);
    const bool by_rows = access.layout == MatrixLayout::row;
    lines = by_rows ? fragment.rows() : fragment.columns();
    line_elements = by_rows ? fragment.columns() : fragment.rows();
  }

  unsigned line_bytes() const { return line_elements * sizeof(T); }
  unsigned registers() const { return lines * line_elements / (kLanes * kPerRegister); }

  // Calls f(element of the register's lanes, element of the lines in memory).
  template <class F>
  void for_each_element(unsigned index, F f) const {
    const Fragment::Block block = fragment.block(index);
    const unsigned line_stride = Along ? line_elements : 1;
    const unsigned stride = Along ? 1 : line_elements;
    const unsigned step = fragment.role == Role::c ? 2 : kPerRegister;
    const unsigned begin = block.line * line_stride + block.first * stride;
    for (unsigned t = 0; t < 4; ++t)
      for (unsigned e = 0; e < kPerRegister; ++e)
        for (unsigned line = 0; line < 8; ++line)
          f((4 * line + t) * kPerRegister + e, begin + line * line_stride + (t * step + e) * stride);
  }
};

// The one value that all lanes must have.
template <class T>
T uniform(const T* lanes, const char* what) {
  T differing = 0;
  for (unsigned lane = 1; lane < kLanes; ++lane) differing |= lanes[lane] ^ lanes[0];
  if (differing != 0) throw Fault(std::string("wmma needs the same ") + what + " in all lanes", 0);
  return lanes[0];
}

// Goes through the pieces of up to 16 bytes that a matrix has in memory, one per lane, as many lanes at a
// time as there are: f(where it is, its bytes from the beginning of the matrix, how many).
template <class F>
void for_each_piece(Warp& warp, const Op& op, const MatrixAccess& access, unsigned lines, unsigned line_bytes,
                    Does does, F f) {
  auto* addresses = warp.lanes<std::uint64_t>(op.src[3]);
  compute_addresses(warp, op.src[0], *warp.lanes<std::int64_t>(op.src[1]), addresses);
  const std::uint64_t base = uniform(addresses, "address");
  std::uint64_t stride = line_bytes;
  if (op.src[2] != kNoSlot)
    stride = uniform(warp.lanes<const std::uint32_t>(op.src[2]), "stride") *
             std::uint64_t{element_bits(access.type)} / 8;
  const unsigned piece = std::min(16u, line_bytes);
  const unsigned per_line = line_bytes / piece;
  const auto shift = static_cast<unsigned>(std::countr_zero(per_line));
  const unsigned pieces = lines * per_line;
  Op pass = op;
  pass.src[0] = op.src[3];
  pass.immediate = 0;
  pass.flags = static_cast<std::uint8_t>(static_cast<unsigned>(access.space) << kSpaceShift);
  for (unsigned first = 0; first < pieces; first += kLanes) {
    const unsigned count = std::min(kLanes, pieces - first);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      addresses[lane] = base + ((first + lane) >> shift) * stride + ((first + lane) & (per_line - 1)) * piece;
    const Located located = locate_lanes(warp, pass, count, piece, does);
    if (piece == 16)
      for (unsigned lane = 0; lane < count; ++lane) f(located.at(lane), (first + lane) * 16, 16);
    else
      for (unsigned lane = 0; lane < count; ++lane) f(located.at(lane), (first + lane) * 8, 8);
  }
}

template <class T, bool Along>
void wmma_load(Warp& warp, const Op& op) {
  require_all_lanes(warp);
  const auto access = std::bit_cast<MatrixAccess>(op.immediate);
  const Storage<T, Along> storage(access);
  alignas(64) T matrix[kMaximumBytes / sizeof(T)];
  auto* bytes_of_matrix = reinterpret_cast<std::byte*>(matrix);
  for_each_piece(warp, op, access, storage.lines, storage.line_bytes(), Does::load,
                 [&](const std::byte* from, unsigned at, unsigned bytes) {
                   std::memcpy(bytes_of_matrix + at, from, bytes);
                 });
  const unsigned registers = storage.registers();
  for (unsigned i = 0; i < registers; ++i) {
    T* lanes = warp.lanes<T>(warp.listed(op, i));
    storage.for_each_element(
        i, [&](unsigned in_register, unsigned in_memory) { lanes[in_register] = matrix[in_memory]; });
  }
  for (unsigned i = registers; i < op.count; ++i)
    std::memcpy(warp.lanes<T>(warp.listed(op, i)), warp.lanes<T>(warp.listed(op, i & (registers - 1))),
                kLanes * std::max<std::size_t>(4, sizeof(T)));
}

template <class T, bool Along>
void wmma_store(Warp& warp, const Op& op) {
  require_all_lanes(warp);
  const auto access = std::bit_cast<MatrixAccess>(op.immediate);
  const Storage<T, Along> storage(access);
  alignas(64) T matrix[kMaximumBytes / sizeof(T)];
  const auto* bytes_of_matrix = reinterpret_cast<const std::byte*>(matrix);
  for (unsigned i = 0; i < storage.registers(); ++i) {
    const T* lanes = warp.lanes<const T>(warp.listed(op, i));
    storage.for_each_element(
        i, [&](unsigned in_register, unsigned in_memory) { matrix[in_memory] = lanes[in_register]; });
  }
  for_each_piece(
      warp, op, access, storage.lines, storage.line_bytes(), Does::store,
      [&](std::byte* to, unsigned at, unsigned bytes) { std::memcpy(to, bytes_of_matrix + at, bytes); });
}

template <bool Along>
Handler handler_for(unsigned bits, bool loads) {
  switch (bits) {
    case 8:
      return loads ? wmma_load<std::uint8_t, Along> : wmma_store<std::uint8_t, Along>;
    case 16:
      return loads ? wmma_load<std::uint16_t, Along> : wmma_store<std::uint16_t, Along>;
    case 32:
      return loads ? wmma_load<std::uint32_t, Along> : wmma_store<std::uint32_t, Along>;
    default:
      return loads ? wmma_load<std::uint64_t, Along> : wmma_store<std::uint64_t, Along>;
  }
}

// Which matrices of which types can be loaded or stored in a shape: by that of A and B.
struct Loadable {
  MatrixShape shape;
  std::array<Type, 3> inputs;
  std::array<Type, 2> accumulators;
};

constexpr Loadable kLoadable[] = {
    {{16, 16, 16}, {Type::f16, Type::bf16}, {Type::f16, Type::f32}},
    {{32, 8, 16}, {Type::f16, Type::bf16}, {Type::f16, Type::f32}},
    {{8, 32, 16}, {Type::f16, Type::bf16}, {Type::f16, Type::f32}},
    {{16, 16, 16}, {Type::s8, Type::u8}, {Type::s32}},
    {{32, 8, 16}, {Type::s8, Type::u8}, {Type::s32}},
    {{8, 32, 16}, {Type::s8, Type::u8}, {Type::s32}},
    {{16, 16, 8}, {Type::tf32}, {Type::f32}},
    {{8, 8, 4}, {Type::f64}, {Type::f64}},
    {{8, 8, 32}, {Type::s4, Type::u4}, {Type::s32}},
    {{8, 8, 128}, {Type::b1}, {Type::s32}},
};

bool is_loadable(const MatrixAccess& access) {
  if (access.type == Type::none) return false;
  for (const Loadable& entry : kLoadable) {
    if (entry.shape != access.shape) continue;
    const bool found = access.role == Role::c ? std::ranges::count(entry.accumulators, access.type) != 0
                                              : std::ranges::count(entry.inputs, access.type) != 0;
    if (found) return true;
  }
  return false;
}

MatrixAccess accept_access(Builder& builder, std::initializer_list<std::string_view> roles) {
  MatrixAccess access;
  const int role = builder.accept_one_of(roles);
  if (role < 0) builder.unsupported("it does not say which matrix");
  access.role = roles.size() == 1 ? Role::c : static_cast<Role>(role);
  builder.ignore({"sync", "aligned"});
  access.shape = accept_shape(builder);
  access.layout = accept_layouts(builder, 1)[0];
  access.space = decode_space(builder);
  access.type = builder.type();
  if (!is_loadable(access))
    builder.unsupported("there is no such matrix of ." + std::string(ptx::name_of(access.type)));
  const bool along_k = (access.layout == MatrixLayout::row) == (access.role == Role::a);
  if (element_bits(access.type) < 8 && !along_k)
    builder.unsupported("elements of less than a byte must follow each other along k");
  return access;
}

void decode_wmma_access(Builder& builder, MatrixAccess access, bool loads) {
  builder.expect_operands(2, 3);
  const Fragment fragment{access.role, access.shape, element_bits(access.type)};
  const bool repeats = access.role != Role::c && access.type == Type::f16;
  const unsigned count = repeats ? kWmmaHalfRegisters : fragment.registers();
  const Builder::Address address = builder.address(builder.operand(loads ? 1 : 0), access.space);
  if (address.is_frame) builder.unsupported("matrices are not in local memory");
  if (access.space == Space::generic) access.space = address.space;
  // The base, what is added to it, the stride, and room for the addresses of the lanes.
  std::array<Slot, 4> sources{address.base, builder.constant(static_cast<std::uint64_t>(address.offset), 8),
                              kNoSlot, builder.scratch(8)};
  if (builder.operands() == 3) sources[2] = builder.source(2, Type::u32);
  const auto slots = loads ? fragment_destinations(builder, builder.operand(0), access.type, count)
                           : fragment_sources(builder, builder.operand(1), access.type, count);
  const std::uint32_t list = builder.list(slots);
  const Copying copying(access);
  const Handler handler =
      copying.along_lines ? handler_for<true>(copying.bits, loads) : handler_for<false>(copying.bits, loads);
  Op& op = builder.emit(handler, loads ? Class::load : Class::store);
  op.src = sources;
  op.aux = list;
  op.count = static_cast<std::uint8_t>(count);
  op.bytes = static_cast<std::uint8_t>(std::max(1u, element_bits(access.type) / 8));
  op.immediate = std::bit_cast<std::int64_t>(access);
}

// --- ldmatrix, stmatrix, movmatrix: matrices of 8 x 8 elements of 16 bits -------------------------

constexpr unsigned kRowBytes = 16;

void transpose(const std::uint16_t* from, std::uint16_t* to) {
  for (unsigned row = 0; row < 8; ++row)
    for (unsigned column = 0; column < 8; ++column) to[column * 8 + row] = from[row * 8 + column];
}

// Lane 8 * j + i has the address of row i of matrix j.
template <bool Transposed>
void load_rows(Warp& warp, const Op& op) {
  require_all_lanes(warp);
  const Located located = locate_lanes(warp, op, 8 * op.count, kRowBytes, Does::load);
  for (unsigned j = 0; j < op.count; ++j) {
    std::uint16_t rows[64];
    auto* lanes = warp.lanes<std::uint16_t>(warp.listed(op, j));
    std::uint16_t* to = Transposed ? rows : lanes;
    for (unsigned i = 0; i < 8; ++i) std::memcpy(to + 8 * i, located.at(8 * j + i), kRowBytes);
    if constexpr (Transposed) transpose(rows, lanes);
  }
}

template <bool Transposed>
void store_rows(Warp& warp, const Op& op) {
  require_all_lanes(warp);
  const Located located = locate_lanes(warp, op, 8 * op.count, kRowBytes, Does::store);
  for (unsigned j = 0; j < op.count; ++j) {
    std::uint16_t rows[64];
    const auto* lanes = warp.lanes<const std::uint16_t>(warp.listed(op, j));
    if constexpr (Transposed) transpose(lanes, rows);
    const std::uint16_t* from = Transposed ? rows : lanes;
    for (unsigned i = 0; i < 8; ++i) std::memcpy(located.at(8 * j + i), from + 8 * i, kRowBytes);
  }
}

}  // namespace

Handler row_access(bool loads, bool transposed) {
  if (loads) return transposed ? load_rows<true> : load_rows<false>;
  return transposed ? store_rows<true> : store_rows<false>;
}

void transpose_register(Warp& warp, const Op& op) {
  require_all_lanes(warp);
  std::uint16_t rows[64];
  std::memcpy(rows, warp.lanes<const std::uint16_t>(op.src[0]), sizeof(rows));
  transpose(rows, warp.lanes<std::uint16_t>(op.dst));
}

namespace {

void decode_rows(Builder& builder, bool loads) {
  builder.expect_operands(2);
  builder.ignore({"sync", "aligned"});
  if (!builder.accept("m8n8")) builder.unsupported("only matrices of 8 x 8 elements are supported");
  const int number = builder.accept_one_of({"x1", "x2", "x4"});
  if (number < 0) builder.unsupported("it does not say how many matrices");
  const unsigned count = 1u << number;
  const bool transposed = builder.accept("trans");
  const Space space = decode_space(builder);
  if (builder.type() != Type::b16) builder.unsupported("only elements of 16 bits are supported");
  const AddressFields address = decode_address(builder, loads ? 1 : 0, space);
  const auto slots = loads ? fragment_destinations(builder, builder.operand(0), Type::b16, count)
                           : fragment_sources(builder, builder.operand(1), Type::b16, count);
  const std::uint32_t list = builder.list(slots);
  Op& op = builder.emit(row_access(loads, transposed), loads ? Class::load : Class::store);
  address.apply(op);
  op.aux = list;
  op.count = static_cast<std::uint8_t>(count);
  op.bytes = kRowBytes;
}

}  // namespace

MatrixShape accept_shape(Builder& builder) {
  for (std::string_view word : builder.modifiers()) {
    const MatrixShape shape = shape_named(word);
    if (shape.m == 0) continue;
    builder.accept(word);
    return shape;
  }
  builder.unsupported("it does not name a shape");
}

std::vector<MatrixLayout> accept_layouts(Builder& builder, unsigned count) {
  std::vector<MatrixLayout> layouts;
  for (std::string_view word : builder.modifiers()) {
    if (word != "row" && word != "col") continue;
    builder.accept(word);
    layouts.push_back(word == "row" ? MatrixLayout::row : MatrixLayout::column);
  }
  if (layouts.size() != count)
    builder.unsupported("it should name .row or .col " + std::to_string(count) + " times");
  return layouts;
}

std::vector<Slot> fragment_sources(Builder& builder, const Operand& operand, Type type, unsigned count) {
  return fragment_slots(builder, operand, count,
                        [&](const Operand& child) { return builder.source(child, register_type(type)); });
}

std::vector<Slot> fragment_destinations(Builder& builder, const Operand& operand, Type type, unsigned count) {
  return fragment_slots(builder, operand, count, [&](const Operand& child) {
    return builder.destination(child, register_type(type));
  });
}

void decode_wmma_load(Builder& builder) {
  builder.accept("load");
  decode_wmma_access(builder, accept_access(builder, {"a", "b", "c"}), true);
}

void decode_wmma_store(Builder& builder) {
  builder.accept("store");
  decode_wmma_access(builder, accept_access(builder, {"d"}), false);
}

void decode_ldmatrix(Builder& builder) {
  decode_rows(builder, true);
}

void decode_stmatrix(Builder& builder) {
  decode_rows(builder, false);
}

void decode_movmatrix(Builder& builder) {
  builder.expect_operands(2);
  builder.ignore({"sync", "aligned"});
  if (!builder.accept("m8n8") || !builder.accept("trans") || builder.type() != Type::b16)
    builder.unsupported("only .m8n8.trans.b16 is supported");
  const Slot dst = builder.destination(0, Type::b32), source = builder.source(1, Type::b32);
  Op& op = builder.emit(transpose_register, Class::move);
  op.dst = dst;
  op.src[0] = source;
}

}  // namespace manyscale::gpu
