// SPDX-License-Identifier: Apache-2.0
#include "gpu/sched/scheduler.hpp"

#include <algorithm>

#include "engine/registry.hpp"

namespace manyscale::gpu {

namespace {

const Registered<Scheduler> registered{"gpu.scheduler", "The kernel and CTA scheduler of a GPU."};

}  // namespace

Scheduler::Scheduler(const Spec& spec) : spec_(spec), clock_(*this, period_of(spec.clock)) {
  declare(statistics_);
  clock_.on_tick<&Scheduler::tick>();
  sms_.on_receive<&Scheduler::cta_ended>();
}

std::vector<Wait> Scheduler::waits() const {
  std::vector<Wait> waits;
  for (const Running& running : running_)
    waits.push_back({std::to_string(running.unfinished) + " CTAs of a kernel have not ended", ""});
  return waits;
}

void Scheduler::take(SmRoom& taken, const TimedLaunch& launch, std::int64_t times) {
  taken.ctas += times;
  taken.threads += times * static_cast<std::int64_t>(launch.warps() * kLanes);
  taken.warps += times * static_cast<std::int64_t>(launch.warps());
  taken.registers += times * static_cast<std::int64_t>(launch.registers());
  taken.shared += times * static_cast<std::int64_t>(launch.shared_bytes());
}

bool Scheduler::fits(const SmRoom& taken, const TimedLaunch& launch) const {
  SmRoom with = taken;
  take(with, launch, 1);
  const SmRoom& room = spec_.room;
  return with.ctas <= room.ctas && with.threads <= room.threads && with.warps <= room.warps &&
         with.registers <= room.registers && with.shared <= room.shared;
}

std::int64_t Scheduler::fitting(const TimedLaunch& launch) const {
  SmRoom taken{0, 0, 0, 0, 0};
  std::int64_t count = 0;
  while (count < spec_.room.ctas && fits(taken, launch)) {
    take(taken, launch, 1);
    ++count;
  }
  return count;
}

void Scheduler::resume() {
  if (!launches_) return;
  taken_.resize(sms_.width(), SmRoom{0, 0, 0, 0, 0});
  begin_kernels();
  clock_.wake();
}

// Takes kernels whose stream has nothing before them. Launches are in the order they were given, so a
// stream's own order holds.
void Scheduler::begin_kernels() {
  auto& launches = launches_->launches;
  for (std::uint32_t i = next_launch_; i < launches.size(); ++i) {
    TimedLaunch& launch = *launches[i];
    if (launch.begun >= 0) continue;
    bool waits = false;
    for (std::uint32_t before = 0; before < i; ++before)
      waits |= launches[before]->stream == launch.stream && launches[before]->ended < 0;
    if (waits) continue;
    launch.fitting = static_cast<std::uint64_t>(fitting(launch));
    if (launch.fitting == 0)
      throw SimulationError(
          "a CTA of the kernel needs more registers, threads or shared memory than an SM has");
    launch.begun = now();
    if (running_.empty()) next_sm_ = 0;
    running_.push_back({i, 0, launch.launch.ctas(), clock_.cycle_at(now()) + spec_.kernel_latency});
  }
  while (next_launch_ < launches.size() && launches[next_launch_]->begun >= 0) ++next_launch_;
  // The urgent first, else in the order they began.
  std::ranges::stable_sort(running_, std::greater{},
                           [&](const Running& r) { return launches[r.launch]->priority; });
}

Cycle Scheduler::tick(Cycle now) {
  Cycle next = Clock::asleep;
  for (Running& running : running_) {
    TimedLaunch& launch = *launches_->launches[running.launch];
    if (running.next_cta == launch.launch.ctas()) continue;
    if (running.first > now) {
      next = std::min(next, running.first);
      continue;
    }
    // CTAs go to the SM that has the fewest of them, from the one after the last on.
    const auto count = static_cast<std::uint32_t>(taken_.size());
    std::uint32_t best = count;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t sm = (next_sm_ + i) % count;
      if (fits(taken_[sm], launch) && (best == count || taken_[sm].warps < taken_[best].warps)) best = sm;
    }
    if (best == count) continue;  // until a CTA ends
    take(taken_[best], launch, 1);
    if (launch.first_cta < 0) launch.first_cta = this->now();
    sms_.send({running.next_cta++, running.launch}, 0, best);
    ++statistics_.ctas;
    next_sm_ = (best + 1) % count;
    return now + spec_.cta_interval;
  }
  return next;
}

void Scheduler::cta_ended(const CtaEnd& end, std::uint32_t sm) {
  TimedLaunch& launch = *launches_->launches[end.launch];
  take(taken_[sm], launch, -1);
  const auto running = std::ranges::find(running_, end.launch, &Running::launch);
  if (--running->unfinished == 0) {
    launch.ended = now() + clock_.edge(spec_.end_latency);
    ++statistics_.kernels;
    running_.erase(running);
    begin_kernels();
  }
  clock_.wake();
}

}  // namespace manyscale::gpu
