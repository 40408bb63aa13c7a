// SPDX-License-Identifier: Apache-2.0
// How an SM issues: which warp of a sub-core goes next, what its instruction waits for, and where its cycles
// went.
#include <algorithm>
#include <bit>
#include <cstring>

#include "gpu/exec/fault_report.hpp"
#include "gpu/sm/sm.hpp"

namespace manyscale::gpu {

namespace {

constexpr std::uint64_t kInstructionBytes = 16;
constexpr auto kFma = static_cast<std::size_t>(Pipe::fma);

// Whether an operation is the next in the text after another, or the first behind a reconvergence point.
bool follows(const Code& code, const Op* first, const Op* second) {
  const Op* end = code.ops.data() + code.ops.size();
  if (first < code.ops.data() || first >= end) return false;  // of another function
  for (++first; first != end && first != second && first->flow == Flow::join; ++first) {
  }
  return first == second;
}

// Of some warps beside each other, which have their operands, a bit each; and when the first of the others
// has them. Written with vectors, since of a loop the compiler makes branches.
unsigned ready_warps(const Cycle* earliest, Cycle now, Cycle& next) {
  constexpr unsigned kHalf = Sm::kWarpsTogether / 2;
  using Cycles = Cycle __attribute__((vector_size(kHalf * sizeof(Cycle))));
  constexpr Cycles kBits{1, 2, 4, 8, 16, 32, 64, 128};
  Cycles low;
  Cycles high;
  std::memcpy(&low, earliest, sizeof low);
  std::memcpy(&high, earliest + kHalf, sizeof high);
  const Cycles low_waits = low > now;  // all bits or none
  const Cycles high_waits = high > now;
  const Cycles asleep = Cycles{} + Clock::asleep;
  const Cycles low_later = low_waits ? low : asleep;
  const Cycles high_later = high_waits ? high : asleep;
  const Cycles later = low_later < high_later ? low_later : high_later;
  const Cycles bits = (~low_waits & kBits) | (~high_waits & (kBits << kHalf));
  Cycle ready = 0;
  Cycle soonest = next;
  for (unsigned i = 0; i < kHalf; ++i) {
    ready |= bits[i];
    soonest = std::min<Cycle>(soonest, later[i]);
  }
  next = soonest;
  return static_cast<unsigned>(ready);
}

}  // namespace

Cycle Sm::tick(Cycle now) {
  Cycle next = Clock::asleep;
  for (std::size_t i = 0; i < sub_cores_.size(); ++i) next = std::min(next, issue_from(i, now));
  return next;
}

// Lets one warp of a sub-core issue, if one can; says when to try again.
Cycle Sm::issue_from(std::size_t sub_index, Cycle now) {
  SubCore& sub = sub_cores_[sub_index];
  if (sub.idle_until > now) return sub.idle_until;
  const auto step = static_cast<std::uint32_t>(sub_cores_.size());
  const auto total = static_cast<std::uint32_t>(warps_.size());
  const std::size_t first = sub_index * slots_per_sub_core_;
  const Cycle queue_free = sub.queue.free_at();
  Cycle next = Clock::asleep;
  std::uint32_t best = total;
  std::uint64_t best_rank = 0;
  const auto consider = [&](std::uint32_t slot) {
    const std::uint32_t i = static_cast<std::uint32_t>(sub_index) + slot * step;
    Candidate& candidate = candidates_[first + slot];
    if (candidate.queued && queue_free > now) {  // most that wait for something of the sub-core do for this
      candidate.queue_was_full = true;
      next = std::min(next, queue_free);
      return;
    }
    Cycle when = sub.free[candidate.pipe];
    if (candidate.dual_pipe) when = std::min(when, sub.free[kFma]);
    if (when > now) {
      candidate.pipe_was_busy = true;
      next = std::min(next, when);
      return;
    }
    if (candidate.queued && !can_use_memory(sub, candidate.resource, now, when)) {
      candidate.queue_was_full = true;
      next = std::min(next, when);
      return;
    }
    std::uint64_t rank = candidate.priority;
    if (round_robin_)
      rank = total - (i + total - sub.last) % total;
    else if (greedy_ && i == sub.last)
      rank = candidate.yields ? 0 : ~std::uint64_t{0};
    if (rank_ != nullptr) rank = rank_({i, sub.last, total, candidate.priority, candidate.yields});
    if (best == total || rank > best_rank) {
      best = i;
      best_rank = rank;
    }
  };
  for (std::uint32_t slot = 0; slot < slots_per_sub_core_; slot += kWarpsTogether) {
    unsigned ready = ready_warps(&earliest_[first + slot], now, next);
    for (; ready != 0; ready &= ready - 1)
      consider(slot + static_cast<std::uint32_t>(std::countr_zero(ready)));
  }
  if (best == total) return sub.idle_until = next;
  issue(sub, best, now);
  return now + 1;
}

// Somebody may have waited for room among the outstanding lines or stores.
void Sm::make_room(Cycle now) {
  for (SubCore& sub : sub_cores_) sub.idle_until = 0;
  clock_.wake_at(now);
}

// The pipe that an instruction goes to: that of its kind, or the one of two that is free first.
std::size_t Sm::pipe_for(const SubCore& sub, const SassInstruction& instruction) const {
  const auto own = static_cast<std::size_t>(pipes_.pipe_of(instruction.kind));
  return instruction.dual_pipe && sub.free[kFma] < sub.free[own] ? kFma : own;
}

// Whether there is room for an instruction that issues into the MIO queue.
bool Sm::can_use_memory(const SubCore& sub, MemoryResource resource, Cycle now, Cycle& when) const {
  when = sub.queue.free_at();
  if (when > now) return false;
  when = Clock::asleep;  // until a line arrives, or a store is complete
  if (resource == MemoryResource::line)
    return static_cast<std::int64_t>(pending_.lines()) + untranslated_loads_ < spec_.l1.outstanding_lines;
  return resource != MemoryResource::store || outstanding_writes_ < spec_.l1.outstanding_writes;
}

// Keeps a warp that has just issued from issuing again too early: a branch, a barrier or a fence takes its
// time.
void Sm::hold(WarpSlot& slot, Cycle until) {
  const Cycle held = until - slot.after;
  slot.record->statistics.stall_wait += held;
  slot.record->statistics.warp_cycles += held;
  slot.profile->stall_execution += held;
  slot.record->observe(WarpState::wait, slot.after, until);
  slot.after = until;
}

// Where a warp's cycles since its last issue went.
void Sm::account(std::uint32_t index, Cycle now) {
  const WarpSlot& slot = *warps_[index];
  const Candidate& candidate = this->candidate(index);
  SmStatistics& statistics = slot.record->statistics;
  OperationProfile& profile = *slot.profile;
  const Cycle waited = std::max<Cycle>(0, std::min(earliest(index), now) - slot.after);
  switch (slot.reason) {
    case Stall::wait:
      statistics.stall_wait += waited;
      profile.stall_execution += waited;
      break;
    case Stall::local:
      statistics.stall_local += waited;
      [[fallthrough]];
    case Stall::long_scoreboard:
      statistics.stall_long_scoreboard += waited;
      statistics.stall_conflict += std::min<Cycle>(waited, slot.conflict);
      profile.stall_memory += waited;
      break;
    case Stall::atomic:
      statistics.stall_long_scoreboard += waited;
      statistics.stall_atomic += waited;
      profile.stall_memory += waited;
      break;
    case Stall::short_scoreboard:
      statistics.stall_short_scoreboard += waited;
      statistics.stall_conflict += std::min<Cycle>(waited, slot.conflict);
      profile.stall_shared += waited;
      break;
    case Stall::barrier:
      statistics.stall_barrier += waited;
      profile.stall_shared += waited;
      break;
    case Stall::no_instruction:
      statistics.stall_no_instruction += waited;
      profile.stall_other += waited;
      break;
    case Stall::page_fault:
      statistics.stall_fault += waited;
      profile.stall_fault += waited;
      break;
  }
  const Cycle rest = now - slot.after - waited;
  if (candidate.queue_was_full) {
    const InstructionKind kind = slot.at->kind;
    const bool texture = kind == InstructionKind::texture;
    const bool global = candidate.resource != MemoryResource::none || kind == InstructionKind::atomic_global;
    (texture  ? statistics.stall_tex_throttle
     : global ? statistics.stall_lg_throttle
              : statistics.stall_mio_throttle) += rest;
    (global ? profile.stall_memory : profile.stall_shared) += rest;
    if (slot.reduces && candidate.resource == MemoryResource::store) statistics.stall_atomic += rest;
  } else if (candidate.pipe_was_busy) {
    statistics.stall_math_pipe_throttle += rest;
    profile.stall_execution += rest;
  } else {
    statistics.stall_not_selected += rest;
    profile.stall_other += rest;
  }
  statistics.warp_cycles += now - slot.after + 1;
  if (slot.record->states) [[unlikely]]
    observe_issue(slot, candidate, waited, now);
}

// As `account`, over time.
void Sm::observe_issue(const WarpSlot& slot, const Candidate& candidate, Cycle waited, Cycle now) {
  WarpState rest = candidate.pipe_was_busy ? WarpState::math_pipe_throttle : WarpState::not_selected;
  if (candidate.queue_was_full) {
    const InstructionKind kind = slot.at->kind;
    const bool global = candidate.resource != MemoryResource::none || kind == InstructionKind::atomic_global;
    rest = global ? WarpState::lg_throttle : WarpState::mio_throttle;
    if (kind == InstructionKind::texture) rest = WarpState::tex_throttle;
  }
  slot.record->states->add_issue(slot.after, state_of(slot.reason), slot.after + waited, rest, now);
}

void Sm::issue(SubCore& sub, std::uint32_t index, Cycle now) {
  WarpSlot& slot = *warps_[index];
  const SassInstruction& instruction = *slot.at;
  const InstructionTiming& timing = pipes_.timing(instruction.kind);
  const Pipe own_pipe = pipes_.pipe_of(instruction.kind);
  account(index, now);
  const std::size_t pipe = pipe_for(sub, instruction);
  const bool scheduled = slot.function->scheduled;
  const Cycle interval = scheduled ? pipes_.interval(instruction, sub.last == index) : Cycle{timing.interval};
  LaunchRecord& record = *slot.record;
  OperationProfile& profile = *slot.profile;
  ++record.statistics.issued_instructions;
  ++record.issued[pipe];
  record.busy[pipe] += interval;
  ++profile.issued;
  sub.last = index;
  const bool queued = pipes_.queued(instruction.kind);
  sub.free[pipe] = now + (queued ? 1 : interval);
  slot.after = now + 1;
  Candidate& candidate = this->candidate(index);
  candidate.pipe_was_busy = candidate.queue_was_full = false;

  Mask executed = kAllLanes;
  const bool executes = instruction.executes && !slot.predicated_off;
  if (executes) {
    slot.cta->worker.cycle = static_cast<std::uint64_t>(now);
    access_.mask = 0;
    if (instruction.kind == InstructionKind::branch) slot.branch = slot.warp->next();  // else it is null
    try {
      slot.falls_through = slot.warp->step();
    } catch (const Fault& fault) {
      throw explain(slot.cta->cta, *slot.warp, fault);
    }
    slot.cta->worker.launch->check_limit(slot.cta->worker.counts);  // each CTA may have as many as a grid
    executed = slot.warp->mask;
    profile.threads += std::popcount(executed);
    ++profile.executed;
  }
  if (own_pipe == Pipe::lsu && instruction.kind != InstructionKind::shuffle) {
    access(sub, index, instruction, executes && executed != 0, now);
  } else {
    const Cycle begin = queued ? enter_queue(sub, instruction, interval, now, record.statistics) : now;
    const Cycle ready = begin + timing.latency;
    const Stall why = instruction.kind == InstructionKind::shuffle ? Stall::short_scoreboard : Stall::wait;
    if (instruction.control.closes_copies)
      slot.counters.close_copies(instruction.control.write_counter, ready, slot.function->limited_counters,
                                 slot.after);
    else if (scheduled)
      count(slot, instruction.control.write_counter, {ready, why});
    else
      set_ready(slot, instruction, ready, why, own_pipe);
    if (scheduled) {
      const Cycle read = std::min(ready, begin + Cycle{spec_.timing.operand_read});
      count(slot, instruction.control.read_counter, {read, Stall::wait});
    } else {
      slot.board->set_predicates(instruction.writes_predicates, ready);
      if (own_pipe == Pipe::cbu && instruction.kind != InstructionKind::barrier) hold(slot, ready);
    }
  }
  candidate.yields = instruction.control.yields;
  if (instruction.control.stall > 1) hold(slot, now + instruction.control.stall);
  do ++slot.at;  // those that need all lanes are left out if there were fewer at the last operation
  while (slot.at != slot.end && slot.at->all_lanes && slot.warp->active != kAllLanes);
  const InstructionKind kind = instruction.kind;
  const Cycle released = kind == InstructionKind::barrier ? arrive_at_barrier(slot, now) : now + 1;
  if (slot.at == slot.end)
    next_operation(index, now);
  else
    find_earliest(index);
  if (kind == InstructionKind::barrier || kind == InstructionKind::exit)
    wake_blocked(*slot.cta, released, now);
}

// A warp arrives at a barrier of its CTA: the barrier unit of the SM takes one after the other. Returns when
// warps go on if it is the last; it does not go on earlier itself.
Cycle Sm::arrive_at_barrier(WarpSlot& slot, Cycle now) {
  const InstructionTiming& timing = spec_.timing.barrier;
  const Cycle arrived = std::max(now, barrier_free_);
  barrier_free_ = arrived + timing.interval;
  const Cycle released = arrived + timing.latency;
  if (slot.warp->next() != nullptr) wait_at_barrier(slot, released);
  return released;
}

// A warp has waited at a barrier, and goes on at a cycle.
void Sm::wait_at_barrier(WarpSlot& slot, Cycle released) {
  const Cycle waited = std::max<Cycle>(0, released - slot.after);
  slot.record->statistics.stall_barrier += waited;
  slot.record->statistics.warp_cycles += waited;
  slot.profile->stall_shared += waited;  // of the barrier itself
  slot.record->observe(WarpState::barrier, slot.after, released);
  slot.after += waited;
}

// Finds the next operation of the warp that takes time; those that take none are executed on the way.
void Sm::next_operation(std::uint32_t index, Cycle now) {
  WarpSlot& slot = *warps_[index];
  bool elsewhere = false;
  try {
    for (;;) {
      if (slot.falls_through) {
        ++slot.operation;
        ++slot.profile;
        slot.at = slot.end;
        slot.end = slot.function->instructions.data() + slot.function->first[slot.operation + 1];
      } else if (const Op* op = slot.warp->next(); op != nullptr) {
        if (pass_predicated(slot, *op)) break;
        enter_operation(slot, *op);
        elsewhere = true;
      } else {
        slot.at = slot.end = nullptr;
        slot.blocked = true;
        earliest(index) = kPending;
        slot.reason = Stall::barrier;
        finish_if_done(index, now);
        return;
      }
      slot.branch = nullptr;
      if (slot.at != slot.end) break;
      slot.falls_through = slot.warp->step();
      slot.profile->threads += std::popcount(slot.warp->mask);
      ++slot.profile->executed;
    }
  } catch (const Fault& fault) {
    throw explain(slot.cta->cta, *slot.warp, fault);
  }
  if (elsewhere || slot.at >= slot.fetched_end) fetch(index, now);
  find_earliest(index);
}

// Where all lanes take a branch that became predicates, what it leads past is issued all the same. Returns
// whether there is such code and it was not issued yet.
bool Sm::pass_predicated(WarpSlot& slot, const Op& next) {
  const bool passed = slot.predicated_off;
  slot.predicated_off = false;
  if (passed || slot.function == nullptr || slot.function->scheduled) return false;
  if (!slot.function->predicated[slot.operation]) return false;
  const Code& code = slot.warp->code();
  const Op& branch = code.ops[slot.operation];
  if (&next != &code.ops[branch.aux] || branch.aux <= slot.operation) return false;
  slot.at = slot.function->instructions.data() + slot.function->first[slot.operation + 1];
  slot.end = slot.function->instructions.data() + slot.function->first[branch.aux];
  slot.predicated_off = slot.at != slot.end;
  return slot.predicated_off;
}

// Goes to an operation anywhere in the program.
void Sm::enter_operation(WarpSlot& slot, const Op& op) const {
  const TimedLaunch& timed = *launches_->launches[slot.cta->launch];
  const Code& code = slot.warp->code();
  const auto function = static_cast<std::size_t>(&code - timed.launch.program->codes.data());
  const SassFunction& machine = timed.machine->functions[function];
  slot.operation = static_cast<std::uint32_t>(&op - code.ops.data());
  slot.at = machine.instructions.data() + machine.first[slot.operation];
  slot.end = machine.instructions.data() + machine.first[slot.operation + 1];
  slot.function = &machine;
  slot.profile = &slot.record->operations[timed.first_operation[function] + slot.operation];
  slot.code_address = timed.code_address + machine.address;
  slot.blocked = false;
  if (slot.branch != nullptr && !follows(code, slot.branch, &op)) hold(slot, slot.after + spec_.timing.taken);
}

// Instructions come in lines; a warp that enters a new one may have to wait for it.
void Sm::fetch(std::uint32_t index, Cycle now) {
  WarpSlot& slot = *warps_[index];
  const std::uint64_t line_bytes = instructions_.line_bytes();
  const std::uint64_t address =
      slot.code_address +
      static_cast<std::uint64_t>(slot.at - slot.function->instructions.data()) * kInstructionBytes;
  const std::uint64_t line = address / line_bytes * line_bytes;
  slot.fetched_end = slot.at + (line + line_bytes - address) / kInstructionBytes;
  if (line == slot.fetched) return;
  slot.fetched = line;
  const Cycle latency = instructions_.fetch(index % sub_cores_.size(), line, now, slot.record->statistics);
  if (latency != 0) slot.fetch_until = now + latency;
}

void Sm::find_earliest(std::uint32_t index) {
  WarpSlot& slot = *warps_[index];
  Waiting waiting{slot.after};
  waiting.consider(slot.fetch_until, Stall::no_instruction);
  if (!slot.function->scheduled)
    slot.board->wait(*slot.at, slot.function->registers.data() + slot.at->first, pipes_, spec_.timing.guard,
                     waiting);
  else if (slot.at->control.waits != 0 || slot.at->control.limited != IssueControl::kNone)
    slot.counters.wait(slot.at->control, waiting);
  // A kernel begins with its stack pointer, which is a constant.
  if (slot.at->reads_constant || slot.record->parameters_ready == 0) {
    Cycle& when = slot.record->parameters_ready;
    // A warp that waits for memory asks for its parameters when the answer has come.
    if (when == 0 && waiting.until != kPending)
      when = waiting.until + spec_.l1_miss_latency + device_tlb_.look_up_constants(waiting.until);
    waiting.consider(when, Stall::long_scoreboard);
  }
  if (slot.at->kind == InstructionKind::fence && slot.writes != 0)
    waiting.consider(kPending, Stall::long_scoreboard);
  earliest(index) = waiting.until;
  Candidate& candidate = this->candidate(index);
  candidate.pipe = static_cast<std::uint8_t>(pipes_.pipe_of(slot.at->kind));
  candidate.dual_pipe = slot.at->dual_pipe;
  candidate.queued = pipes_.queued(slot.at->kind);
  candidate.resource = pipes_.resource(slot.at->kind);
  sub_core_of(index).idle_until = 0;
  slot.reason = waiting.why;
  slot.conflict = waiting.conflict != nullptr ? *waiting.conflict : 0;
}

}  // namespace manyscale::gpu
