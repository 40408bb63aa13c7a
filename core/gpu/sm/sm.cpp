// SPDX-License-Identifier: Apache-2.0
#include "gpu/sm/sm.hpp"

#include <algorithm>
#include <bit>

#include "engine/registry.hpp"
#include "gpu/exec/fault_report.hpp"

namespace manyscale::gpu {

namespace {

const Registered<Sm> registered{"gpu.sm",
                                "A streaming multiprocessor that executes warps with their timing."};

constexpr std::uint64_t kInstructionBytes = 16;
constexpr std::uint64_t kPrefetchedLines = 4;
constexpr std::uint64_t kInstructionWays = 4;
constexpr std::uint64_t kConstantWays = 4;

// Whether an operation is the next in the text after another; places where lanes meet are none.
bool follows(const Code& code, const Op* first, const Op* second) {
  const Op* end = code.ops.data() + code.ops.size();
  if (first < code.ops.data() || first >= end) return false;  // of another function
  for (++first; first != end && first->flow == Flow::join; ++first) {
  }
  return first == second;
}

}  // namespace

Sm::Sm(const Spec& spec)
    : spec_(spec),
      clock_(*this, period_of(spec.clock)),
      slices_({spec.l1.slices, spec.l1.line, spec.l1.slice_hash}),
      l1_(static_cast<std::uint64_t>(spec.l1.size), static_cast<std::uint64_t>(spec.l1.line),
          static_cast<std::uint64_t>(spec.l1.ways)),
      instructions_(static_cast<std::uint64_t>(spec.l1_instructions),
                    static_cast<std::uint64_t>(spec.instruction_line), kInstructionWays),
      constants_(static_cast<std::uint64_t>(spec.constant_size), kConstantLine, kConstantWays) {
  if (spec.scheduler != "gty" && spec.scheduler != "gto" && spec.scheduler != "lrr")
    throw SimulationError("an SM's scheduler is gty, gto or lrr, not '" + spec.scheduler + "'");
  policy_ = spec.scheduler == "gty"   ? Policy::youngest
            : spec.scheduler == "gto" ? Policy::oldest
                                      : Policy::in_turn;
  blocking_faults_ = faults_block(spec.tlb);
  earliest_.assign(static_cast<std::size_t>(spec.warps), kPending);
  auto set = [&](Kind kind, Unit unit, const UnitTiming& timing) {
    unit_[static_cast<std::size_t>(kind)] = unit;
    timing_[static_cast<std::size_t>(kind)] = timing;
  };
  const SmTimings& t = spec.timing;
  set(Kind::integer, Unit::integer, t.integer);
  set(Kind::logic, Unit::integer, t.logic);
  set(Kind::multiply_add, Unit::fp32, t.multiply_add);  // one unit multiplies whole numbers and floats
  set(Kind::multiply_wide, Unit::fp32, t.multiply_wide);
  set(Kind::fp32, Unit::fp32, t.fp32);
  set(Kind::fp16, Unit::fp32, t.fp16);
  set(Kind::fp64, Unit::fp64, t.fp64);
  set(Kind::special_function, Unit::special, t.special_function);
  set(Kind::convert, Unit::special, t.convert);
  set(Kind::tensor_half, Unit::tensor, t.tensor_half);
  set(Kind::tensor_integer, Unit::tensor, t.tensor_integer);
  set(Kind::tensor_double, Unit::tensor, t.tensor_double);
  set(Kind::move_special, Unit::other, t.move_special);
  for (Kind kind : {Kind::load_global, Kind::store_global, Kind::load_local, Kind::store_local,
                    Kind::load_shared, Kind::store_shared, Kind::load_constant, Kind::atomic_global,
                    Kind::reduce_global, Kind::atomic_shared, Kind::texture})
    set(kind, Unit::memory, {spec.l1.hit_latency, 1});
  set(Kind::shuffle, Unit::memory, t.shuffle);
  set(Kind::vote, Unit::other, t.vote);
  set(Kind::branch, Unit::control, t.branch);
  set(Kind::barrier, Unit::control, t.barrier);
  set(Kind::fence, Unit::control, t.fence);
  set(Kind::exit, Unit::control, t.branch);
  set(Kind::other, Unit::other, t.other);

  for (Unit from : {Unit::integer, Unit::fp32}) {
    auto& latencies = crossing_[static_cast<std::size_t>(from)];
    for (Unit to : {Unit::integer, Unit::fp32, Unit::fp64})
      latencies[static_cast<std::size_t>(to)] = to == from ? 0 : t.other_unit;
    for (Unit to : {Unit::memory, Unit::special, Unit::tensor})
      latencies[static_cast<std::size_t>(to)] = t.queued_unit;
  }
  for (std::int64_t i = 0; i < spec.sub_cores; ++i) {
    SubCore& sub = sub_cores_.emplace_back(
        SubCore{{},
                std::vector<Cycle>(static_cast<std::size_t>(spec.memory_queue), 0),
                0,
                0,
                0,
                L1Cache(static_cast<std::uint64_t>(spec.l0_instructions),
                        static_cast<std::uint64_t>(spec.instruction_line), kInstructionWays)});
    sub.last = static_cast<std::uint32_t>(i);
  }
  for (std::int64_t i = 0; i < spec.warps; ++i) warps_.push_back(std::make_unique<WarpSlot>());
  declare(statistics_);
  clock_.on_tick<&Sm::tick>();
  scheduler_.on_receive<&Sm::start_cta>();
  memory_.on_receive<&Sm::receive>();
  translation_.on_receive<&Sm::translated>();
}

std::vector<Wait> Sm::waits() const {
  if (resident_warps_ == 0) return {};
  return {{std::to_string(resident_warps_) + " warps have not finished", ""}};
}

void Sm::settle() {
  if (resident_warps_ != 0) {
    const Cycle now = clock_.cycle();
    taken_.active_cycles += now - resident_since_;
    resident_since_ = now;
  }
  statistics_ = taken_;
  for (const auto& record : records_) record->add_to(statistics_);
}

LaunchRecord& Sm::record_of(std::uint32_t launch) {
  const auto found = std::ranges::find(records_, launch, [](const auto& record) { return record->launch; });
  if (found != records_.end()) return **found;
  LaunchRecord& record = *records_.emplace_back(std::make_unique<LaunchRecord>());
  record.launch = launch;
  record.operations.resize(launches_->launches[launch]->first_operation.back());
  return record;
}

std::unique_ptr<LaunchRecord> Sm::take_record(std::uint32_t launch) {
  const auto found = std::ranges::find(records_, launch, [](const auto& record) { return record->launch; });
  if (found == records_.end()) return nullptr;
  std::unique_ptr<LaunchRecord> record = std::move(*found);
  records_.erase(found);
  record->add_to(taken_);
  return record;
}

void Sm::start_cta(const CtaStart& start, std::uint32_t) {
  const Cycle now = clock_.cycle_at(this->now());
  const TimedLaunch& timed = *launches_->launches[start.launch];
  auto free = std::ranges::find_if(ctas_, [](const auto& slot) { return !slot->used; });
  if (free == ctas_.end()) free = ctas_.insert(ctas_.end(), std::make_unique<CtaSlot>());
  CtaSlot& slot = **free;
  slot.used = true;
  slot.launch = start.launch;
  slot.record = &record_of(start.launch);
  slot.started = this->now();
  slot.worker = Worker{};
  slot.worker.launch = &timed.launch;
  slot.worker.shares_memory = true;  // SMs on other threads update it too
  slot.cta.start(timed.launch, slot.worker, start.cta);
  slot.unfinished = static_cast<std::uint32_t>(slot.cta.warps().size());
  if (resident_warps_ == 0) resident_since_ = now;
  if (start.launch != last_launch_) {
    // A kernel does not see what an earlier one left in the L1; shared memory has its part of the same
    // memory.
    last_launch_ = start.launch;
    const auto shared = static_cast<std::int64_t>(timed.shared_bytes() * timed.fitting);
    l1_.resize(static_cast<std::uint64_t>(std::max(spec_.l1.size - shared, spec_.l1.least)));
  }
  std::size_t place = 0;
  for (const auto& warp : slot.cta.warps()) {
    while (place < warps_.size() && warps_[place]->warp != nullptr) ++place;
    if (place == warps_.size()) throw SimulationError(name() + " was given more warps than it holds");
    WarpSlot& target = *warps_[place];
    target = WarpSlot{};
    target.warp = warp.get();
    target.cta = &slot;
    target.record = slot.record;
    slot.record->warp_came(now);
    target.age = next_age_++;
    target.after = now + spec_.cta_launch_latency;
    ++resident_warps_;
    next_operation(static_cast<std::uint32_t>(place), target.after);
  }
  show_level("warps", resident_warps_);
  clock_.wake_at(std::max(now + spec_.cta_launch_latency, clock_.cycle_at(this->now())));
}

Cycle Sm::tick(Cycle now) {
  Cycle next = Clock::asleep;
  for (std::size_t i = 0; i < sub_cores_.size(); ++i) next = std::min(next, issue_from(i, now));
  return next;
}

// Lets one warp of a sub-core issue, if one can; says when to try again.
Cycle Sm::issue_from(std::size_t sub_index, Cycle now) {
  SubCore& sub = sub_cores_[sub_index];
  const auto step = static_cast<std::uint32_t>(sub_cores_.size());
  const auto total = static_cast<std::uint32_t>(warps_.size());
  Cycle next = Clock::asleep;
  std::uint32_t best = total;
  std::uint64_t best_rank = 0;
  for (std::uint32_t i = static_cast<std::uint32_t>(sub_index); i < total; i += step) {
    const Cycle earliest = earliest_[i];
    if (earliest > now) {
      next = std::min(next, earliest);
      continue;
    }
    WarpSlot& slot = *warps_[i];
    Cycle when = now + 1;
    if (!can_use_unit(sub, slot, now, when)) {
      next = std::min(next, when);
      continue;
    }
    // The warp that issued last goes first; of the others the youngest, the oldest, or the next in turn.
    std::uint64_t rank = 0;
    if (policy_ == Policy::in_turn) {
      rank = total - (i + total - sub.last) % total;
    } else if (i == sub.last) {
      rank = slot.yields ? 0 : ~std::uint64_t{0};
    } else {
      rank = policy_ == Policy::youngest ? slot.age + 1 : ~slot.age >> 1;
    }
    if (best == total || rank > best_rank) {
      best = i;
      best_rank = rank;
    }
  }
  if (best == total) return next;
  issue(sub, best, now);
  return now + 1;
}

// The unit that an instruction goes to: that of its kind, or the one of two that is free first.
std::size_t Sm::unit_for(const SubCore& sub, const MachineInstruction& instruction) const {
  const auto own = static_cast<std::size_t>(unit_[static_cast<std::size_t>(instruction.kind)]);
  constexpr auto kMultiplier = static_cast<std::size_t>(Unit::fp32);
  return instruction.either && sub.free[kMultiplier] < sub.free[own] ? kMultiplier : own;
}

bool Sm::can_use_unit(SubCore& sub, WarpSlot& slot, Cycle now, Cycle& when) {
  const auto kind = static_cast<std::size_t>(slot.at->kind);
  const Cycle free = sub.free[unit_for(sub, *slot.at)];
  if (free > now) {
    slot.unit_was_busy = true;
    when = free;
    return false;
  }
  if (unit_[kind] == Unit::memory) {
    if (sub.queue[sub.next_in_queue] > now) {
      slot.queue_was_full = true;
      when = sub.queue[sub.next_in_queue];
      return false;
    }
    if (static_cast<std::int64_t>(pending_.lines()) + parked_loads_ >= spec_.l1.outstanding_lines &&
        (slot.at->kind == Kind::load_global || slot.at->kind == Kind::load_local)) {
      slot.queue_was_full = true;
      when = Clock::asleep;  // until a line arrives
      return false;
    }
    if (writes_under_way_ >= spec_.l1.outstanding_writes &&
        (slot.at->kind == Kind::store_global || slot.at->kind == Kind::store_local ||
         slot.at->kind == Kind::reduce_global)) {
      slot.queue_was_full = true;
      when = Clock::asleep;  // until a store is complete
      return false;
    }
  }
  return true;
}

// Keeps a warp that has just issued from issuing again too early: a branch, a barrier or a fence takes its
// time.
void Sm::hold(WarpSlot& slot, Cycle until) {
  const Cycle held = until - slot.after;
  slot.record->statistics.stall_dependency += held;
  slot.record->statistics.warp_cycles += held;
  slot.profile->stall_execution += held;
  slot.after = until;
}

// Where a warp's cycles since its last issue went.
void Sm::account(std::uint32_t index, Cycle now) {
  const WarpSlot& slot = *warps_[index];
  SmStatistics& statistics = slot.record->statistics;
  OperationProfile& profile = *slot.profile;
  const Cycle waited = std::max<Cycle>(0, std::min(earliest_[index], now) - slot.after);
  switch (slot.reason) {
    case Stall::dependency:
      statistics.stall_dependency += waited;
      profile.stall_execution += waited;
      break;
    case Stall::memory:
      statistics.stall_memory += waited;
      profile.stall_memory += waited;
      break;
    case Stall::shared:
      statistics.stall_shared += waited;
      profile.stall_shared += waited;
      break;
    case Stall::barrier:
      statistics.stall_barrier += waited;
      profile.stall_shared += waited;
      break;
    case Stall::fetch:
      statistics.stall_fetch += waited;
      profile.stall_other += waited;
      break;
    case Stall::fault:
      statistics.stall_fault += waited;
      profile.stall_fault += waited;
      break;
  }
  const Cycle rest = now - slot.after - waited;
  if (slot.queue_was_full) {
    statistics.stall_queue += rest;
    profile.stall_memory += rest;
  } else if (slot.unit_was_busy) {
    statistics.stall_unit += rest;
    profile.stall_execution += rest;
  } else {
    statistics.stall_not_selected += rest;
    profile.stall_other += rest;
  }
  statistics.warp_cycles += now - slot.after + 1;
}

void Sm::issue(SubCore& sub, std::uint32_t index, Cycle now) {
  WarpSlot& slot = *warps_[index];
  const MachineInstruction& instruction = *slot.at;
  const auto kind = static_cast<std::size_t>(instruction.kind);
  account(index, now);
  const std::size_t unit = unit_for(sub, instruction);
  const bool scheduled = slot.function->scheduled;
  const Cycle interval = scheduled ? unit_interval(sub, index, instruction) : Cycle{timing_[kind].interval};
  LaunchRecord& record = *slot.record;
  OperationProfile& profile = *slot.profile;
  ++record.statistics.machine_instructions;
  ++record.issued[unit];
  record.busy[unit] += interval;
  ++profile.issued;
  sub.last = index;
  sub.free[unit] = now + interval;
  slot.after = now + 1;
  slot.unit_was_busy = slot.queue_was_full = false;

  Mask executed = kAllLanes;
  if (instruction.executes) {
    slot.cta->worker.cycle = static_cast<std::uint64_t>(now);
    slot.warp->access.mask = 0;
    slot.branch = instruction.kind == Kind::branch ? slot.warp->next() : nullptr;
    try {
      slot.warp->step();
    } catch (const Fault& fault) {
      throw KernelFault(explain(slot.cta->cta, *slot.warp, fault));
    }
    slot.cta->worker.launch->check_limit(slot.cta->worker.counts);  // each CTA may have as many as a grid
    executed = slot.warp->mask;
    profile.threads += std::popcount(executed);
  }
  if (unit_[kind] == Unit::memory && instruction.kind != Kind::shuffle) {
    access(sub, index, instruction, instruction.executes && executed != 0, now);
  } else {
    const Cycle ready = now + timing_[kind].latency;
    set_ready(slot, instruction, ready, instruction.kind == Kind::shuffle ? Stall::shared : Stall::dependency,
              unit_[kind]);
    if (scheduled) {
      const Cycle read = std::min(ready, now + Cycle{spec_.timing.operand_read});
      count(slot, instruction.control.read_counter, read, Stall::dependency);
    } else {
      for (unsigned p = 0; p < 8; ++p)
        if (instruction.writes_predicates >> p & 1) slot.predicates[p] = ready;
      if (unit_[kind] == Unit::control) hold(slot, ready);
    }
  }
  if (scheduled) follow_schedule(slot, instruction, now);
  do ++slot.at;  // those that need all lanes are left out if there were fewer at the last operation
  while (slot.at != slot.end && slot.at->all_lanes && slot.warp->active != kAllLanes);
  if (slot.at == slot.end)
    next_operation(index, now);
  else
    find_earliest(index);
  if (instruction.kind == Kind::barrier || instruction.kind == Kind::exit) wake_blocked(*slot.cta, now);
}

// Finds the next operation of the warp that takes time; those that take none are executed on the way.
void Sm::next_operation(std::uint32_t index, Cycle now) {
  WarpSlot& slot = *warps_[index];
  const TimedLaunch& timed = *launches_->launches[slot.cta->launch];
  const Code* codes = timed.launch.program->codes.data();
  try {
    for (;;) {
      const Op* op = slot.warp->next();
      if (op == nullptr) {
        slot.at = slot.end = nullptr;
        slot.blocked = true;
        earliest_[index] = kPending;
        slot.reason = Stall::barrier;
        finish_if_done(index, now);
        return;
      }
      const Code& code = slot.warp->code();
      const auto function = static_cast<std::size_t>(&code - codes);
      const MachineFunction& machine = timed.machine->functions[function];
      const auto operation = static_cast<std::size_t>(op - code.ops.data());
      slot.at = machine.instructions.data() + machine.first[operation];
      slot.end = machine.instructions.data() + machine.first[operation + 1];
      slot.function = &machine;
      slot.profile = &slot.record->operations[timed.first_operation[function] + operation];
      slot.code_address = timed.code_address + machine.address;
      slot.blocked = false;
      if (slot.branch != nullptr && !follows(code, slot.branch, op))
        hold(slot, slot.after + spec_.timing.taken);
      slot.branch = nullptr;
      if (slot.at != slot.end) break;
      slot.warp->step();
      slot.profile->threads += std::popcount(slot.warp->mask);
    }
  } catch (const Fault& fault) {
    throw KernelFault(explain(slot.cta->cta, *slot.warp, fault));
  }
  fetch(sub_core_of(index), slot, now);
  find_earliest(index);
}

// Instructions come in lines; a warp that enters a new one may have to wait for it.
void Sm::fetch(SubCore& sub, WarpSlot& slot, Cycle now) {
  const auto line_bytes = static_cast<std::uint64_t>(spec_.instruction_line);
  const std::uint64_t address =
      slot.code_address +
      static_cast<std::uint64_t>(slot.at - slot.function->instructions.data()) * kInstructionBytes;
  const std::uint64_t line = address / line_bytes * line_bytes;
  if (line == slot.fetched) return;
  slot.fetched = line;
  if (sub.instructions.look_up(line, 1) != 0) return;
  Cycle latency = spec_.l0_miss_latency;
  if (instructions_.look_up(line, 1) == 0) latency = spec_.l1_miss_latency;
  for (std::uint64_t ahead = 0; ahead < kPrefetchedLines; ++ahead) {
    sub.instructions.fill(line + ahead * line_bytes, 1);
    instructions_.fill(line + ahead * line_bytes, 1);
  }
  slot.fetch_until = now + latency;
}

void Sm::find_earliest(std::uint32_t index) {
  WarpSlot& slot = *warps_[index];
  Waiting waiting{slot.after};
  waiting.consider(slot.fetch_until, Stall::fetch);
  if (slot.function->scheduled)
    wait_for_counters(slot, waiting);
  else
    wait_for_registers(slot, waiting);
  if (slot.at->reads_constant) {
    Cycle& when = slot.record->parameters_ready;
    if (when == 0) when = waiting.until + spec_.l1_miss_latency;
    waiting.consider(when, Stall::memory);
  }
  if (slot.at->kind == Kind::fence && slot.writes != 0) waiting.consider(kPending, Stall::memory);
  earliest_[index] = waiting.until;
  slot.reason = waiting.why;
}

void Sm::wait_for_registers(const WarpSlot& slot, Waiting& waiting) const {
  const MachineInstruction& instruction = *slot.at;
  const std::uint8_t* registers = slot.function->registers.data() + instruction.first;
  const auto reader = static_cast<std::size_t>(unit_[static_cast<std::size_t>(instruction.kind)]);
  for (unsigned i = 0; i < instruction.reads; ++i) {
    const std::uint8_t r = registers[i];
    const Cycle ready = slot.ready[r];
    waiting.consider(
        ready == kPending ? kPending : ready + crossing_[static_cast<std::size_t>(slot.unit[r])][reader],
        slot.writer[r]);
  }
  for (unsigned i = instruction.reads; i < unsigned{instruction.reads} + instruction.writes; ++i)
    waiting.consider(slot.ready[registers[i]], slot.writer[registers[i]]);
  for (unsigned left = instruction.reads_predicates | instruction.writes_predicates; left != 0;
       left &= left - 1) {
    const auto p = static_cast<unsigned>(std::countr_zero(left));
    waiting.consider(slot.predicates[p] + (instruction.guards >> p & 1 ? spec_.timing.guard : 0),
                     Stall::dependency);
  }
}

// Warps that waited for others of their CTA, and no longer do.
void Sm::wake_blocked(CtaSlot& cta, Cycle now) {
  if (!cta.used) return;
  for (std::uint32_t i = 0; i < warps_.size(); ++i) {
    WarpSlot& slot = *warps_[i];
    if (slot.warp == nullptr || slot.cta != &cta || !slot.blocked || slot.warp->next() == nullptr) continue;
    const Cycle waited = std::max<Cycle>(0, now + 1 - slot.after);
    slot.record->statistics.stall_barrier += waited;
    slot.record->statistics.warp_cycles += waited;
    slot.profile->stall_shared += waited;  // of the barrier itself
    slot.after += waited;
    next_operation(i, now);
  }
}

// A warp leaves when it has ended and its memory operations are complete.
void Sm::finish_if_done(std::uint32_t index, Cycle now) {
  const WarpSlot& slot = *warps_[index];
  if (slot.warp->splits().empty() && slot.loads == 0 && slot.writes == 0) finish(index, now);
}

void Sm::finish(std::uint32_t index, Cycle now) {
  WarpSlot& slot = *warps_[index];
  CtaSlot& cta = *slot.cta;
  const Cycle drained = std::max<Cycle>(0, now - slot.after);
  if (slot.faulted_at_end) {
    cta.record->statistics.stall_fault += drained;
    slot.profile->stall_fault += drained;
  } else {
    cta.record->statistics.stall_drain += drained;
  }
  cta.record->statistics.warp_cycles += drained;
  slot.warp = nullptr;
  earliest_[index] = kPending;
  cta.record->warp_left(now);
  if (--resident_warps_ == 0) taken_.active_cycles += now - resident_since_;
  if (--cta.unfinished != 0) return;
  cta.used = false;
  show_level("warps", resident_warps_);
  if (Timeline* shown = timeline()) {
    const TimedLaunch& launch = *launches_->launches[cta.launch];
    const auto track = std::ranges::find(ctas_, &cta, &std::unique_ptr<CtaSlot>::get) - ctas_.begin();
    shown->span(shown->name(launch.launch.program->codes[launch.launch.program->kernel].name), cta.started,
                std::max(clock_.edge(now), cta.started), static_cast<std::uint32_t>(track));
  }
  SmStatistics& statistics = cta.record->statistics;
  ++statistics.ctas;
  statistics.warp_instructions += static_cast<std::int64_t>(cta.worker.counts.warp_instructions);
  statistics.thread_instructions += static_cast<std::int64_t>(cta.worker.counts.thread_instructions);
  if (!cta.worker.printed.empty() || !cta.worker.warnings.empty())
    said_.push_back({this->now(), cta.launch, std::move(cta.worker.printed), std::move(cta.worker.warnings)});
  scheduler_.send({cta.cta.index(), cta.launch}, std::max<Time>(0, clock_.edge(now) - this->now()));
}

}  // namespace manyscale::gpu
