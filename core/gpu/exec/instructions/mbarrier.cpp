// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/instructions/mbarrier.hpp"

#include <bit>
#include <cstring>
#include <string>

#include "gpu/exec/fault.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/memory_access.hpp"
#include "gpu/exec/opcodes.hpp"

namespace manyscale::gpu {
namespace {

using ptx::Operand;
using ptx::OperandKind;
using ptx::Space;
using ptx::Type;

constexpr unsigned kCountBits = 20;
constexpr std::uint32_t kMostArrivals = (1U << kCountBits) - 1;
constexpr std::int32_t kMostBytes = (1 << kCountBits) - 1;

// What an mbarrier object holds, and the state that arriving returns. Its 64 bits in memory, from the lowest:
// 20 bits of expected arrivals, 20 of pending ones, 21 of the tx-count (signed), 1 of the phase's parity and
// 2 that are 01 in an object that was initialised, so that others are recognised.
struct MBarrier {
  std::uint32_t expected = 0;  // arrivals in each phase
  std::uint32_t pending = 0;   // arrivals that this phase still waits for
  std::int32_t tx_count = 0;   // bytes that this phase still waits for
  bool odd = false;            // parity of the phase

  static constexpr std::uint64_t kMark = 1;

  static MBarrier unpack(std::uint64_t bits) {
    return {static_cast<std::uint32_t>(bits & kMostArrivals),
            static_cast<std::uint32_t>(bits >> kCountBits & kMostArrivals),
            static_cast<std::int32_t>(static_cast<std::uint32_t>(bits >> 2 * kCountBits) << 11) >> 11,
            (bits >> 61 & 1) != 0};
  }
  std::uint64_t pack() const {
    return expected | std::uint64_t{pending} << kCountBits |
           (static_cast<std::uint64_t>(tx_count) & 0x1FFFFF) << 2 * kCountBits | std::uint64_t{odd} << 61 |
           kMark << 62;
  }
  static bool is_one(std::uint64_t bits) { return bits >> 62 == kMark; }

