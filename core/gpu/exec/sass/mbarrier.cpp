// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory that count arrivals and, from sm_90 on, bytes on their way; and the bulk copies
// whose bytes they count. Programs write the first words of such a barrier themselves and look at the phase
// in what an arrival returns, so those bits are where the hardware has them.
#include "gpu/exec/sass/mbarrier.hpp"

#include <bit>
#include <cstring>
#include <string>

#include "gpu/exec/fault.hpp"
#include "gpu/exec/instructions/barrier.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/memory_access.hpp"
#include "gpu/exec/sass/address.hpp"
#include "gpu/exec/sass/builder.hpp"
#include "gpu/exec/sass/decoder.hpp"

namespace manyscale::gpu {
namespace {

using ptx::Space;
using sass::Operand;
using sass::OperandKind;
using I32 = std::int32_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

U64 read_bits(const std::byte* from) {
  U64 bits = 0;
  std::memcpy(&bits, from, sizeof bits);
  return bits;
}

void write_bits(std::byte* to, U64 bits) {
  std::memcpy(to, &bits, sizeof bits);
}

[[noreturn]] void too_many(U32 count, U32 pending, unsigned lane) {
  throw Fault("there are " + std::to_string(count) + " arrivals at an mbarrier that waits for " +
                  std::to_string(pending) + " more in this phase",
              lane);
}

// The barrier of sm_80. Its lower word is 2^30 less the arrivals in each phase, its upper word counts up to
// 2^31 from where it was so many below; the highest bit is the parity of the phase, into which it overflows.
struct PlainBarrier {
  static constexpr U32 kPhase = U32{1} << 31;
  static constexpr U32 kNoneExpected = U32{1} << 30;

  U32 expected = 0;
  U32 arrived = 0;

  explicit PlainBarrier(U64 bits) : expected(static_cast<U32>(bits)), arrived(static_cast<U32>(bits >> 32)) {}
  U64 bits() const { return expected | U64{arrived} << 32; }
  U32 pending() const { return (kPhase - arrived) & (kPhase - 1); }

  // One arrival; true if it ends the phase.
  bool arrive(unsigned lane) {
    if (pending() == 0) too_many(1, 0, lane);
    ++arrived;
    if (pending() != 0) return false;
    arrived = (arrived & kPhase) | ((expected + kNoneExpected) & (kPhase - 1));
    return true;
  }
};

// The barrier of sm_90, from its lowest bit: one bit, 20 of 2^20 less the arrivals in each phase, 21 of the
// bytes that are waited for (signed), one bit, 20 of 2^20 less the arrivals that are waited for, and the
// parity of the phase.
struct CountingBarrier {
  static constexpr unsigned kCountBits = 20;
  static constexpr U32 kCounts = U32{1} << kCountBits;
  static constexpr unsigned kExpectedAt = 1;
  static constexpr unsigned kBytesAt = kExpectedAt + kCountBits;
  static constexpr unsigned kByteBits = 21;
  static constexpr unsigned kPendingAt = 43;
  static constexpr unsigned kPhaseAt = 63;

  U32 expected = 0;
  U32 pending = 0;
  I32 bytes = 0;
  bool odd = false;

  explicit CountingBarrier(U64 bits)
      : expected(count(bits >> kExpectedAt)),
        pending(count(bits >> kPendingAt)),
        bytes(static_cast<I32>(static_cast<U32>(bits >> kBytesAt) << (32 - kByteBits)) >> (32 - kByteBits)),
        odd((bits >> kPhaseAt & 1) != 0) {}
  U64 bits() const {
    constexpr U64 kBytes = (U64{1} << kByteBits) - 1;
    return field(expected) << kExpectedAt | (static_cast<U64>(I64{bytes}) & kBytes) << kBytesAt |
           field(pending) << kPendingAt | U64{odd} << kPhaseAt;
  }

  void arrive(U32 arrivals, bool for_ever, unsigned lane) {
    if (arrivals > pending || arrivals == 0) too_many(arrivals, pending, lane);
    pending -= arrivals;
    if (for_ever) expected -= std::min(arrivals, expected);
  }
  void expect(std::int64_t more, unsigned lane) {
    constexpr std::int64_t kMost = (std::int64_t{1} << (kByteBits - 1)) - 1;
    if (bytes + more > kMost || bytes + more < -kMost)
      throw Fault("the mbarrier is told to wait for " + std::to_string(bytes + more) +
                      " bytes, and can count to " + std::to_string(kMost),
                  lane);
    bytes += static_cast<I32>(more);
  }
  bool complete_if_done() {
    if (pending != 0 || bytes != 0) return false;
    pending = expected;
    odd = !odd;
    return true;
  }

