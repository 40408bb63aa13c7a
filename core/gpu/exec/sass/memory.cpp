// SPDX-License-Identifier: Apache-2.0
// Loads and stores in all spaces, and copies from global to shared memory.
#include "gpu/exec/instructions/memory_lanes.hpp"
#include "gpu/exec/sass/address.hpp"
#include "gpu/exec/sass/builder.hpp"
#include "gpu/exec/sass/decoder.hpp"

namespace manyscale::gpu {
namespace {

using ptx::Space;
using sass::Operand;
using sass::OperandKind;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

// Several words, which lie in registers one after the other.
template <unsigned words>
void load_words(Warp& warp, const Op& op) {
  const Located located = locate(warp, op, 4 * words, Does::load);
  if (warp.mask == kAllLanes) {
    std::array<U32*, words> to;
    for (unsigned k = 0; k < words; ++k) to[k] = warp.lanes<U32>(next_word(op.dst, k));
    if (located.contiguous) {
      alignas(64) std::array<std::array<U32, words>, kLanes> values;
      std::memcpy(values.data(), located.at(0), sizeof values);
      for (unsigned k = 0; k < words; ++k)
        for (unsigned i = 0; i < kLanes; ++i) to[k][i] = values[i][k];
      return;
    }
    for (unsigned k = 0; k < words; ++k)
      memory_lanes::write_by_fours(
          to[k], [&](unsigned i) { return memory_lanes::read<U32>(located.at(i) + 4 * std::size_t{k}); });
    return;
  }
  for_each_active(warp.mask, [&](unsigned i) {
    std::array<U32, words> value;
    std::memcpy(value.data(), located.at(i), sizeof value);
    for (unsigned k = 0; k < words; ++k) warp.lanes<U32>(next_word(op.dst, k))[i] = value[k];
  });
}

template <unsigned words>
void store_words(Warp& warp, const Op& op) {
  const Located located = locate(warp, op, 4 * words, Does::store);
  std::array<const U32*, words> from;
  for (unsigned k = 0; k < words; ++k) from[k] = warp.lanes<U32>(next_word(op.src[1], k));
  if (warp.mask == kAllLanes && located.contiguous) {
    alignas(64) std::array<std::array<U32, words>, kLanes> values;
    for (unsigned k = 0; k < words; ++k)
      for (unsigned i = 0; i < kLanes; ++i) values[i][k] = from[k][i];
    std::memcpy(located.at(0), values.data(), sizeof values);
    return;
  }
  for_each_active(warp.mask, [&](unsigned i) {
    std::array<U32, words> value;
    for (unsigned k = 0; k < words; ++k) value[k] = from[k][i];
    std::memcpy(located.at(i), value.data(), sizeof value);
  });
}

// What an access moves, by its modifiers.
struct Width {
  int part = -1;  // U8, S8, U16, S16
  unsigned words = 1;
};

Width accept_width(MachineBuilder& builder) {
  Width width;
  width.part = builder.accept_one_of({"U8", "S8", "U16", "S16"});
  if (width.part < 0)
    width.words = builder.accept("64") ? 2 : builder.accept("128") || builder.accept("U.128") ? 4 : 1;
  return width;
}

// How strongly an access is ordered. Other threads may wait for one that is strong.
bool accept_order(MachineBuilder& builder) {
  const bool strong = builder.accept("STRONG") || builder.accept("MMIO");
  builder.ignore({"E",  "SYS",    "GPU", "CTA", "SM", "CONSTANT", "CONSTANT.PRIVATE", "PRIVATE", "WEAK", "EF",
                  "EL", "LU",     "EU",  "NA",  "IL", "LTC64B",   "LTC128B",          "LTC256B", "U",    "ZD",
                  "32", "STRONG", "CI",  "CV",  "VM", "HINT"});
  return strong;
}

Space space_named(std::string_view name) {
  if (name.ends_with("S")) return Space::shared;
  if (name.ends_with("L")) return Space::local;
  if (name.ends_with("G")) return Space::global;
  return Space::generic;
}

void finish(Op& op, const Width& width) {
  op.bytes = width.part < 0 ? 4 : width.part < 2 ? 1 : 2;
  op.count = static_cast<std::uint8_t>(width.words);
}

// A load that reads memory only where a predicate, in src[1], holds, and gives zeros elsewhere.
template <Handler load, bool negated>
void load_or_zero(Warp& warp, const Op& op) {
  const Mask all = warp.mask;
  const Mask reading = all & condition(warp, op.src[1], negated);
  warp.mask = reading;
  if (reading != 0) load(warp, op);
  warp.mask = all & ~reading;
  for (unsigned k = 0; k < op.count; ++k) for_words(warp, next_word(op.dst, k), [](unsigned) { return 0; });
  warp.mask = all;
}

template <bool negated>
Handler conditional_load(const Width& width) {
  using memory_lanes::load;
  constexpr Handler kParts[] = {
      load_or_zero<load<std::uint8_t, U32>, negated>, load_or_zero<load<std::int8_t, U32>, negated>,
      load_or_zero<load<std::uint16_t, U32>, negated>, load_or_zero<load<std::int16_t, U32>, negated>};
  if (width.part >= 0) return kParts[width.part];
  return width.words == 1   ? load_or_zero<load<U32, U32>, negated>
         : width.words == 2 ? load_or_zero<load_words<2>, negated>
                            : load_or_zero<load_words<4>, negated>;
}

void decode_load(MachineBuilder& builder) {
  constexpr Handler kParts[] = {memory_lanes::load<std::uint8_t, U32>, memory_lanes::load<std::int8_t, U32>,
                                memory_lanes::load<std::uint16_t, U32>,
                                memory_lanes::load<std::int16_t, U32>};
  const Width width = accept_width(builder);
  const bool strong = accept_order(builder);
  const Slot dst = builder.destination(0, width.words);
  const Operand* address = builder.find(OperandKind::address);
  if (address == nullptr) builder.unsupported("no address is named");
  if (builder.predicate_result(0) != kNoSlot) builder.unsupported("a load that gives a predicate");
  bool negated = false;
  const Slot reads = builder.only_condition(negated);
  Handler handler = width.part >= 0    ? kParts[width.part]
                    : width.words == 1 ? memory_lanes::load<U32, U32>
                    : width.words == 2 ? load_words<2>
                                       : load_words<4>;
  if (reads != kNoSlot) handler = negated ? conditional_load<true>(width) : conditional_load<false>(width);
  Op& op = builder.emit(handler, Class::load, strong ? Flow::yield : Flow::next);
  op.dst = dst;
  op.src[1] = reads;
  if (strong) op.flags |= kOrdered;
  builder.located_address(op, *address, space_named(builder.name()));
  finish(op, width);
}

void decode_store(MachineBuilder& builder) {
  const Width width = accept_width(builder);
  const bool strong = accept_order(builder);
  const Operand* address = builder.find(OperandKind::address);
  if (address == nullptr) builder.unsupported("no address is named");
  const Slot from = builder.source(builder.values() - 1, width.words);
  const Handler handler = width.part >= 2    ? memory_lanes::store<std::uint16_t, U32>
                          : width.part >= 0  ? memory_lanes::store<std::uint8_t, U32>
                          : width.words == 1 ? memory_lanes::store<U32, U32>
                          : width.words == 2 ? store_words<2>
                                             : store_words<4>;
  Op& op = builder.emit(handler, Class::store);
  op.src[1] = from;
  if (strong) op.flags |= kOrdered;
  builder.located_address(op, *address, space_named(builder.name()));
  finish(op, width);
  // The checker finds the values of a vector in a list.
  if (width.words > 1) {
    std::vector<Slot> slots;
    for (unsigned k = 0; k < width.words; ++k) slots.push_back(next_word(from, k));
    op.aux = builder.list(slots);
  }
}

// --- QSPC: whether an address lies in shared, local or global memory

template <Space space>
void query_space(Warp& warp, const Op& op) {
  alignas(64) std::array<U64, kLanes> addresses;
  machine_addresses(warp, op, addresses.data());
  const Mask inside = ballot([&](unsigned i) {
    const bool shared = in_window(addresses[i], kSharedWindow);
    const bool local = in_window(addresses[i], kLocalWindow);
    return space == Space::shared ? shared : space == Space::local ? local : !shared && !local;
  });
  if (op.dst2 != kNoSlot) set_predicate(warp, op.dst2, inside);
  if (op.dst != kNoSlot) for_words(warp, op.dst, [=](unsigned i) { return inside >> i & 1; });
}

void decode_qspc(MachineBuilder& builder) {
  builder.ignore({"E"});
  const int space = builder.accept_one_of({"S", "L", "G"});
  if (space < 0) builder.unsupported("no space is named");
  const Operand* address = builder.find(OperandKind::address);
  if (address == nullptr) builder.unsupported("no address is named");
  const Slot dst =
      builder.results() > 0 && builder.is_wanted(builder.result(0)) ? builder.destination() : kNoSlot;
  Op& op = builder.emit(space == 0   ? query_space<Space::shared>
                        : space == 1 ? query_space<Space::local>
                                     : query_space<Space::global>,
                        Class::integer);
  builder.address(op, *address, Space::generic);
  op.dst = dst;
  op.dst2 = builder.predicate_result(0);
}

// --- LDGSTS: from global to shared memory, at once. The base of the address in shared memory is in src[2], a
// uniform register in dst2, its offset in aux. With `fills`, the lowest bits of the source's address say how
// many bytes at the end are zeros instead.

template <unsigned bytes, bool fills, bool negated>
void copy_to_shared(Warp& warp, const Op& op) {
  const Mask all = warp.mask;
  Mask reading = all;
  if (op.src[1] != kNoSlot) reading &= negated ? ~warp.predicate(op.src[1]) : warp.predicate(op.src[1]);
  alignas(64) std::array<U64, kLanes> sources;
  machine_addresses(warp, op, sources.data());
  alignas(64) std::array<U64, kLanes> targets;
  const auto* base = op.src[2] == kNoSlot ? nullptr : warp.lanes<U32>(op.src[2]);
  const auto* uniform = op.dst2 == kNoSlot ? nullptr : warp.lanes<U32>(op.dst2);
  for (unsigned i = 0; i < kLanes; ++i)
    targets[i] = static_cast<U32>((base ? base[i] : 0) + (uniform ? uniform[i] : 0) + op.aux);
  std::array<unsigned, kLanes> read;
  read.fill(bytes);
  if constexpr (fills) {
    for (unsigned i = 0; i < kLanes; ++i) {
      read[i] -= static_cast<unsigned>(sources[i] % bytes);
      sources[i] -= sources[i] % bytes;
    }
  }
  LanePointers from;
  LanePointers to;
  resolve(warp, op, Space::shared, targets.data(), all, bytes, true, to);
  if (reading != 0) resolve(warp, op, Space::global, sources.data(), reading, bytes, false, from);
  for_each_active(all, [&](unsigned lane) {
    const unsigned count = (reading >> lane & 1) != 0 ? read[lane] : 0;
    if (count != 0) std::memcpy(to.at[lane], from.at[lane], count);
    std::memset(to.at[lane] + count, 0, bytes - count);
  });
}

template <unsigned bytes>
Handler copy_handler(bool fills, bool negated) {
  if (fills) return negated ? copy_to_shared<bytes, true, true> : copy_to_shared<bytes, true, false>;
  return negated ? copy_to_shared<bytes, false, true> : copy_to_shared<bytes, false, false>;
}

void decode_ldgsts(MachineBuilder& builder) {
  builder.ignore({"BYPASS", "ACCESS"});
  const bool fills = builder.accept("ZFILL");
  const Width width = accept_width(builder);
  accept_order(builder);
  if (width.part >= 0) builder.unsupported("bytes cannot be copied");
  std::vector<const Operand*> addresses;
  for (unsigned i = 0; i < builder.instruction().operand_count; ++i)
    if (builder.instruction().operands[i].kind == OperandKind::address)
      addresses.push_back(&builder.instruction().operands[i]);
  if (addresses.size() != 2) builder.unsupported("two addresses are needed");
  bool negated = false;
  const Slot reads = builder.conditions() > 0 ? builder.condition(0, negated) : kNoSlot;
  Op& op = builder.emit(width.words == 1   ? copy_handler<4>(fills, negated)
                        : width.words == 2 ? copy_handler<8>(fills, negated)
                                           : copy_handler<16>(fills, negated),
                        Class::load);
  const Operand& target = *addresses[0];
  builder.address(op, *addresses[1], Space::global);
  if (target.index != sass::kZeroRegister) op.src[2] = general_register(target.index);
  if (target.uniform != Operand::kNone && target.uniform != sass::kZeroUniformRegister)
    op.dst2 = builder.decoder().layout().uniform_register(target.uniform);
  op.aux = static_cast<std::uint32_t>(target.value);
  op.src[1] = reads;
  finish(op, width);
}

void decode_prefetch(MachineBuilder& builder) {
  builder.ignore({"E", "PF1", "PF2", "L2"});
  builder.emit([](Warp&, const Op&) {}, Class::other);
}

constexpr MachineOpcode kOpcodes[] = {
    {"LD", decode_load},   {"LDG", decode_load},      {"LDS", decode_load},       {"LDL", decode_load},
    {"ST", decode_store},  {"STG", decode_store},     {"STS", decode_store},      {"STL", decode_store},
    {"QSPC", decode_qspc}, {"LDGSTS", decode_ldgsts}, {"CCTLT", decode_prefetch},
};

}  // namespace

std::span<const MachineOpcode> machine_memory_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