  // Begins the next phase if nothing is waited for any more.
  bool complete_if_done() {
    if (pending != 0 || tx_count != 0) return false;
    pending = expected;
    odd = !odd;
    return true;
  }
};

std::uint64_t read_bits(const std::byte* from) {
  std::uint64_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return bits;
}

MBarrier read_barrier(const std::byte* from, unsigned lane) {
  const std::uint64_t bits = read_bits(from);
  if (!MBarrier::is_one(bits))
    throw Fault("there is no mbarrier at this address: none was initialised, or it was overwritten", lane);
  return MBarrier::unpack(bits);
}

void write_barrier(std::byte* to, const MBarrier& barrier) {
  const std::uint64_t bits = barrier.pack();
  std::memcpy(to, &bits, sizeof bits);
}

// Threads that wait see what was done before the phase ended.
void note_completion(Warp& warp) {
  if (Checker* checker = warp.worker().checker) checker->barrier();
}

// --- Handlers. The object's address is in src[0], a count in src[1]
// -----------------------------------------------

void initialise(Warp& warp, const Op& op) {
  const Located located = locate(warp, op, 8, Does::store);
  const auto* counts = warp.lanes<std::uint32_t>(op.src[1]);
  for_each_active(warp.mask, [&](unsigned lane) {
    const std::uint32_t count = counts[lane];
    if (count == 0 || count > kMostArrivals)
      throw Fault("an mbarrier for " + std::to_string(count) + " arrivals: there must be 1 to " +
                      std::to_string(kMostArrivals),
                  lane);
    write_barrier(located.at(lane), {count, count, 0, false});
  });
}

void invalidate(Warp& warp, const Op& op) {
  const Located located = locate(warp, op, 8, Does::store);
  for_each_active(warp.mask, [&](unsigned lane) {
    read_barrier(located.at(lane), lane);
    std::memset(located.at(lane), 0, 8);
  });
}

void expect_bytes(MBarrier& barrier, std::uint32_t bytes, unsigned lane) {
  if (bytes > static_cast<std::uint32_t>(kMostBytes) ||
      barrier.tx_count > kMostBytes - static_cast<std::int32_t>(bytes))
    throw Fault("the mbarrier is told to expect " + std::to_string(bytes) + " more bytes than the " +
                    std::to_string(barrier.tx_count) + " it waits for, and can count to " +
                    std::to_string(kMostBytes),
                lane);
  barrier.tx_count += static_cast<std::int32_t>(bytes);
}

void complete_bytes(MBarrier& barrier, std::uint32_t bytes, unsigned lane) {
  if (bytes > static_cast<std::uint32_t>(kMostBytes) ||
      barrier.tx_count < static_cast<std::int32_t>(bytes) - kMostBytes)
    throw Fault("more bytes arrive at the mbarrier than it can count", lane);
  barrier.tx_count -= static_cast<std::int32_t>(bytes);
}

// Op::count of an arrival says what else it does.
constexpr std::uint8_t kDrops = 1;         // the thread does not take part in later phases
constexpr std::uint8_t kExpectsBytes = 2;  // src[1] is a number of bytes; one arrival
constexpr std::uint8_t kNoComplete = 4;    // the program promises that it is not the last

void arrive(Warp& warp, const Op& op) {
  const Located located = locate(warp, op, 8, Does::atomic);
  const auto* operand = warp.lanes<std::uint32_t>(op.src[1]);
  auto* state = op.dst == kNoSlot ? nullptr : warp.lanes<std::uint64_t>(op.dst);
  bool completed = false;
  for_each_active(warp.mask, [&](unsigned lane) {
    MBarrier barrier = read_barrier(located.at(lane), lane);
    const std::uint64_t before = barrier.pack();
    const bool expects_bytes = (op.count & kExpectsBytes) != 0;
    const std::uint32_t count = expects_bytes ? 1 : operand[lane];
    if (expects_bytes) expect_bytes(barrier, operand[lane], lane);
    if (count > barrier.pending || count == 0)
      throw Fault("there are " + std::to_string(count) + " arrivals at an mbarrier that waits for " +
                      std::to_string(barrier.pending) + " more in this phase",
                  lane);
    if (op.count & kDrops) barrier.expected -= count;
    barrier.pending -= count;
    if (barrier.complete_if_done()) {
      if (op.count & kNoComplete)
        throw Fault("this arrival completes the phase of the mbarrier, although it says .noComplete", lane);
      completed = true;
    }
    write_barrier(located.at(lane), barrier);
    if (state != nullptr) state[lane] = before;
  });
  if (completed) note_completion(warp);
}

void expect(Warp& warp, const Op& op) {
  const Located located = locate(warp, op, 8, Does::atomic);
  const auto* bytes = warp.lanes<std::uint32_t>(op.src[1]);
  for_each_active(warp.mask, [&](unsigned lane) {
    MBarrier barrier = read_barrier(located.at(lane), lane);
    expect_bytes(barrier, bytes[lane], lane);
    write_barrier(located.at(lane), barrier);
  });
}

void complete(Warp& warp, const Op& op) {
  const Located located = locate(warp, op, 8, Does::atomic);
  const auto* bytes = warp.lanes<std::uint32_t>(op.src[1]);
  bool completed = false;
  for_each_active(warp.mask, [&](unsigned lane) {
    MBarrier barrier = read_barrier(located.at(lane), lane);
    complete_bytes(barrier, bytes[lane], lane);
    completed |= barrier.complete_if_done();
    write_barrier(located.at(lane), barrier);
  });
  if (completed) note_completion(warp);
}

// A phase is over when the object is in one of the other parity.
void test_wait(Warp& warp, const Op& op) {
  const Located located = locate(warp, op, 8, Does::atomic);
  const auto* states = warp.lanes<std::uint64_t>(op.src[1]);
  Mask over = 0;
  for_each_active(warp.mask, [&](unsigned lane) {
    const bool waits_for_odd = MBarrier::unpack(states[lane]).odd;
    if (read_barrier(located.at(lane), lane).odd != waits_for_odd) over |= Mask{1} << lane;
  });
  set_predicate(warp, op.dst, over);
}

void test_wait_parity(Warp& warp, const Op& op) {
  const Located located = locate(warp, op, 8, Does::atomic);
  const auto* parities = warp.lanes<std::uint32_t>(op.src[1]);
  Mask over = 0;
  for_each_active(warp.mask, [&](unsigned lane) {
    const bool waits_for_odd = (parities[lane] & 1) != 0;
    if (read_barrier(located.at(lane), lane).odd != waits_for_odd) over |= Mask{1} << lane;
  });
  set_predicate(warp, op.dst, over);
}

void pending_count(Warp& warp, const Op& op) {
  map1<std::uint32_t, std::uint64_t>(warp, op, [](std::uint64_t state) {
    return static_cast<std::uint32_t>(state >> kCountBits) & kMostArrivals;
  });
}

void do_nothing(Warp&, const Op&) {}

// --- Decoders
// ----------------------------------------------------------------------------------------------------

// The address of the object, behind modifiers that all of them have.
AddressFields decode_object(Builder& builder, unsigned operand) {
  builder.ignore({"acquire", "release", "relaxed", "cta", "cluster"});
  // Without clusters, the shared memory of the cluster is that of the CTA.
  const Space space = builder.accept("shared::cluster") ? Space::shared : decode_space(builder);
  if (space != Space::shared && space != Space::generic)
    builder.unsupported("an mbarrier must be in shared memory");
  if (builder.type() != Type::b64) builder.unsupported("an mbarrier is of type .b64");
  return decode_address(builder, operand, space);
}

Op& emit(Builder& builder, Handler handler, const AddressFields& object, Slot operand,
         Flow flow = Flow::next) {
  Op& op = builder.emit(handler, Class::barrier, flow);
  object.apply(op);
  op.src[1] = operand;
  op.bytes = 8;
  return op;
}

// init, expect_tx, complete_tx: [object], number.
void decode_setting(Builder& builder, Handler handler) {
  builder.expect_operands(2);
  const AddressFields object = decode_object(builder, 0);
  emit(builder, handler, object, builder.source(1, Type::b32));
}

void decode_arrival(Builder& builder, bool drops) {
  std::uint8_t does = drops ? kDrops : 0;
  if (builder.accept("expect_tx")) does |= kExpectsBytes;
  if (builder.accept("noComplete")) does |= kNoComplete;
  builder.expect_operands(does & (kExpectsBytes | kNoComplete) ? 3 : 2, 3);
  const AddressFields object = decode_object(builder, 1);
  const Slot operand = builder.operands() > 2 ? builder.source(2, Type::b32) : builder.constant(1, 4);
  const Slot state =
      builder.operand(0).kind == OperandKind::sink ? kNoSlot : builder.destination(0, Type::b64);
  Op& op = emit(builder, arrive, object, operand);
  op.dst = state;
  op.count = does;
}

void decode_wait(Builder& builder, bool may_suspend) {
  const bool by_parity = builder.accept("parity");
  builder.expect_operands(3, may_suspend ? 4 : 3);  // the fourth is how long to suspend
  const AddressFields object = decode_object(builder, 1);
  const Slot state = builder.source(2, by_parity ? Type::b32 : Type::b64);
  const Slot result = builder.predicate_destination(builder.operand(0));
  Op& op = emit(builder, by_parity ? test_wait_parity : test_wait, object, state, Flow::yield);
  op.dst = result;
}

void decode_pending_count(Builder& builder) {
  builder.expect_operands(2);
  builder.type();
  const Slot state = builder.source(1, Type::b64);
  const Slot count = builder.destination(0, Type::b32);
  Op& op = builder.emit(pending_count, Class::integer);
  op.dst = count;
  op.src[0] = state;
}

void decode_mbarrier(Builder& builder) {
  const auto words = builder.modifiers();
  const std::string_view what = words.empty() ? std::string_view() : words[0];
  builder.accept(what);
  if (what == "init") return decode_setting(builder, initialise);
  if (what == "expect_tx") return decode_setting(builder, expect);
  if (what == "complete_tx") return decode_setting(builder, complete);
  if (what == "arrive") return decode_arrival(builder, false);
  if (what == "arrive_drop") return decode_arrival(builder, true);
  if (what == "test_wait") return decode_wait(builder, false);
  if (what == "try_wait") return decode_wait(builder, true);
  if (what == "pending_count") return decode_pending_count(builder);
  if (what != "inval") builder.unsupported("it is not known what to do with the mbarrier");
  builder.expect_operands(1);
  emit(builder, invalidate, decode_object(builder, 0), kNoSlot);
}

constexpr Opcode kOpcodes[] = {{"mbarrier", decode_mbarrier}};

}  // namespace

void decode_copy_arrival(Builder& builder) {
  if (!builder.accept("arrive")) builder.unsupported("only cp.async.mbarrier.arrive is known");
  builder.expect_operands(1);
  const bool is_counted = builder.accept("noinc");
  const AddressFields object = decode_object(builder, 0);
  const Slot one = builder.constant(1, 4);
  // Unless the arrival is among the expected ones, it is added to them first: both together change nothing.
  emit(builder, is_counted ? arrive : do_nothing, object, one);
}

std::span<const Opcode> mbarrier_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
