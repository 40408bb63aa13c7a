// SPDX-License-Identifier: Apache-2.0
// Copies from global to shared memory that a kernel starts and later waits for. Here they are over at once.
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <string>

#include "gpu/exec/fault.hpp"
#include "gpu/exec/instructions/mbarrier.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/memory_access.hpp"
#include "gpu/exec/opcodes.hpp"

namespace manyscale::gpu {
namespace {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

// cp.async: the destination as in all accesses; src[1] is the base of the source, aux (signed) what is added
// to it; src[2]: how many bytes of the source are read, the rest is zero; src[3]: a predicate that says to
// read none, negated if count is 1. Either may be missing. Op::bytes are written.
struct Sizes {
  std::array<std::uint32_t, kLanes> read;
  bool all_whole = true;
};

Sizes source_sizes(Warp& warp, const Op& op) {
  Sizes sizes;
  sizes.read.fill(op.bytes);
  if (op.src[2] != kNoSlot) {
    const auto* given = warp.lanes<std::uint32_t>(op.src[2]);
    for_each_active(warp.mask, [&](unsigned lane) {
      if (given[lane] > op.bytes)
        throw Fault("it copies " + std::to_string(op.bytes) + " bytes, but is told that the source has " +
                        std::to_string(given[lane]),
                    lane);
      sizes.read[lane] = given[lane];
      sizes.all_whole &= given[lane] == op.bytes;
    });
  }
  if (op.src[3] != kNoSlot) {
    const Mask ignored = (op.count == 1 ? ~warp.predicate(op.src[3]) : warp.predicate(op.src[3])) & warp.mask;
    for_each_active(ignored, [&](unsigned lane) { sizes.read[lane] = 0; });
    sizes.all_whole &= ignored == 0;
  }
  return sizes;
}

// The access to the source, as an operation of its own.
Op source_access(const Op& op) {
  Op source = op;
  source.src[0] = op.src[1];
  source.immediate = static_cast<std::int32_t>(op.aux);
  source.flags = static_cast<std::uint8_t>(static_cast<unsigned>(Space::global) << kSpaceShift);
  return source;
}

// Lanes that read equally much go together. Where nothing is read, the address may be anything.
void copy_by_size(Warp& warp, const Op& op, const Op& source, const Sizes& sizes,
                  const std::array<std::byte*, kLanes>& to) {
  const Mask all = warp.mask;
  Mask reading = 0;
  for (Mask left = all; left != 0; left &= ~warp.mask) {
    const std::uint32_t size = sizes.read[static_cast<unsigned>(std::countr_zero(left))];
    warp.mask = ballot([&](unsigned lane) { return sizes.read[lane] == size; }) & left;
    for_each_active(warp.mask, [&](unsigned lane) { std::memset(to[lane], 0, op.bytes); });
    if (size == 0) continue;
    reading |= warp.mask;
    const Located from = locate(warp, source, size, Does::load);
    for_each_active(warp.mask, [&](unsigned lane) { std::memcpy(to[lane], from.at(lane), size); });
  }
  warp.mask = all;
  if (reading == 0) return;
  // For those who watch, the access is one.
  compute_addresses(warp, source.src[0], source.immediate, warp.access->addresses.data());
  warp.access->mask = reading;
  warp.access->bytes = op.bytes;
}

template <unsigned Bytes>
void copy(Warp& warp, const Op& op) {
  const Sizes sizes = source_sizes(warp, op);
  const Located located = locate(warp, op, Bytes, Does::store);
  std::array<std::byte*, kLanes> to;  // the next access uses the same room for its addresses
  for (unsigned lane = 0; lane < kLanes; ++lane) to[lane] = located.at(lane);
  const Op source = source_access(op);
  if (!sizes.all_whole) return copy_by_size(warp, op, source, sizes, to);
  const Located from = locate(warp, source, Bytes, Does::load);
  for_each_active(warp.mask, [&](unsigned lane) { std::memcpy(to[lane], from.at(lane), Bytes); });
}

void do_nothing(Warp&, const Op&) {}

// The base and offset of an address in global memory.
struct Source {
  Slot base = kNoSlot;
  std::int64_t offset = 0;
};

Source decode_source(Builder& builder, unsigned operand) {
  const Builder::Address address = builder.address(builder.operand(operand), Space::global);
  if (address.is_frame) builder.unsupported("the source must be in global memory");
  if (address.base == kNoSlot) return {builder.constant(static_cast<std::uint64_t>(address.offset), 8), 0};
  if (address.offset < std::numeric_limits<std::int32_t>::min() ||
      address.offset > std::numeric_limits<std::int32_t>::max())
    builder.unsupported("the offset of the source does not fit in 32 bits");
  return {address.base, address.offset};
}

void decode_copy(Builder& builder) {
  const int level = builder.accept_one_of({"ca", "cg"});
  if (level < 0) builder.unsupported("it does not say .ca or .cg");
  if (builder.accept_one_of({"shared", "shared::cta"}) < 0 || !builder.accept("global"))
    builder.unsupported("it must copy from global to shared memory");
  builder.ignore({"L2::64B", "L2::128B", "L2::256B"});
  const unsigned trailing = builder.accept("L2::cache_hint") ? 1 : 0;  // a policy operand
  builder.expect_operands(3 + trailing, 4 + trailing);
  const std::int64_t bytes = builder.integer(2);
  if (bytes != 16 && (level == 1 || (bytes != 4 && bytes != 8)))
    builder.unsupported("it cannot copy " + std::to_string(bytes) + " bytes");

  const AddressFields destination = decode_address(builder, 0, Space::shared);
  const Source source = decode_source(builder, 1);
  Slot size = kNoSlot;
  Slot ignores = kNoSlot;
  bool negated = false;
  if (builder.operands() == 4 + trailing) {
    const Operand& last = builder.operand(3);
    if (builder.register_bytes(last, 4) == 0)
      ignores = builder.predicate_source(last, &negated);
    else
      size = builder.source(last, Type::b32);
  }
  Op& op = builder.emit(bytes == 4 ? copy<4> : bytes == 8 ? copy<8> : copy<16>, Class::load);
  destination.apply(op);
  op.src[1] = source.base;
  op.src[2] = size;
  op.src[3] = ignores;
  op.aux = static_cast<std::uint32_t>(source.offset);
  op.bytes = static_cast<std::uint8_t>(bytes);
  op.count = negated ? 1 : 0;
}

void decode_copy_opcode(Builder& builder) {
  if (builder.accept_one_of({"bulk", "reduce"}) >= 0)
    builder.unsupported("bulk and tensor copies (sm_90) are not modelled");
  if (!builder.accept("async")) builder.unsupported("only asynchronous copies are known");
  if (builder.accept("mbarrier")) return decode_copy_arrival(builder);
  switch (builder.accept_one_of({"commit_group", "wait_group", "wait_all"})) {
    case 0:
    case 2:
      builder.expect_operands(0);
      break;
    case 1:
      builder.expect_operands(1);
      builder.integer(0);
      break;
    default:
      return decode_copy(builder);
  }
  builder.emit(do_nothing, Class::fence);
}

constexpr Opcode kOpcodes[] = {{"cp", decode_copy_opcode}};

}  // namespace

std::span<const Opcode> async_copy_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
