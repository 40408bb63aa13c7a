// SPDX-License-Identifier: Apache-2.0
// Barriers of a CTA and fences.
#include <bit>

#include "gpu/exec/instructions/barrier.hpp"

#include "gpu/exec/fault.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/opcodes.hpp"

namespace manyscale::gpu {
namespace {

using ptx::Type;

struct Named {
  unsigned barrier;
  std::uint32_t threads;
};

Named named_barrier(Warp& warp, const Op& op) {
  const auto lane = static_cast<unsigned>(std::countr_zero(warp.mask));
  const bool is_packed = (op.flags & kBarrierPacked) != 0;
  constexpr std::uint32_t kPackedBarrier = 0xf;
  constexpr std::uint32_t kPackedThreads = 0xfff;
  std::uint32_t barrier = warp.lanes<std::uint32_t>(op.src[0])[lane];
  if (is_packed) barrier &= kPackedBarrier;
  if (barrier >= kBarriers)
    throw Fault("barrier " + std::to_string(barrier) + " does not exist: a CTA has 16, 0 to 15", lane);
  std::uint32_t threads = 0;
  if (op.src[1] != kNoSlot) {
    threads = warp.lanes<std::uint32_t>(op.src[1])[lane];
    if (is_packed) threads = threads >> 16 & kPackedThreads;
    if (threads == 0 || threads % kLanes != 0)
      throw Fault("a barrier for " + std::to_string(threads) + " threads: it must be a multiple of 32", lane);
  }
  return {barrier, threads};
}

}  // namespace

void wait_at_barrier(Warp& warp, const Op& op) {
  const Named named = named_barrier(warp, op);
  if (op.src[2] != kNoSlot) {
    Barrier& barrier = warp.cta().barrier(named.barrier);
    Mask holds = warp.predicate(op.src[2]);
    if (op.flags & kBarrierNegated) holds = ~holds;
    barrier.holding += static_cast<std::uint32_t>(std::popcount(holds & warp.mask));
    barrier.asked += static_cast<std::uint32_t>(std::popcount(warp.mask));
  }
  warp.wait_at(named.barrier);
  warp.cta().arrive(warp, named.barrier, warp.mask, named.threads);
}

void arrive_at_barrier(Warp& warp, const Op& op) {
  const Named named = named_barrier(warp, op);
  warp.cta().arrive(warp, named.barrier, warp.mask, named.threads);
}

void memory_fence(Warp& warp, const Op&) {
  if (Checker* checker = warp.worker().checker) checker->barrier();
}

namespace {

void do_nothing(Warp&, const Op&) {}

// bar.warp.sync: the warp itself waits for the lanes of the member mask.
void decode_warp_barrier(Builder& builder) {
  if (!builder.accept("sync")) builder.unsupported("only bar.warp.sync is known");
  builder.expect_operands(1);
  const Slot members = builder.source(0, Type::b32);
  builder.emit(do_nothing, Class::warp, Flow::warp_barrier).src[3] = members;
}

void decode_barrier(Builder& builder) {
  if (builder.accept("cluster")) builder.unsupported("clusters of CTAs (sm_90) are not modelled");
  builder.ignore({"cta", "aligned"});
  const int kind = builder.accept_one_of({"warp", "sync", "arrive", "red"});
  if (kind == 0) return decode_warp_barrier(builder);
  if (kind < 0) builder.unsupported("it neither waits nor arrives");
  std::uint8_t flags = 0;
  Slot dst = kNoSlot;
  Slot predicate = kNoSlot;
  unsigned next = 0;
  if (kind == 3) {
    const int reduction = builder.accept_one_of({"and", "or", "popc"});
    if (reduction < 0) builder.unsupported("it does not say how to reduce");
    flags = static_cast<std::uint8_t>(reduction + 1);
    builder.type();
    builder.expect_operands(3, 4);
    dst = flags == static_cast<std::uint8_t>(BarrierReduction::count)
              ? builder.destination(0, Type::b32)
              : builder.predicate_destination(builder.operand(0));
    next = 1;
    bool negated = false;
    predicate = builder.predicate_source(builder.operand(builder.operands() - 1), &negated);
    if (negated) flags |= kBarrierNegated;
  } else {
    builder.expect_operands(1, 2);
  }
  const unsigned last = builder.operands() - (kind == 3 ? 1 : 0);
  const Slot barrier = builder.source(next, Type::b32);
  const Slot threads = next + 1 < last ? builder.source(next + 1, Type::b32) : kNoSlot;
  if (kind == 2 && threads == kNoSlot) builder.unsupported("bar.arrive needs the number of threads");
  Op& op = kind == 2 ? builder.emit(arrive_at_barrier, Class::barrier)
                     : builder.emit(wait_at_barrier, Class::barrier, Flow::barrier);
  op.dst = dst;
  op.src[0] = barrier;
  op.src[1] = threads;
  op.src[2] = predicate;
  op.flags = flags;
}

void decode_fence(Builder& builder) {
  builder.ignore({"sc",
                  "acq_rel",
                  "acquire",
                  "release",
                  "cta",
                  "cluster",
                  "gpu",
                  "sys",
                  "gl",
                  "proxy",
                  "async",
                  "async.global",
                  "async.shared::cta",
                  "async.shared::cluster",
                  "alias",
                  "generic",
                  "tensormap::generic",
                  "mbarrier_init",
                  "global",
                  "shared::cta",
                  "shared::cluster",
                  "sync_restrict::shared::cta",
                  "sync_restrict::shared::cluster"});
  builder.emit(memory_fence, Class::fence, Flow::yield);
}

constexpr Opcode kOpcodes[] = {
    {"bar", decode_barrier},
    {"barrier", decode_barrier},
    {"membar", decode_fence},
    {"fence", decode_fence},
};

}  // namespace

bool barrier_holds(const Barrier& barrier, BarrierReduction reduction) {
  return reduction == BarrierReduction::all ? barrier.last_holding == barrier.last_asked
                                            : barrier.last_holding != 0;
}

void write_barrier_result(const Barrier& barrier, const Op& op, const Split& split) {
  std::byte* target = split.frame->registers + (op.dst & ~Slot{3});
  const auto reduction = static_cast<BarrierReduction>(op.flags & kBarrierReduction);
  if (reduction == BarrierReduction::count) {
    auto* result = reinterpret_cast<std::uint32_t*>(target);
    for_each_active(split.mask, [&](unsigned lane) { result[lane] = barrier.last_holding; });
    return;
  }
  const bool holds = barrier_holds(barrier, reduction);
  auto& result = *reinterpret_cast<Mask*>(target);
  result = (result & ~split.mask) | (holds ? split.mask : 0);
}

std::span<const Opcode> barrier_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
