// SPDX-License-Identifier: Apache-2.0
// Instructions by which the lanes of a warp exchange values. They are executed by the lanes that are there:
// the compiler has them meet before.
#include "gpu/exec/instructions/warp_lanes.hpp"
#include "gpu/exec/sass/builder.hpp"
#include "gpu/exec/sass/decoder.hpp"

namespace manyscale::gpu {
namespace {

using namespace warp_lanes;
using I32 = std::int32_t;

void decode_shfl(MachineBuilder& builder) {
  constexpr Handler kHandlers[] = {shfl<Shuffle::up>, shfl<Shuffle::down>, shfl<Shuffle::bfly>,
                                   shfl<Shuffle::idx>};
  const int mode = builder.accept_one_of({"UP", "DOWN", "BFLY", "IDX"});
  if (mode < 0) builder.unsupported("no such kind of shuffle");
  const Slot dst = builder.destination();
  const Slot a = builder.source(0);
  const Slot b = builder.source(1);
  const Slot c = builder.source(2);
  Op& op = builder.emit(kHandlers[mode], Class::warp);
  op.dst = dst;
  op.dst2 = builder.predicate_result(0);
  op.src = {a, b, c, kNoSlot};
}

// --- Votes: the lanes for which a predicate holds, and whether it does for all, some or none and all

enum class Vote { all, any, equal };

template <Vote vote>
void count_votes(Warp& warp, const Op& op) {
  const Mask yes = first_condition(warp, op) & warp.mask;
  if (op.dst2 != kNoSlot) {
    const bool result = vote == Vote::all   ? yes == warp.mask
                        : vote == Vote::any ? yes != 0
                                            : yes == 0 || yes == warp.mask;
    set_predicate(warp, op.dst2, result ? kAllLanes : 0);
  }
  if (op.dst != kNoSlot) broadcast<U32>(warp, op.dst, yes);
}

void decode_vote(MachineBuilder& builder) {
  constexpr Handler kHandlers[] = {count_votes<Vote::all>, count_votes<Vote::any>, count_votes<Vote::equal>};
  const int mode = builder.accept_one_of({"ALL", "ANY", "EQ"});
  if (mode < 0) builder.unsupported("no such kind of vote");
  const bool wanted = builder.results() > 0 && builder.is_wanted(builder.result(0));
  const Slot dst = wanted ? builder.destination() : kNoSlot;
  bool negated = false;
  const Slot condition = builder.condition(0, negated);
  Op& op = builder.emit(kHandlers[mode], Class::warp);
  op.dst = dst;
  op.dst2 = builder.predicate_result(0);
  op.src[3] = condition;
  op.immediate = negated ? kPredicateNegated : 0;
}

template <bool all, bool wide>
void match(Warp& warp, const Op& op) {
  if constexpr (wide) {
    alignas(64) std::array<std::uint64_t, kLanes> values;
    const Pairs pairs(warp, op.src[0]);
    for (unsigned i = 0; i < kLanes; ++i) values[i] = pairs[i];
    if constexpr (all)
      match_all_of(warp, op, values.data());
    else
      match_any_of(warp, op, values.data());
  } else {
    const U32* values = warp.lanes<U32>(op.src[0]);
    if constexpr (all)
      match_all_of(warp, op, values);
    else
      match_any_of(warp, op, values);
  }
}

void decode_match(MachineBuilder& builder) {
  const int mode = builder.accept_one_of({"ANY", "ALL"});
  const bool wide = builder.accept("U64");
  builder.ignore({"U32"});
  if (mode < 0) builder.unsupported("no such kind of match");
  const Slot dst = builder.destination();
  const Slot a = builder.source(0, wide ? 2 : 1);
  Op& op = builder.emit(mode == 1 ? (wide ? match<true, true> : match<true, false>)
                                  : (wide ? match<false, true> : match<false, false>),
                        Class::warp);
  op.dst = dst;
  op.dst2 = builder.predicate_result(0);
  op.src[0] = a;
}

void decode_redux(MachineBuilder& builder) {
  constexpr Handler kUnsigned[] = {redux<U32, Sum>,  redux<U32, Smaller<U32>>, redux<U32, Larger<U32>>,
                                   redux<U32, Both>, redux<U32, Either>,       redux<U32, Odd>};
  const int kind = builder.accept_one_of({"SUM", "MIN", "MAX", "AND", "OR", "XOR"});
  const bool is_signed = builder.accept("S32");
  builder.ignore({"U32"});
  Handler handler = kUnsigned[kind < 0 ? 3 : kind];  // AND is not printed
  if (is_signed && kind == 1) handler = redux<I32, Smaller<I32>>;
  if (is_signed && kind == 2) handler = redux<I32, Larger<I32>>;
  const Slot dst = builder.destination();
  const Slot a = builder.source(0);
  Op& op = builder.emit(handler, Class::warp);
  op.dst = dst;
  op.src[0] = a;
}

// ELECT: one of the active lanes.
void elect(Warp& warp, const Op& op) {
  const Mask leader = warp.mask & (0 - warp.mask);
  if (op.dst != kNoSlot) broadcast<U32>(warp, op.dst, static_cast<U32>(__builtin_ctz(leader)));
  if (op.dst2 != kNoSlot) set_predicate(warp, op.dst2, leader);
}

void decode_elect(MachineBuilder& builder) {
  const bool wanted = builder.results() > 0 && builder.is_wanted(builder.result(0));
  const Slot dst = wanted ? builder.destination() : kNoSlot;
  Op& op = builder.emit(elect, Class::warp);
  op.dst = dst;
  op.dst2 = builder.predicate_result(0);
}

constexpr MachineOpcode kOpcodes[] = {
    {"SHFL", decode_shfl},   {"VOTE", decode_vote},   {"VOTEU", decode_vote},
    {"MATCH", decode_match}, {"REDUX", decode_redux}, {"ELECT", decode_elect},
};

}  // namespace

std::span<const MachineOpcode> machine_warp_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
