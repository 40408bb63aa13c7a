// SPDX-License-Identifier: Apache-2.0
// Moves between registers, constants and special registers.
#include <cstring>

#include "gpu/exec/address_space.hpp"
#include "gpu/exec/fault.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/sass/builder.hpp"
#include "gpu/exec/sass/decoder.hpp"
#include "gpu/sass/special_registers.hpp"

namespace manyscale::gpu {
namespace {

using I64 = std::int64_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

void copy(Warp& warp, const Op& op) {
  const U32* from = warp.lanes<U32>(op.src[0]);
  for_words(warp, op.dst, [=](unsigned i) { return from[i]; });
}

void decode_mov(MachineBuilder& builder) {
  // Which bytes are written: all of them, in all that compilers make.
  if (builder.values() > 1 && builder.immediate(builder.value(1)) != 0xf)
    builder.unsupported("only some bytes are written");
  const Slot dst = builder.destination();
  const Slot from = builder.source(0);
  Op& op = builder.emit(copy, Class::move);
  op.dst = dst;
  op.src[0] = from;
}

template <bool modified>
void select(Warp& warp, const Op& op) {
  const Words<modified> a(warp, op, 0), b(warp, op, 1);
  const Mask first = first_condition(warp, op);
  for_words(warp, op.dst, [=](unsigned i) { return (first & (Mask{1} << i)) != 0 ? a[i] : b[i]; });
}

void decode_sel(MachineBuilder& builder) {
  I64 modifiers = 0;
  const Slot dst = builder.destination();
  const Slot a = builder.source(0, 1, &modifiers, 0);
  const Slot b = builder.source(1, 1, &modifiers, 1);
  bool negated = false;
  const Slot first = builder.condition(0, negated);
  Op& op = builder.emit(modifiers != 0 ? select<true> : select<false>, Class::move);
  op.dst = dst;
  op.src = {a, b, kNoSlot, first};
  op.immediate = modifiers | (negated ? kPredicateNegated : 0);
}

// R2UR: the value of one lane for all that are here, also for those that the guard leaves out.
void take_one(Warp& warp, const Op& op) {
  const U32 value = warp.lanes<U32>(op.src[0])[__builtin_ctz(warp.mask)];
  if (op.dst2 != kNoSlot) {
    // Which lanes have another value than that.
    const U32* values = warp.lanes<U32>(op.src[0]);
    set_predicate(warp, op.dst2, ballot([=](unsigned i) { return values[i] != value; }));
  }
  U32* to = warp.lanes<U32>(op.dst);
  for_each_active(warp.active, [=](unsigned lane) { to[lane] = value; });
}

void decode_r2ur(MachineBuilder& builder) {
  builder.ignore({"FILL", "OR", "BROADCAST"});
  const Slot dst = builder.destination();
  const Slot from = builder.source(builder.values() - 1);
  Op& op = builder.emit(take_one, Class::move);
  op.dst = dst;
  op.dst2 = builder.predicate_result(0);
  op.src[0] = from;
}

// --- Special registers

void read_clock(Warp& warp, const Op& op) {
  const std::uint64_t now = warp.clock();
  if (op.count == 2)
    for_pairs(warp, op.dst, [=](unsigned) { return now; });
  else
    for_words(warp, op.dst, [=](unsigned) { return op.bytes != 0 ? now >> 32 : now; });
}

void zero_words(Warp& warp, const Op& op) {
  for (unsigned k = 0; k < op.count; ++k) for_words(warp, next_word(op.dst, k), [](unsigned) { return 0; });
}

// SR_VIRTID and SR_VIRTCFG: a number of warps above eight other bits.
void copy_above(Warp& warp, const Op& op) {
  const U32* from = warp.lanes<U32>(op.src[0]);
  for_words(warp, op.dst, [=](unsigned i) { return from[i] << 8; });
}

struct SpecialValue {
  std::string_view name;
  Special special;
};

constexpr SpecialValue kSpecials[] = {
    {"SR_TID.X", Special::tid_x},        {"SR_TID.Y", Special::tid_y},
    {"SR_TID.Z", Special::tid_z},        {"SR_CTAID.X", Special::ctaid_x},
    {"SR_CTAID.Y", Special::ctaid_y},    {"SR_CTAID.Z", Special::ctaid_z},
    {"SR_NTID.X", Special::ntid_x},      {"SR_NTID.Y", Special::ntid_y},
    {"SR_NTID.Z", Special::ntid_z},      {"SR_NCTAID.X", Special::nctaid_x},
    {"SR_NCTAID.Y", Special::nctaid_y},  {"SR_NCTAID.Z", Special::nctaid_z},
    {"SR_LANEID", Special::laneid},      {"SR_EQMASK", Special::lanemask_eq},
    {"SR_LTMASK", Special::lanemask_lt}, {"SR_LEMASK", Special::lanemask_le},
    {"SR_GTMASK", Special::lanemask_gt}, {"SR_GEMASK", Special::lanemask_ge},
    {"SR_VIRTUALSMID", Special::smid},   {"SR_SMEMSZ", Special::total_smem_size},
    {"SR_WARPID", Special::warpid},
};

// Shared and local memory begin at multiples of 4 GiB.
static_assert((kSharedWindow & 0xffffffff) == 0 && (kLocalWindow & 0xffffffff) == 0);

void decode_special(MachineBuilder& builder) {
  builder.ignore({"32", "64"});
  const sass::Operand* from = builder.find(sass::OperandKind::special);
  if (from == nullptr) builder.unsupported("no special register is named");
  const std::string name = sass::special_register_name(static_cast<unsigned>(from->value));
  const unsigned words = std::max<unsigned>(builder.result(0).count, 1);
  const Slot dst = builder.destination(0, words);
  const auto emit = [&](Handler handler) -> Op& {
    Op& op = builder.emit(handler, Class::move);
    op.dst = dst;
    op.count = static_cast<std::uint8_t>(words);
    return op;
  };
  const auto emit_copy = [&](Slot slot) {
    if (words != 1) builder.unsupported("special register " + name + " has 32 bits");
    emit(copy).src[0] = slot;
  };
  const auto in_warp = [](Special special) {
    return make_slot(Base::warp, static_cast<std::uint32_t>(special) * kSpecialStride);
  };
  if (name == "SRZ") {
    emit(zero_words);
    return;
  }
  if (name.starts_with("SR_CLOCK") || name.starts_with("SR_GLOBALTIMER")) {
    emit(read_clock).bytes = name.ends_with("HI") ? 1 : 0;
    builder.emit(read_clock, Class::other, Flow::yield);
    return;
  }
  if (name == "SR_SWINHI") return emit_copy(builder.constant(static_cast<U32>(kSharedWindow >> 32)));
  if (name == "SR_LWINHI") return emit_copy(builder.constant(static_cast<U32>(kLocalWindow >> 32)));
  // Without clusters each CTA is the first of its own.
  if (name == "SR_VIRTID" || name == "SR_VIRTCFG") {
    emit(copy_above).src[0] = in_warp(name == "SR_VIRTID" ? Special::warpid : Special::nwarpid);
    return;
  }
  if (name == "SR_SWINLO" || name == "SR_LWINLO" || name == "SR_CgaCtaId" ||
      name == "SR_CirQueueIncrMinusOne")
    return emit_copy(builder.constant(0));
  for (const SpecialValue& entry : kSpecials)
    if (entry.name == name) return emit_copy(in_warp(entry.special));
  builder.unsupported("special register " + name + " is not supported");
}

// --- Constants at addresses that the program computes

constexpr unsigned kBankBits = kFreeBits + 8;

template <class M>
void load_constant(Warp& warp, const Op& op) {
  const auto bank = static_cast<unsigned>(op.immediate >> kBankBits) & 31;
  const auto first = static_cast<U32>(op.immediate);
  const auto bytes = warp.launch().banks[bank];
  const U32* index = op.src[0] == kNoSlot ? nullptr : warp.lanes<U32>(op.src[0]);
  const unsigned words = op.count;
  const unsigned size = words > 1 ? 4 * words : sizeof(M);
  std::array<const std::byte*, kLanes> from{};
  warp.access->space = ptx::Space::constant;
  warp.access->bytes = static_cast<std::uint8_t>(size);
  warp.access->mask = warp.mask;
  const U64 origin = bank == 3 ? warp.launch().program->banks.variables : kParameterWindow;
  for_each_active(warp.mask, [&](unsigned lane) {
    const U32 offset = first + (index == nullptr ? 0 : index[lane]);
    if (offset > bytes.size() || bytes.size() - offset < size)
      throw Fault("out of bounds: it reads " + std::to_string(size) + " bytes at " + std::to_string(offset) +
                      " of constant bank " + std::to_string(bank) + ", which has " +
                      std::to_string(bytes.size()) + " bytes",
                  lane, FaultKind::invalid_address, offset);
    from[lane] = bytes.data() + offset;
    warp.access->addresses[lane] = origin + offset;
  });
  for (unsigned k = 0; k < words; ++k) {
    auto* to = warp.lanes<U32>(next_word(op.dst, k));
    for_each_active(warp.mask, [&](unsigned lane) {
      M value;
      std::memcpy(&value, from[lane] + 4 * k, sizeof value);
      to[lane] = static_cast<U32>(value);
    });
  }
}

void copy_words(Warp& warp, const Op& op) {
  for (unsigned k = 0; k < op.count; ++k) {
    const U32* from = warp.lanes<U32>(next_word(op.src[0], k));
    for_words(warp, next_word(op.dst, k), [=](unsigned i) { return from[i]; });
  }
}

void decode_ldc(MachineBuilder& builder) {
  constexpr Handler kHandlers[] = {load_constant<std::uint8_t>, load_constant<std::int8_t>,
                                   load_constant<std::uint16_t>, load_constant<std::int16_t>};
  const int type = builder.accept_one_of({"U8", "S8", "U16", "S16"});
  const unsigned words = builder.accept("64") ? 2 : builder.accept("128") ? 4 : 1;
  builder.ignore({"IL", "IS", "ISL", "32"});
  const sass::Operand* from = builder.find(sass::OperandKind::constant);
  if (from == nullptr) builder.unsupported("no constant is named");
  if (from->descriptor != sass::Operand::kNone) builder.unsupported("a constant of a bound table");
  const bool by_uniform =
      from->uniform != sass::Operand::kNone && from->uniform != sass::kZeroUniformRegister;
  const Slot dst = builder.destination(0, words);
  const bool known = from->index == sass::kZeroRegister && !by_uniform;
  if (known && type < 0) {
    const Slot slot = builder.source(*from, words);
    Op& op = builder.emit(words == 1 ? copy : copy_words, Class::load);
    op.dst = dst;
    op.src[0] = slot;
    op.count = static_cast<std::uint8_t>(words);
    return;
  }
  Op& op = builder.emit(type < 0 ? load_constant<U32> : kHandlers[type], Class::load);
  op.dst = dst;
  if (from->index != sass::kZeroRegister) op.src[0] = general_register(from->index);
  if (by_uniform) op.src[0] = builder.decoder().layout().uniform_register(from->uniform);
  op.count = static_cast<std::uint8_t>(words);
  op.immediate = static_cast<I64>(static_cast<U32>(from->value)) | I64{from->bank} << kBankBits;
}

constexpr MachineOpcode kOpcodes[] = {
    {"MOV", decode_mov},       {"UMOV", decode_mov},    {"SEL", decode_sel},      {"USEL", decode_sel},
    {"R2UR", decode_r2ur},     {"S2R", decode_special}, {"S2UR", decode_special}, {"CS2R", decode_special},
    {"CS2UR", decode_special}, {"LDC", decode_ldc},     {"ULDC", decode_ldc},
};

}  // namespace

std::span<const MachineOpcode> machine_move_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
