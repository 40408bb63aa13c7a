// SPDX-License-Identifier: Apache-2.0
// Instructions by which the lanes of a warp exchange values. Those with `.sync` are executed when all lanes
// of their member mask are there; the others by whoever is.
#include <algorithm>
#include <array>
#include <bit>

#include "gpu/exec/instructions/warp_lanes.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/numerics/ordering.hpp"
#include "gpu/exec/opcodes.hpp"

namespace manyscale::gpu {
namespace {

using ptx::Operand;
using ptx::OperandKind;
using ptx::Type;
using U32 = std::uint32_t;
using namespace warp_lanes;

// The destinations d and d|p.
struct Destinations {
  const Operand* value;
  const Operand* predicate;  // null if there is none
};

Destinations destinations(const Builder& builder) {
  const Operand& operand = builder.operand(0);
  if (operand.kind != OperandKind::pair) return {&operand, nullptr};
  const auto both = builder.children(operand);
  return {&both[0], &both[1]};
}

Slot predicate_or_none(Builder& builder, const Operand* operand) {
  return operand == nullptr ? kNoSlot : builder.predicate_destination(*operand);
}

void expect_sync(Builder& builder) {
  if (!builder.accept("sync")) builder.unsupported("needs .sync");
}

// --- shfl -------------------------------------------------------------------------------------------------

void decode_shfl(Builder& builder) {
  constexpr Handler kHandlers[] = {shfl<Shuffle::up>, shfl<Shuffle::down>, shfl<Shuffle::bfly>,
                                   shfl<Shuffle::idx>};
  const bool sync = builder.accept("sync");
  builder.expect_operands(sync ? 5 : 4);
  const int mode = builder.accept_one_of({"up", "down", "bfly", "idx"});
  if (mode < 0 || builder.type() != Type::b32) builder.unsupported("no such kind of shuffle");
  const Destinations to = destinations(builder);
  const Slot dst = builder.destination(*to.value, Type::b32);
  const Slot in_range = predicate_or_none(builder, to.predicate);
  const Slot a = builder.source(1, Type::b32), b = builder.source(2, Type::b32),
             c = builder.source(3, Type::b32);
  const Slot members = sync ? builder.source(4, Type::b32) : kNoSlot;
  Op& op = builder.emit(kHandlers[mode], Class::warp, sync ? Flow::warp_sync : Flow::next);
  op.dst = dst;
  op.dst2 = in_range;
  op.src = {a, b, c, members};
}

// --- vote -------------------------------------------------------------------------------------------------

// The lanes for which the condition holds; op.immediate is all ones if it is negated.
Mask votes(const Warp& warp, const Op& op) {
  return (warp.predicate(op.src[0]) ^ static_cast<Mask>(op.immediate)) & warp.mask;
}

void vote_all(Warp& warp, const Op& op) {
  set_predicate(warp, op.dst, votes(warp, op) == warp.mask ? kAllLanes : 0);
}

void vote_any(Warp& warp, const Op& op) {
  set_predicate(warp, op.dst, votes(warp, op) != 0 ? kAllLanes : 0);
}

void vote_uni(Warp& warp, const Op& op) {
  const Mask yes = votes(warp, op);
  set_predicate(warp, op.dst, yes == 0 || yes == warp.mask ? kAllLanes : 0);
}

void vote_ballot(Warp& warp, const Op& op) {
  broadcast<U32>(warp, op.dst, votes(warp, op));
}

// A lane may leave itself out of its member mask, as in counts of the lanes before it: hardware gives the
// votes of those that are named and here, whatever these name.
void vote_ballot_sync(Warp& warp, const Op& op) {
  const auto* members_of = warp.lanes<Mask>(op.src[3]);
  const Mask named = warp.mask == 0 ? 0 : members_of[std::countr_zero(warp.mask)];
  const Mask yes = warp.predicate(op.src[0]) ^ static_cast<Mask>(op.immediate);
  broadcast<U32>(warp, op.dst, yes & named & warp.active);
}

void decode_vote(Builder& builder) {
  constexpr Handler kHandlers[] = {vote_all, vote_any, vote_uni, vote_ballot};
  const bool sync = builder.accept("sync");
  builder.expect_operands(sync ? 3 : 2);
  const int mode = builder.accept_one_of({"all", "any", "uni", "ballot"});
  const bool is_ballot = mode == 3;
  if (mode < 0 || builder.type() != (is_ballot ? Type::b32 : Type::pred))
    builder.unsupported("no such kind of vote");
  bool negated = false;
  const Slot dst =
      is_ballot ? builder.destination(0, Type::b32) : builder.predicate_destination(builder.operand(0));
  const Slot condition = builder.predicate_source(builder.operand(1), &negated);
  const Slot members = sync ? builder.source(2, Type::b32) : kNoSlot;
  const Handler handler = is_ballot && sync ? vote_ballot_sync : kHandlers[mode];
  Op& op = builder.emit(handler, Class::warp, sync ? Flow::warp_sync : Flow::next);
  op.dst = dst;
  op.src = {condition, kNoSlot, kNoSlot, members};
  op.immediate = negated ? -1 : 0;
}

// --- match ------------------------------------------------------------------------------------------------

template <class T>
void match_any(Warp& warp, const Op& op) {
  match_any_of(warp, op, warp.lanes<T>(op.src[0]));
}

template <class T>
void match_all(Warp& warp, const Op& op) {
  match_all_of(warp, op, warp.lanes<T>(op.src[0]));
}

void decode_match(Builder& builder) {
  constexpr Handler kHandlers[2][2] = {{match_any<U32>, match_any<std::uint64_t>},
                                       {match_all<U32>, match_all<std::uint64_t>}};
  expect_sync(builder);
  builder.expect_operands(3);
  const int mode = builder.accept_one_of({"any", "all"});
  const Type type = builder.type();
  if (mode < 0 || (type != Type::b32 && type != Type::b64)) builder.unsupported("no such kind of match");
  const Destinations to = destinations(builder);
  if (mode == 0 && to.predicate != nullptr) builder.unsupported("match.any gives no predicate");
  const Slot dst = builder.destination(*to.value, Type::b32);
  const Slot p = predicate_or_none(builder, to.predicate);
  const Slot a = builder.source(1, type);
  const Slot members = builder.source(2, Type::b32);
  Op& op = builder.emit(kHandlers[mode][type == Type::b64], Class::warp, Flow::warp_sync);
  op.dst = dst;
  op.dst2 = p;
  op.src = {a, kNoSlot, kNoSlot, members};
}

// --- redux ------------------------------------------------------------------------------------------------

constexpr std::uint8_t kLargest = 1;
constexpr std::uint8_t kAbsolute = 2;
constexpr std::uint8_t kPropagatesNan = 4;

// The smallest or largest number, where -0 is below +0. NaN are left out or, with .NaN, make the result NaN.
void redux_f32(Warp& warp, const Op& op) {
  const float* values = warp.lanes<float>(op.src[0]);
  float result = from_bits<float>(canonical_nan_f32);
  bool first = true;
  for_each_active(warp.mask, [&](unsigned i) {
    const float value = canonical(op.flags & kAbsolute ? abs(values[i]) : values[i]);
    if (first) {
      result = value;
    } else if (op.flags & kPropagatesNan) {
      result =
          op.flags & kLargest ? max<Nan::propagated>(result, value) : min<Nan::propagated>(result, value);
    } else {
      result = op.flags & kLargest ? max<Nan::ignored>(result, value) : min<Nan::ignored>(result, value);
    }
    first = false;
  });
  broadcast(warp, op.dst, result);
}

struct Reduction {
  std::string_view name;
  Type type;
  Handler handler;
  std::uint8_t flags;
};

constexpr Reduction kReductions[] = {
    {"add", Type::u32, redux<U32, Sum>, 0},
    {"add", Type::s32, redux<U32, Sum>, 0},
    {"min", Type::u32, redux<U32, Smaller<U32>>, 0},
    {"max", Type::u32, redux<U32, Larger<U32>>, 0},
    {"min", Type::s32, redux<std::int32_t, Smaller<std::int32_t>>, 0},
    {"max", Type::s32, redux<std::int32_t, Larger<std::int32_t>>, 0},
    {"and", Type::b32, redux<U32, Both>, 0},
    {"or", Type::b32, redux<U32, Either>, 0},
    {"xor", Type::b32, redux<U32, Odd>, 0},
    {"min", Type::f32, redux_f32, 0},
    {"max", Type::f32, redux_f32, kLargest},
};

const Reduction& accept_reduction(Builder& builder, Type type) {
  for (const Reduction& reduction : kReductions)
    if (reduction.type == type && builder.accept(reduction.name)) return reduction;
  builder.unsupported("no such reduction");
}

void decode_redux(Builder& builder) {
  expect_sync(builder);
  builder.expect_operands(3);
  const Type type = builder.type();
  const Reduction& reduction = accept_reduction(builder, type);
  std::uint8_t flags = reduction.flags;
  if (type == Type::f32 && builder.accept("abs")) flags |= kAbsolute;
  if (type == Type::f32 && builder.accept("NaN")) flags |= kPropagatesNan;
  const Slot dst = builder.destination(0, type);
  const Slot a = builder.source(1, type);
  const Slot members = builder.source(2, Type::b32);
  Op& op = builder.emit(reduction.handler, Class::warp, Flow::warp_sync);
  op.dst = dst;
  op.src = {a, kNoSlot, kNoSlot, members};
  op.flags = flags;
}

// --- Who is there -----------------------------------------------------------------------------------------

void activemask(Warp& warp, const Op& op) {
  broadcast<U32>(warp, op.dst, warp.mask);
}

void decode_activemask(Builder& builder) {
  builder.expect_operands(1);
  const Slot dst = builder.destination(0, builder.type());
  builder.emit(activemask, Class::warp).dst = dst;
}

// The leader is the lowest lane; the ISA asks only that it is always the same.
void elect(Warp& warp, const Op& op) {
  if (warp.mask == 0) return;
  const Mask leader = warp.mask & (0 - warp.mask);
  broadcast<U32>(warp, op.dst, static_cast<U32>(__builtin_ctz(leader)));
  set_predicate(warp, op.dst2, leader);
}

void decode_elect(Builder& builder) {
  expect_sync(builder);
  builder.expect_operands(2);
  const Destinations to = destinations(builder);
  if (to.predicate == nullptr) builder.unsupported("needs two destinations, d|p");
  const Slot dst = builder.destination(*to.value, Type::b32);
  const Slot p = builder.predicate_destination(*to.predicate);
  const Slot members = builder.source(1, Type::b32);
  Op& op = builder.emit(elect, Class::warp, Flow::warp_sync);
  op.dst = dst;
  op.dst2 = p;
  op.src[3] = members;
}

constexpr Opcode kOpcodes[] = {
    {"shfl", decode_shfl},
    {"vote", decode_vote},
    {"match", decode_match},
    {"redux", decode_redux},
    {"activemask", decode_activemask},
    {"elect", decode_elect},
};

}  // namespace

std::span<const Opcode> warp_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
