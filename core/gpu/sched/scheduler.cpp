// SPDX-License-Identifier: Apache-2.0
#include "gpu/sched/scheduler.hpp"

#include <algorithm>

#include "engine/registry.hpp"

namespace manyscale::gpu {

namespace {

const Registered<Scheduler> registered{"gpu.scheduler", "The kernel and CTA scheduler of a GPU."};

std::int64_t round_up(std::int64_t amount, std::int64_t unit) {
  return (amount + unit - 1) / unit * unit;
}

}  // namespace

Scheduler::Scheduler(const Spec& spec) : spec_(spec), clock_(*this, period_of(spec.clock)) {
  declare(statistics_);
  clock_.on_tick<&Scheduler::tick>();
  arrivals_.on_expire<&Scheduler::arrive>();
  kernel_ends_.on_expire<&Scheduler::complete>();
  sms_.on_receive<&Scheduler::cta_ended>();
  engines_.on_receive<&Scheduler::copy_ended>();
  pages_.on_receive<&Scheduler::range_ended>();
}

std::vector<Wait> Scheduler::waits() const {
  std::vector<Wait> waits;
  for (const Running& running : running_)
    waits.push_back({std::to_string(running.unfinished) + " CTAs of a kernel have not ended", ""});
  return waits;
}

std::int64_t Scheduler::shared_of_cta(const TimedLaunch& launch) const {
  const AllocationUnits& units = spec_.units;
  return round_up(static_cast<std::int64_t>(launch.launch.shared_bytes()) + units.shared_reserved,
                  units.shared);
}

void Scheduler::take(SmResources& used, const TimedLaunch& launch, std::int64_t times) const {
  const auto warps = static_cast<std::int64_t>(launch.warps());
  const auto of_warp = static_cast<std::int64_t>(launch.machine->registers * kLanes);
  used.ctas += times;
  used.threads += times * warps * kLanes;
  used.warps += times * warps;
  used.registers += times * warps * round_up(of_warp, spec_.units.registers);
  used.shared += times * shared_of_cta(launch);
}

bool Scheduler::fits(const SmResources& used, const TimedLaunch& launch) const {
  SmResources with = used;
  take(with, launch, 1);
  const SmResources& limits = spec_.limits;
  return with.ctas <= limits.ctas && with.threads <= limits.threads && with.warps <= limits.warps &&
         with.registers <= limits.registers && with.shared <= limits.shared;
}

std::int64_t Scheduler::fitting(const TimedLaunch& launch) const {
  SmResources used{0, 0, 0, 0, 0};
  std::int64_t count = 0;
  while (count < spec_.limits.ctas && fits(used, launch)) {
    take(used, launch, 1);
    ++count;
  }
  return count;
}

void Scheduler::resume() {
  used_.resize(sms_.width(), SmResources{0, 0, 0, 0, 0});
  for (const Submitted& entry : submitted_) arrivals_.after(entry.delay, entry.command);
  submitted_.clear();
}

void Scheduler::arrive(const CommandId& command) {
  Command& arrived = commands_->commands.at(command);
  const std::uint32_t stream = arrived.stream;
  std::deque<CommandId>& queue = streams_[stream];
  if (!queue.empty() && commands_->commands.at(queue.back()).kind == CommandKind::kernel)
    arrived.behind_kernel = now();
  queue.push_back(command);
  if (queue.size() == 1) go_on(stream);
}

// Begins what is at the head of a stream. What takes no time is completed here, and so may let other streams
// go on.
void Scheduler::go_on(std::uint32_t stream) {
  std::vector<std::uint32_t> streams{stream};
  while (!streams.empty()) {
    const std::uint32_t at = streams.back();
    const auto found = streams_.find(at);
    if (found == streams_.end() || !begin(found->second.front())) {
      streams.pop_back();
      continue;
    }
    const CommandId done = found->second.front();
    found->second.pop_front();
    if (found->second.empty()) streams_.erase(found);
    if (const auto waiters = event_waiters_.extract(done); !waiters.empty())
      streams.insert(streams.end(), waiters.mapped().begin(), waiters.mapped().end());
  }
}

// Begins a command whose turn has come; true if it has ended at once.
bool Scheduler::begin(CommandId id) {
  Command& command = commands_->commands.at(id);
  switch (command.kind) {
    case CommandKind::kernel:
      ready_.push(command.priority, id);
      begin_kernels();
      return false;
    case CommandKind::copy:
      engines_.send({id}, 0, engine_for(command.copy.kind));
      return false;
    case CommandKind::range:
      if (pages_.width() == 0)
        throw SimulationError(name() + " has no link to unified memory, so it cannot move pages");
      command.begun = now();
      command.range.command = id;
      pages_.send(command.range);
      return false;
    case CommandKind::wait: {
      const auto event = commands_->commands.find(command.event);
      if (event != commands_->commands.end() && event->second.ended < 0) {
        event_waiters_[command.event].push_back(command.stream);
        return false;
      }
      break;
    }
    case CommandKind::record:
      break;
  }
  command.begun = now();
  note_end(id);
  return true;
}

void Scheduler::note_end(CommandId id) {
  commands_->commands.at(id).ended = now();
  commands_->ended.push_back(id);
  if (id == stop_after_) stop();
}

// A command that took time has ended.
void Scheduler::complete(const CommandId& id) {
  note_end(id);
  const std::uint32_t stream = commands_->commands.at(id).stream;
  std::deque<CommandId>& queue = streams_.at(stream);
  queue.pop_front();
  if (queue.empty())
    streams_.erase(stream);
  else
    go_on(stream);
}

// Cycles of its launch that a kernel has behind it when its turn comes: it was prepared while the kernel
// before it in its stream still ran.
Cycle Scheduler::prepared(const Command& command) const {
  if (command.behind_kernel < 0) return 0;
  const Cycle waited = clock_.cycle_at(now()) - clock_.cycle_at(command.behind_kernel);
  return std::min({spec_.launch_ahead, spec_.kernel_latency, waited});
}

// Takes kernels that are ready, as many as may run at the same time.
void Scheduler::begin_kernels() {
  while (!ready_.empty() && static_cast<std::int64_t>(running_.size()) < spec_.concurrent_kernels) {
    const CommandId id = ready_.pop();
    Command& command = commands_->commands.at(id);
    TimedLaunch& launch = *launches_->launches[command.launch];
    launch.fitting = static_cast<std::uint64_t>(fitting(launch));
    launch.shared_of_sm = launch.fitting * static_cast<std::uint64_t>(shared_of_cta(launch));
    launch.begun = command.begun = now();
    launch.prepared = prepared(command);
    launch.origin = command.origin;
    launch.launch.begin();
    if (running_.empty()) next_sm_ = 0;
    const Cycle first = clock_.cycle_at(now()) + spec_.kernel_latency - launch.prepared;
    // The urgent first, else in the order they began.
    running_.insert(std::ranges::upper_bound(running_, command.priority, {}, &Running::priority),
                    {id, command.launch, command.priority, 0, launch.launch.ctas(), first});
    clock_.wake_at(first);
  }
}

Cycle Scheduler::tick(Cycle now) {
  if (now < next_start_) return next_start_;
  Cycle next = Clock::asleep;
  for (Running& running : running_) {
    TimedLaunch& launch = *launches_->launches[running.launch];
    if (running.next_cta == launch.launch.ctas()) continue;
    if (running.first > now) {
      next = std::min(next, running.first);
      continue;
    }
    const std::uint32_t sm = sm_for(launch);
    if (sm == used_.size()) {  // until a CTA ends
      if (spec_.in_order) break;
      continue;
    }
    take(used_[sm], launch, 1);
    if (launch.first_cta < 0) launch.first_cta = this->now();
    sms_.send({running.next_cta++, running.launch}, 0, sm);
    ++statistics_.ctas;
    next_sm_ = (sm + 1) % static_cast<std::uint32_t>(used_.size());
    next_start_ = now + spec_.cta_interval;
    return next_start_;
  }
  return next;
}

// The SM with the fewest warps with free resources for a CTA, from the one after the last on; their number if
// none has.
std::uint32_t Scheduler::sm_for(const TimedLaunch& launch) const {
  const auto count = static_cast<std::uint32_t>(used_.size());
  std::uint32_t best = count;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t sm = (next_sm_ + i) % count;
    if (fits(used_[sm], launch) && (best == count || used_[sm].warps < used_[best].warps)) best = sm;
  }
  return best;
}

void Scheduler::cta_ended(const CtaEnd& end, std::uint32_t sm) {
  TimedLaunch& launch = *launches_->launches[end.launch];
  if (end.left != 0) take(used_[sm], launch, -1);
  ended_ctas_.store(ended_ctas() + end.complete, std::memory_order_relaxed);
  const auto running = std::ranges::find(running_, end.launch, &Running::launch);
  running->unfinished -= end.complete;
  if (running->unfinished == 0) {
    const Time latency = clock_.edge(spec_.end_latency);
    launch.ended = now() + latency;
    ++statistics_.kernels;
    kernel_ends_.after(latency, running->command);
    running_.erase(running);
    begin_kernels();
  }
  clock_.wake();
}

std::uint32_t Scheduler::engine_for(CopyKind kind) const {
  const std::uint32_t within = engines_.width() - 1;
  if (kind == CopyKind::to_device) return 0;
  return kind == CopyKind::to_host ? within - 1 : within;
}

void Scheduler::copy_ended(const CopyEnd& end, std::uint32_t) {
  ++statistics_.copies;
  complete(end.command);
}

void Scheduler::range_ended(const RangeEnd& end, std::uint32_t) {
  complete(end.command);
}

}  // namespace manyscale::gpu