 private:
  using I64 = std::int64_t;
  static U32 count(U64 bits) { return (kCounts - static_cast<U32>(bits)) & (kCounts - 1); }
  static U64 field(U32 count) { return (kCounts - count) & (kCounts - 1); }
};

// Threads that wait see what was done before the phase ended.
void note_completion(Warp& warp) {
  if (Checker* checker = warp.worker().checker) checker->barrier();
}

void return_state(Warp& warp, const Op& op, unsigned lane, U64 state) {
  if (op.dst == kNoSlot) return;
  warp.lanes<U32>(op.dst)[lane] = static_cast<U32>(state);
  warp.lanes<U32>(next_word(op.dst))[lane] = static_cast<U32>(state >> 32);
}

void arrive_plainly(Warp& warp, const Op& op) {
  const Located located = locate(warp, op, sizeof(U64), Does::atomic);
  bool completed = false;
  for_each_active(warp.mask, [&](unsigned lane) {
    const U64 before = read_bits(located.at(lane));
    PlainBarrier barrier(before);
    completed |= barrier.arrive(lane);
    write_bits(located.at(lane), barrier.bits());
    return_state(warp, op, lane, before);
  });
  if (completed) note_completion(warp);
}

// Op::count of an arrival of sm_90 says what it brings.
enum Brings : std::uint8_t {
  kArrivalAndBytes,  // one arrival, so many more bytes to wait for as src[1] says
  kArrival,
  kOneByte,  // to wait for
  kBytes,
  kBytesThatCame,
  kArrivals,      // as many as src[1] says
  kOneByteCame,   // of ARRIVES
  kLeaves = 0x10  // what arrives does not come in later phases
};

void arrive_counting(Warp& warp, const Op& op) {
  const Located located = locate(warp, op, sizeof(U64), Does::atomic);
  const U32* operand = op.src[1] == kNoSlot ? nullptr : warp.lanes<U32>(op.src[1]);
  const auto value = [&](unsigned lane) { return operand == nullptr ? 0 : operand[lane]; };
  const bool leaves = (op.count & kLeaves) != 0;
  bool completed = false;
  for_each_active(warp.mask, [&](unsigned lane) {
    const U64 before = read_bits(located.at(lane));
    CountingBarrier barrier(before);
    switch (op.count & ~kLeaves) {
      case kArrivalAndBytes:
        barrier.expect(value(lane), lane);
        barrier.arrive(1, leaves, lane);
        break;
      case kArrival:
        barrier.arrive(1, leaves, lane);
        break;
      case kOneByte:
        barrier.expect(1, lane);
        break;
      case kBytes:
        barrier.expect(value(lane), lane);
        break;
      case kBytesThatCame:
        barrier.expect(-std::int64_t{value(lane)}, lane);
        break;
      case kArrivals:
        barrier.arrive(value(lane), leaves, lane);
        break;
      default:
        barrier.expect(-1, lane);
        break;
    }
    completed |= barrier.complete_if_done();
    write_bits(located.at(lane), barrier.bits());
    return_state(warp, op, lane, before);
  });
  if (completed) note_completion(warp);
}

// With .TMASK the first word of the result says which lanes arrived at once: here they arrive one by one.
void arrive_with_mask(Warp& warp, const Op& op) {
  arrive_counting(warp, op);
  if (op.dst == kNoSlot) return;
  for_words(warp, op.dst, [](unsigned lane) { return U32{1} << lane; });
}

// Whether the phase is over that a state or a parity names by its highest bit.
void check_phase(Warp& warp, const Op& op) {
  const Located located = locate(warp, op, sizeof(U64), Does::atomic);
  const U32* states = warp.lanes<U32>(op.src[1]);
  Mask over = 0;
  for_each_active(warp.mask, [&](unsigned lane) {
    const U32 phase = static_cast<U32>(read_bits(located.at(lane)) >> 32);
    over |= static_cast<Mask>((phase ^ states[lane]) >> 31) << lane;
  });
  if (op.dst2 != kNoSlot) set_predicate(warp, op.dst2, over);
}

// Instructions of the uniform datapath are carried out once, by the first lane.
class AsOneLane {
 public:
  explicit AsOneLane(Warp& warp) : warp_(warp), all_(warp.mask) { warp.mask &= 0 - warp.mask; }
  ~AsOneLane() { warp_.mask = all_; }
  AsOneLane(const AsOneLane&) = delete;
  AsOneLane& operator=(const AsOneLane&) = delete;
  unsigned lane() const { return static_cast<unsigned>(std::countr_zero(warp_.mask)); }
  Mask all() const { return all_; }

