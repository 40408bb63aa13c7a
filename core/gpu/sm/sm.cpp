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

}  // namespace

Sm::Sm(const Spec& spec)
    : spec_(spec),
      warp_scheduler_(make_plugin<WarpScheduler>(spec.scheduler)),
      pipes_(spec),
      clock_(*this, period_of(spec.clock)),
      slices_({spec.l1.slices, spec.l1.line, spec.l1.slice_hash}),
      l1_(static_cast<std::uint64_t>(spec.l1.size), static_cast<std::uint64_t>(spec.l1.line),
          static_cast<std::uint64_t>(spec.l1.ways)),
      instructions_(spec),
      constants_(spec),
      tags_(spec.l1.tags),
      device_tlb_(spec.device_tlb, period_of(spec.clock)) {
  greedy_ = warp_scheduler_->greedy();
  round_robin_ = warp_scheduler_->round_robin();
  rank_ = warp_scheduler_->rank();
  blocking_faults_ = faults_block(spec.tlb);
  const auto most = static_cast<std::uint32_t>((spec.warps + spec.sub_cores - 1) / spec.sub_cores);
  slots_per_sub_core_ = (most + kWarpsTogether - 1) / kWarpsTogether * kWarpsTogether;
  earliest_.assign(slots_per_sub_core_ * static_cast<std::size_t>(spec.sub_cores), kPending);
  candidates_.resize(earliest_.size());
  for (std::int64_t i = 0; i < spec.warps; ++i)
    index_of_.push_back(
        static_cast<std::uint16_t>(i % spec.sub_cores * slots_per_sub_core_ + i / spec.sub_cores));
  scoreboards_.resize(static_cast<std::size_t>(spec.warps));
  for (std::int64_t i = 0; i < spec.sub_cores; ++i)
    sub_cores_.push_back({.queue = MioQueue(spec), .last = static_cast<std::uint32_t>(i)});
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
  record.origin = launches_->launches[launch]->origin;
  record.operations.resize(launches_->launches[launch]->first_operation.back());
  if (launches_->launches[launch]->records_states)
    record.states = std::make_unique<WarpStates>(clock_.cycle_at(launches_->launches[launch]->begun));
  return record;
}

LaunchRecord& Sm::record_of_origin(memory::Origin origin) {
  return **std::ranges::find(records_, origin, [](const auto& record) { return record->origin; });
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
  slot.worker.access = &access_;
  slot.worker.shares_memory = true;  // SMs on other threads update it too
  slot.cta.start(timed.launch, slot.worker, start.cta);
  slot.unfinished = static_cast<std::uint32_t>(slot.cta.warps().size());
  if (resident_warps_ == 0) resident_since_ = now;
  if (start.launch != last_launch_) {
    // A kernel does not see what an earlier one left in the L1; shared memory has its part of the same
    // memory.
    last_launch_ = start.launch;
    const auto shared = static_cast<std::int64_t>(timed.shared_of_sm);
    l1_.resize(static_cast<std::uint64_t>(std::max(spec_.l1.size - shared, spec_.l1.least)));
  }
  std::uint32_t sub_core = first_sub_core();
  for (const auto& warp : slot.cta.warps()) {
    const std::uint32_t free_slot = free_slot_from(sub_core);
    sub_core = (free_slot + 1) % static_cast<std::uint32_t>(sub_cores_.size());
    ++sub_core_of(free_slot).warps;
    WarpSlot& target = *warps_[free_slot];
    const std::uint32_t tenant = (target.tenant + 1) & kTenantMask;
    target = WarpSlot{};
    target.tenant = tenant;
    target.warp = warp.get();
    if (!timed.machine->functions[timed.launch.program->kernel].scheduled) {
      target.board = &scoreboards_[free_slot];
      *target.board = Scoreboard{};
    }
    target.cta = &slot;
    target.record = slot.record;
    slot.record->warp_came(now);
    candidate(free_slot) = Candidate{.priority = warp_scheduler_->priority(next_age_++)};
    target.after = now + spec_.cta_launch_latency;
    ++resident_warps_;
    next_operation(free_slot, target.after);
  }
  show_level("warps", resident_warps_);
  clock_.wake_at(std::max(now + spec_.cta_launch_latency, clock_.cycle_at(this->now())));
}

// The sub-core of a CTA's first warp; the others follow in turn. It is the one with the fewest warps, of
// equal ones the next after that of the CTA before, so that first warps, which often do more, meet all
// sub-cores.
std::uint32_t Sm::first_sub_core() {
  const auto count = static_cast<std::uint32_t>(sub_cores_.size());
  std::uint32_t best = next_sub_core_;
  for (std::uint32_t i = 1; i < count; ++i) {
    const std::uint32_t other = (next_sub_core_ + i) % count;
    if (sub_cores_[other].warps < sub_cores_[best].warps) best = other;
  }
  next_sub_core_ = (best + 1) % count;
  return best;
}

// A free warp slot of a sub-core, or of the next that has one.
std::uint32_t Sm::free_slot_from(std::uint32_t sub_core) const {
  const auto step = static_cast<std::uint32_t>(sub_cores_.size());
  for (std::uint32_t i = 0; i < step; ++i)
    for (std::uint32_t at = (sub_core + i) % step; at < warps_.size(); at += step)
      if (warps_[at]->warp == nullptr) return at;
  throw SimulationError(name() + " was given more warps than it holds");
}

// Warps that waited for others of their CTA go on at a cycle.
void Sm::wake_blocked(CtaSlot& cta, Cycle released, Cycle now) {
  if (!cta.used) return;
  for (std::uint32_t i = 0; i < warps_.size(); ++i) {
    WarpSlot& slot = *warps_[i];
    if (slot.warp == nullptr || slot.cta != &cta || !slot.blocked || slot.warp->next() == nullptr) continue;
    wait_at_barrier(slot, released);
    next_operation(i, now);
  }
}

// A warp leaves when it has ended, its loads are complete and its stores are on their way to the L2.
void Sm::finish_if_done(std::uint32_t index, Cycle now) {
  const WarpSlot& slot = *warps_[index];
  if (slot.warp->splits().empty() && slot.loads == 0 && slot.unsent_writes == 0)
    finish(index, std::max(now, slot.stores_leave));
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
    if (slot.reduces)
      cta.record->statistics.stall_atomic += drained;
    else
      cta.record->statistics.stall_conflict += std::min<Cycle>(drained, slot.store_conflict);
  }
  cta.record->statistics.warp_cycles += drained;
  cta.record->observe(slot.faulted_at_end ? WarpState::fault : WarpState::drain, now - drained, now);
  slot.warp = nullptr;
  --sub_core_of(index).warps;
  earliest(index) = kPending;
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
    printf_buffers_.push_back(
        {this->now(), cta.launch, std::move(cta.worker.printed), std::move(cta.worker.warnings)});
  LaunchRecord& record = *cta.record;
  ++record.incomplete_ctas;
  const std::uint32_t complete =
      record.unconfirmed_writes == 0 ? std::exchange(record.incomplete_ctas, 0) : 0;
  scheduler_.send({cta.launch, 1, complete}, std::max<Time>(0, clock_.edge(now) - this->now()));
}

}  // namespace manyscale::gpu
