// SPDX-License-Identifier: Apache-2.0
// Branches, calls, convergence barriers, barriers of the CTA, fences and the end. The flow itself is carried
// out by the warp; here it is only described.
#include <bit>

#include "gpu/exec/address_space.hpp"
#include "gpu/exec/fault.hpp"
#include "gpu/exec/instructions/barrier.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/sass/builder.hpp"
#include "gpu/exec/sass/decoder.hpp"
#include "gpu/exec/sass/flow.hpp"

namespace manyscale::gpu {
namespace {

using I64 = std::int64_t;
using U32 = std::uint32_t;
using sass::Operand;
using sass::OperandKind;

void do_nothing(Warp&, const Op&) {}

// --- Branches

std::uint32_t target_of(MachineBuilder& builder) {
  const Operand* target = builder.find(OperandKind::target);
  if (target == nullptr) builder.unsupported("its target is not known");
  const auto& sections = builder.decoder().code().sections;
  const auto index = target->value / sass::Instruction::kBytes;
  if (target->value < 0 || target->value % sass::Instruction::kBytes != 0 || index >= sections.back().count)
    builder.unsupported("its target is outside of the function");
  return builder.decoder().first_operation() + static_cast<std::uint32_t>(index);
}

void decode_bra(MachineBuilder& builder) {
  builder.ignore({"U", "INC", "DEC"});
  const bool any = builder.accept("ANY");
  const int apart = builder.accept_one_of({"DIV", "CONV"});
  const std::uint32_t target = target_of(builder);
  const Operand* condition_of_any = any ? builder.find(OperandKind::predicate) : nullptr;
  if (any && (apart >= 0 || (condition_of_any != nullptr && condition_of_any->shown)))
    builder.unsupported(".ANY of some lanes");
  if (apart >= 0 || any) {
    // All branch if any lane passes the guard, that is unless none does.
    Slot lanes = builder.constant(any ? 0 : kAllLanes);
    if (!any && builder.values() > 0) {
      const Operand& meant = builder.value(0);
      const bool all =
          meant.inverted && meant.kind == OperandKind::uniform && meant.index == sass::kZeroUniformRegister;
      if (!all) lanes = builder.source(meant);
    }
    Op& op = builder.emit(nullptr, Class::branch, Flow::branch_if_divergent);
    op.src[0] = lanes;
    op.aux = target;
    op.immediate = -1;
    op.flags = apart == 1 ? kNegatedCondition : 0;
    return;
  }
  bool negated = false;
  const Slot condition = builder.only_condition(negated);
  const bool has_condition = condition != kNoSlot;
  Op& op = builder.emit(nullptr, Class::branch, has_condition ? Flow::branch_if : Flow::branch);
  op.src[0] = condition;
  op.aux = target;
  op.immediate = -1;
  op.flags = negated ? kNegatedCondition : 0;
}

// Jumps to an address in registers: calls, returns and branches by a table. A number is added to it, which
// of a relative one counts from the next instruction.
void emit_jump(MachineBuilder& builder, bool absolute) {
  const Operand& base = builder.value(0);
  const Slot low = builder.source(base, 2);
  const Operand* target = builder.find(OperandKind::target);
  Op& op = builder.emit(nullptr, Class::branch, Flow::jump);
  op.src[0] = low;
  op.src[1] = next_word(low);
  op.flags = absolute ? kAbsoluteAddress : 0;
  const I64 start = I64{builder.decoder().first_operation()} * sass::Instruction::kBytes;
  const Operand* displacement =
      base.kind == OperandKind::immediate ? nullptr : builder.find(OperandKind::immediate);
  const I64 added = displacement != nullptr ? displacement->value : 0;
  const I64 next = I64{builder.instruction().offset} + sass::Instruction::kBytes;
  if (absolute)
    op.immediate = added;
  else if (displacement != nullptr)
    op.immediate = start + next + added;
  else
    op.immediate = start + (target != nullptr ? target->value : 0);
}

void decode_call(MachineBuilder& builder) {
  builder.ignore({"NOINC", "INC"});
  const bool absolute = builder.accept("ABS");
  builder.ignore({"REL"});
  if (builder.values() > 0) return emit_jump(builder, absolute);
  Op& op = builder.emit(nullptr, Class::branch, Flow::branch);
  op.aux = target_of(builder);
  op.immediate = -1;
}

void decode_ret(MachineBuilder& builder) {
  builder.ignore({"NODEC", "DEC"});
  const bool absolute = builder.accept("ABS");
  builder.ignore({"REL"});
  emit_jump(builder, absolute);
}

void decode_brx(MachineBuilder& builder) {
  builder.ignore({"INC", "DEC", "U"});
  emit_jump(builder, false);
}

void decode_jmx(MachineBuilder& builder) {
  builder.ignore({"INC", "DEC", "U"});
  emit_jump(builder, true);
}

// LEPC: the address of this instruction, or of a target in the code.
void own_address(Warp& warp, const Op& op) {
  const auto address = static_cast<std::uint64_t>(op.immediate);
  for_pairs(warp, op.dst, [=](unsigned) { return address; });
}

void decode_lepc(MachineBuilder& builder) {
  const Operand* target = builder.find(OperandKind::target);
  const Slot dst = builder.destination(0, 2);
  const I64 inside = target != nullptr ? target->value : I64{builder.instruction().offset};
  Op& op = builder.emit(own_address, Class::move);
  op.dst = dst;
  op.immediate = static_cast<I64>(kCodeWindow + builder.decoder().address()) + inside;
}

void decode_exit(MachineBuilder& builder) {
  builder.ignore({"KEEPREFCOUNT", "NO_ATEXIT", "PREEMPTED"});
  bool negated = false;
  const Slot condition = builder.only_condition(negated);
  Op& op = builder.emit(nullptr, Class::branch, Flow::exit);
  op.src[0] = condition;
  op.flags = negated ? kNegatedCondition : 0;
}

void trap(Warp& warp, const Op&) {
  throw Fault("trap: the program gave up", static_cast<unsigned>(std::countr_zero(warp.mask)),
              FaultKind::trap);
}

void decode_bpt(MachineBuilder& builder) {
  const bool traps = builder.accept("TRAP");
  builder.ignore({"INT", "PAUSE", "CAL", "DRAIN"});
  builder.emit(traps ? trap : do_nothing, Class::branch);
}

// --- Convergence barriers: of each lane a mask of those that it will wait for

void begin_region(Warp& warp, const Op& op) {
  const Mask together = warp.mask;
  for_words(warp, op.dst, [=](unsigned) { return together; });
}

void decode_bssy(MachineBuilder& builder) {
  builder.ignore({"RELIABLE", "RECONVERGENT"});
  if (builder.find(OperandKind::word) != nullptr)
    builder.unsupported("it is about what a warp knows of its lanes");
  const Operand* barrier = builder.find(OperandKind::convergence);
  if (barrier == nullptr) builder.unsupported("no convergence barrier is named");
  builder.emit(begin_region, Class::branch).dst = builder.barrier(*barrier);
}

void decode_bsync(MachineBuilder& builder) {
  builder.ignore({"RELIABLE", "RECONVERGENT"});
  const Operand* barrier = builder.find(OperandKind::convergence);
  if (barrier == nullptr) builder.unsupported("no convergence barrier is named");
  builder.emit(nullptr, Class::branch, Flow::converge).src[3] = builder.barrier(*barrier);
}

void break_barrier(Warp& warp, const Op& op) {
  auto* members = warp.lanes<Mask>(op.src[3]);
  Mask leaving = warp.mask;
  if (op.src[0] != kNoSlot) {
    const Mask condition = warp.predicate(op.src[0]);
    leaving &= op.flags & kNegatedCondition ? ~condition : condition;
  }
  Mask others = 0;
  for_each_active(leaving, [&](unsigned lane) { others |= members[lane]; });
  for_each_active(others, [&](unsigned lane) { members[lane] &= ~leaving; });
}

void decode_break(MachineBuilder& builder) {
  const Operand* barrier = builder.find(OperandKind::convergence);
  if (barrier == nullptr) builder.unsupported("no convergence barrier is named");
  bool negated = false;
  const Slot condition = builder.only_condition(negated);
  const Slot members = builder.barrier(*barrier);
  Op& op = builder.emit(break_barrier, Class::branch, Flow::break_convergence);
  op.src[0] = condition;
  op.src[3] = members;
  op.flags = negated ? kNegatedCondition : 0;
}

void copy_barrier(Warp& warp, const Op& op) {
  const U32* from = warp.lanes<U32>(op.src[0]);
  for_words(warp, op.dst, [=](unsigned i) { return from[i]; });
}

void take_barrier(Warp& warp, const Op& op) {
  copy_barrier(warp, op);
  for_words(warp, op.src[0], [](unsigned) { return 0; });
}

void decode_bmov(MachineBuilder& builder) {
  builder.ignore({"32", "PQUAD"});
  const bool clears = builder.accept("CLEAR");
  const Operand* barrier = builder.find(OperandKind::convergence);
  if (barrier == nullptr) builder.unsupported("only convergence barriers are moved");
  const Slot register_of_barrier = builder.barrier(*barrier);
  const bool reads = builder.results() > 0;
  const Slot dst = reads ? builder.destination() : register_of_barrier;
  const Slot from = reads ? register_of_barrier : builder.source(0);
  Op& op = builder.emit(clears ? take_barrier : copy_barrier, Class::move);
  op.dst = dst;
  op.src[0] = from;
}

void decode_warpsync(MachineBuilder& builder) {
  // The target that .COLLECTIVE names is where the lanes may diverge again.
  const bool exclusive = builder.accept("EXCLUSIVE");
  builder.ignore({"COLLECTIVE"});
  const bool all = builder.accept("ALL");
  const Slot members = all || builder.values() == 0 ? builder.constant(kAllLanes) : builder.source(0);
  Op& op = builder.emit(do_nothing, Class::warp, Flow::warp_barrier);
  op.src[3] = members;
  op.immediate = exclusive ? 0 : 1;  // 1: lanes with other members may go on together
}

void decode_nothing(MachineBuilder& builder) {
  builder.emit(do_nothing, Class::other);
}

void decode_yield(MachineBuilder& builder) {
  builder.ignore({"WARP", "SYNCALL", "SYNCS"});
  bool negated = false;
  builder.only_condition(negated);  // whether it gives way changes nothing in what is computed
  builder.emit(do_nothing, Class::other, Flow::yield);
}

// --- Barriers of the CTA

void decode_bar(MachineBuilder& builder) {
  builder.ignore({"DEFER_BLOCKING"});
  const int kind = builder.accept_one_of({"SYNC", "ARV", "RED", "SYNCALL"});
  if (kind < 0) builder.unsupported("no such kind of barrier");
  std::uint8_t flags = 0;
  bool negated = false;
  Slot predicate = kNoSlot;
  if (kind == 2) {
    const int reduction = builder.accept_one_of({"AND", "OR", "POPC"});
    if (reduction < 0) builder.unsupported("it does not say how to reduce");
    flags = static_cast<std::uint8_t>(reduction + 1);
    predicate = builder.condition(0, negated);
    if (negated) flags |= kBarrierNegated;
  }
  const Slot barrier = kind == 3 || builder.values() == 0 ? builder.constant(0) : builder.source(0);
  // Two registers are always the same one, which holds both.
  if (builder.values() > 1 && builder.value(0).kind == OperandKind::general &&
      builder.value(1).kind == OperandKind::general)
    flags |= kBarrierPacked;
  const Slot threads = builder.values() > 1 ? builder.source(1) : kNoSlot;
  if (kind == 1 && threads == kNoSlot) builder.unsupported("BAR.ARV needs the number of threads");
  Op& op = kind == 1 ? builder.emit(arrive_at_barrier, Class::barrier)
                     : builder.emit(wait_at_barrier, Class::barrier, Flow::barrier);
  op.src = {barrier, threads, predicate, kNoSlot};
  op.flags = flags;
  if (kind == 2) op.flags |= kBarrierKeepsResult;
}

// B2R.RESULT: what the last reduction of the warp at a barrier gave.
void barrier_result(Warp& warp, const Op& op) {
  const BarrierResult result = warp.barrier_result();
  if (op.dst != kNoSlot) for_words(warp, op.dst, [=](unsigned) { return result.count; });
  if (op.dst2 != kNoSlot) set_predicate(warp, op.dst2, result.holds ? kAllLanes : 0);
}

void decode_b2r(MachineBuilder& builder) {
  if (!builder.accept("RESULT")) builder.unsupported("only the result of a reduction can be read");
  const Slot dst = builder.results() > 0 ? builder.destination() : kNoSlot;
  Op& op = builder.emit(barrier_result, Class::barrier);
  op.dst = dst;
  op.dst2 = builder.predicate_result(0);
}

// --- Fences

void decode_fence(MachineBuilder& builder) {
  builder.ignore({"SC", "ALL", "CTA", "GPU",  "SYS",  "VC",   "IVALL", "IVALLP", "LE",  "VIEW", "ASYNC",
                  "T",  "G",   "S",   "IVTH", "IV",   "DF",   "PML1",  "PML2",   "WB",  "C",    "D",
                  "U",  "I",   "E",   "RS",   "RML2", "QRY1", "DML2",  "PF1",    "PF2", "PF"});
  builder.emit(memory_fence, Class::fence, Flow::yield);
}

// Copies are complete when the instruction that began them has been executed.
void decode_depbar(MachineBuilder& builder) {
  builder.ignore({"LE", "ALL"});
  builder.emit(do_nothing, Class::other);
}

constexpr MachineOpcode kOpcodes[] = {
    {"BRA", decode_bra},
    {"CALL", decode_call},
    {"RET", decode_ret},
    {"BRX", decode_brx},
    {"BRXU", decode_brx},
    {"JMX", decode_jmx},
    {"JMXU", decode_jmx},
    {"LEPC", decode_lepc},
    {"ULEPC", decode_lepc},
    {"EXIT", decode_exit},
    {"BPT", decode_bpt},
    {"BSSY", decode_bssy},
    {"BSYNC", decode_bsync},
    {"BREAK", decode_break},
    {"BMOV", decode_bmov},
    {"WARPSYNC", decode_warpsync},
    {"ENDCOLLECTIVE", decode_nothing},
    {"NOP", decode_nothing},
    {"PMTRIG", decode_nothing},
    {"YIELD", decode_yield},
    {"NANOSLEEP", decode_yield},
    {"BAR", decode_bar},
    {"B2R", decode_b2r},
    {"MEMBAR", decode_fence},
    {"ERRBAR", decode_fence},
    {"CGAERRBAR", decode_fence},
    {"CCTL", decode_fence},
    {"CCTLL", decode_fence},
    {"FENCE", decode_fence},
    {"PREEXIT", decode_nothing},
    {"ACQBULK", decode_nothing},
    {"UTMACMDFLUSH", decode_nothing},
    {"LDGDEPBAR", decode_depbar},
    {"DEPBAR", decode_depbar},
};

}  // namespace

std::span<const MachineOpcode> machine_control_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