 private:
  Warp& warp_;
  Mask all_;
};

void exchange(Warp& warp, const Op& op) {
  U64 before = 0;
  {
    const AsOneLane one(warp);
    const Located located = locate(warp, op, sizeof(U64), Does::store);
    before = read_bits(located.at(one.lane()));
    write_bits(located.at(one.lane()), Pairs(warp, op.src[1])[one.lane()]);
  }
  if (op.dst != kNoSlot) for_pairs(warp, op.dst, [=](unsigned) { return before; });
}

void invalidate(Warp& warp, const Op& op) {
  const Located located = locate(warp, op, sizeof(U64), Does::store);
  for_each_active(warp.mask, [&](unsigned lane) { write_bits(located.at(lane), 0); });
}

// --- Bulk copies: units of 16 bytes, of which the lower half of src[2] is the number. The destination is in
// src[0], the source in src[1]; where bytes go to shared memory, behind the destination is the barrier's
// address. They are over at once.

constexpr unsigned kUnit = 16;
enum Copies : std::uint8_t { kToShared = 1, kFromShared = 2 };

void copy_bulk(Warp& warp, const Op& op) {
  const AsOneLane one(warp);
  const unsigned lane = one.lane();
  const bool to_shared = (op.count & kToShared) != 0;
  const bool from_shared = (op.count & kFromShared) != 0;
  const auto address_of = [&](Slot slot, bool shared) {
    return shared ? U64{warp.lanes<U32>(slot)[lane]} : Pairs(warp, slot)[lane];
  };
  std::array<U64, kLanes> from{};
  std::array<U64, kLanes> to{};
  from[lane] = address_of(op.src[1], from_shared);
  to[lane] = address_of(op.src[0], to_shared);
  const U32 units = warp.lanes<U32>(op.src[2])[lane] & 0xffff;
  for (U32 unit = 0; unit < units; ++unit) {
    LanePointers source;
    LanePointers target;
    resolve(warp, op, from_shared ? Space::shared : Space::global, from.data(), warp.mask, kUnit, false,
            source);
    resolve(warp, op, to_shared ? Space::shared : Space::global, to.data(), warp.mask, kUnit, true, target);
    std::memcpy(target.at[lane], source.at[lane], kUnit);
    from[lane] += kUnit;
    to[lane] += kUnit;
  }
  if (!to_shared) return;
  std::array<U64, kLanes> barriers{};
  barriers[lane] = warp.lanes<U32>(next_word(op.src[0]))[lane];
  LanePointers pointers;
  resolve(warp, op, Space::shared, barriers.data(), warp.mask, sizeof(U64), true, pointers);
  CountingBarrier barrier(read_bits(pointers.at[lane]));
  barrier.expect(-std::int64_t{units} * kUnit, lane);
  const bool completed = barrier.complete_if_done();
  write_bits(pointers.at[lane], barrier.bits());
  if (completed) note_completion(warp);
}

// --- Decoding

Op& emit(MachineBuilder& builder, Handler handler, Flow flow = Flow::next) {
  const Operand* address = builder.find(OperandKind::address);
  if (address == nullptr) builder.unsupported("no address is named");
  Op& op = builder.emit(handler, Class::barrier, flow);
  builder.address(op, *address, Space::shared);
  op.bytes = sizeof(U64);
  return op;
}

Slot wanted_state(MachineBuilder& builder) {
  const bool wanted = builder.results() > 0 && builder.is_wanted(builder.result(0));
  return wanted ? builder.destination(0, 2) : kNoSlot;
}

void decode_syncs(MachineBuilder& builder) {
  builder.ignore({"TRANS64", "64"});
  const Slot dst = wanted_state(builder);
  if (builder.accept("ARRIVE")) {
    const bool masked = builder.accept("TMASK");
    builder.ignore({"RED"});
    const bool leaves = builder.accept("OPTOUT");
    const int brings = builder.accept_one_of({"A1T0", "A0T1", "A0TR", "A0TX", "ART0"}) + 1;
    const Slot operand = builder.source(0);
    Op& op = emit(builder, masked ? arrive_with_mask : arrive_counting);
    op.dst = dst;
    op.src[1] = operand;
    op.count = static_cast<std::uint8_t>(static_cast<unsigned>(brings) | (leaves ? 1U : 0U) * kLeaves);
  } else if (builder.accept("PHASECHK")) {
    builder.ignore({"TRYWAIT"});
    const Slot state = builder.source(0);
    Op& op = emit(builder, check_phase, Flow::yield);
    op.src[1] = state;
    op.dst2 = builder.predicate_result(0);
  } else if (builder.accept("EXCH")) {
    const Slot value = builder.source(0, 2);
    Op& op = emit(builder, exchange);
    op.dst = dst;
    op.src[1] = value;
  } else if (builder.accept("CCTL") && builder.accept("IV")) {
    emit(builder, invalidate);
  } else {
    builder.unsupported("no such use of a barrier");
  }
}

// ARRIVES: what LDGSTS copied is here, so it arrives.
void decode_arrives(MachineBuilder& builder) {
  builder.ignore({"LDGSTSBAR", "64"});
  const bool bytes = builder.accept("TRANSCNT");
  const bool counting = builder.accept("ARVCNT") || bytes;
  Op& op = emit(builder, counting ? arrive_counting : arrive_plainly);
  op.count = bytes ? kOneByteCame : kArrival;
}

void decode_bulk_copy(MachineBuilder& builder) {
  std::vector<const Operand*> addresses;
  for (unsigned i = 0; i < builder.instruction().operand_count; ++i)
    if (builder.instruction().operands[i].kind == OperandKind::address)
      addresses.push_back(&builder.instruction().operands[i]);
  if (addresses.size() != 2) builder.unsupported("two addresses are needed");
  for (const Operand* address : addresses)
    if (address->uniform >= sass::kZeroUniformRegister) builder.unsupported("an address is missing");
  const auto& modifiers = builder.instruction().modifiers;
  const bool to_shared = modifiers[0] == sass::mod("S");
  const bool from_shared = modifiers[1] == sass::mod("S");
  if (to_shared == from_shared) builder.unsupported("only copies between global and shared memory are known");
  builder.ignore({"S", "G"});
  const Slot size = builder.source(0);
  const RegisterLayout& layout = builder.decoder().layout();
  Op& op = builder.emit(copy_bulk, Class::load);
  op.src = {layout.uniform_register(addresses[0]->uniform), layout.uniform_register(addresses[1]->uniform),
            size, kNoSlot};
  op.count = static_cast<std::uint8_t>(to_shared ? kToShared : kFromShared);
  op.bytes = kUnit;
}

// RPCMOV: to or from a pair of registers of its own, behind all others.
void copy_word(Warp& warp, const Op& op) {
  const U32* from = warp.lanes<U32>(op.src[0]);
  for_words(warp, op.dst, [=](unsigned lane) { return from[lane]; });
}

void decode_return_address(MachineBuilder& builder) {
  builder.ignore({"32"});
  const Operand* half = builder.find(OperandKind::word);
  if (half == nullptr) builder.unsupported("no half of the return address is named");
  const Slot half_slot = builder.decoder().return_address(half->value != 0);
  const bool reads = builder.results() > 0;
  const Slot dst = reads ? builder.destination() : half_slot;
  const Slot from = reads ? half_slot : builder.source(0);
  Op& op = builder.emit(copy_word, Class::move);
  op.dst = dst;
  op.src[0] = from;
}

constexpr MachineOpcode kOpcodes[] = {
    {"SYNCS", decode_syncs},
    {"ARRIVES", decode_arrives},
    {"UBLKCP", decode_bulk_copy},
    {"RPCMOV", decode_return_address},
};

}  // namespace

void decode_shared_arrival(MachineBuilder& builder) {
  builder.ignore({"64"});
  const Slot dst = wanted_state(builder);
  emit(builder, arrive_plainly, Flow::yield).dst = dst;
}

std::span<const MachineOpcode> machine_mbarrier_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
