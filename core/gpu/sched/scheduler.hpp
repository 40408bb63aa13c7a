// SPDX-License-Identifier: Apache-2.0
// The scheduler of a GPU: takes the host's commands from the queues of their streams, starts the CTAs of
// kernels on SMs with free resources for them, gives copies to the copy engines and moves of managed memory
// to unified memory.
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/clock.hpp"
#include "engine/timer.hpp"
#include "gpu/sched/command.hpp"
#include "gpu/sm/timed_launch.hpp"

namespace manyscale::gpu {

// Resources of an SM that limit its occupancy: all of them, or those that resident CTAs use.
struct SmResources {
  std::int64_t ctas = 1;
  std::int64_t threads = 32;
  std::int64_t warps = 1;
  std::int64_t registers = 1;
  std::int64_t shared = 0;
};

// Units in which an SM gives its resources to CTAs.
struct AllocationUnits {
  std::int64_t registers = 1;        // of a warp
  std::int64_t shared = 1;           // bytes of a CTA
  std::int64_t shared_reserved = 0;  // bytes of a CTA besides its own
};

struct SchedulerSpec {
  std::int64_t clock = 1;
  std::int64_t kernel_latency = 0;
  std::int64_t launch_ahead = 0;
  std::int64_t end_latency = 0;
  std::int64_t cta_interval = 1;
  std::int64_t concurrent_kernels = 1;
  bool in_order = false;
  AllocationUnits units{};
  SmResources limits{};
};

struct SchedulerStatistics {
  Counter kernels, ctas, copies;
};

// Leaves out preemption: CTAs that run are never stopped for more urgent ones.
class Scheduler final : public Component {
 public:
  using Spec = SchedulerSpec;

  explicit Scheduler(const Spec& spec);
  std::vector<Wait> waits() const override;

  void attach(std::shared_ptr<LaunchTable> launches) { launches_ = std::move(launches); }
  void attach(std::shared_ptr<CommandTable> commands) { commands_ = std::move(commands); }
  // The host gives a command that is in the table, between two runs: it arrives after the delay.
  void give(CommandId command, Time delay) { submitted_.push_back({command, delay}); }
  // The next run ends when this command has ended, if nothing ends it before; 0: no command does.
  void stop_after(CommandId command) { stop_after_ = command; }
  void resume() override;
  // CTAs that have ended, of all launches; may be read while the simulation runs.
  std::int64_t ended_ctas() const { return ended_ctas_.load(std::memory_order_relaxed); }
  // CTAs of a launch that fit on an SM at the same time.
  std::int64_t fitting(const TimedLaunch& launch) const;

 private:
  struct Submitted {
    CommandId command;
    Time delay;
  };
  struct Running {
    CommandId command;
    std::uint32_t launch;
    std::int32_t priority;
    std::uint64_t next_cta = 0;
    std::uint64_t unfinished = 0;
    Cycle first = 0;  // the cycle from which its CTAs may start
  };

  Cycle tick(Cycle now);

  // --- Streams ---
  void arrive(const CommandId& command);
  void go_on(std::uint32_t stream);
  bool begin(CommandId id);
  void note_end(CommandId id);
  void complete(const CommandId& id);

  // --- Kernels ---
  void begin_kernels();
  Cycle prepared(const Command& command) const;
  void cta_ended(const CtaEnd& end, std::uint32_t sm);
  std::uint32_t sm_for(const TimedLaunch& launch) const;
  bool fits(const SmResources& used, const TimedLaunch& launch) const;
  void take(SmResources& used, const TimedLaunch& launch, std::int64_t times) const;
  std::int64_t shared_of_cta(const TimedLaunch& launch) const;  // bytes

  // --- Copies ---
  std::uint32_t engine_for(CopyKind kind) const;
  void copy_ended(const CopyEnd& end, std::uint32_t engine);
  void range_ended(const RangeEnd& end, std::uint32_t lane);

  const Spec spec_;
  SchedulerStatistics statistics_;
  Clock clock_;
  Timer<CommandId> arrivals_{*this};
  Timer<CommandId> kernel_ends_{*this};
  SchedulerPort sms_{*this, "sms", "the SMs, one link each", Links::many};
  Port<CopyProtocol, 0> engines_{
      *this, "engines",
      "one or two copy engines on the host's link, to the device first; then one for copies within",
      Links::many};
  Port<RangeProtocol, 0> pages_{*this, "pages", "unified memory", Links::optional};
  std::shared_ptr<LaunchTable> launches_;
  std::shared_ptr<CommandTable> commands_;
  std::vector<Submitted> submitted_;
  CommandId stop_after_ = 0;
  std::unordered_map<std::uint32_t, std::deque<CommandId>> streams_;         // those with commands
  std::unordered_map<CommandId, std::vector<std::uint32_t>> event_waiters_;  // streams, by record
  UrgencyQueue ready_;                                                       // kernels
  std::vector<SmResources> used_;                                            // by SM
  std::vector<Running> running_;                                             // the urgent first
  std::uint32_t next_sm_ = 0;
  Cycle next_start_ = 0;  // of a CTA, not before
  std::atomic<std::int64_t> ended_ctas_ = 0;
};

}  // namespace manyscale::gpu

namespace manyscale {

template <>
struct describe<gpu::SmResources> {
  using S = gpu::SmResources;
  static constexpr auto fields = std::tuple{
      Field<S, std::int64_t>{"ctas", &S::ctas, Unit::count, "CTAs of an SM", 1, 1024},
      Field<S, std::int64_t>{"threads", &S::threads, Unit::count, "threads of an SM", 32, 65536},
      Field<S, std::int64_t>{"warps", &S::warps, Unit::count, "warps of an SM", 1, 2048},
      Field<S, std::int64_t>{"registers", &S::registers, Unit::count, "32-bit registers of an SM", 1, 1e9},
      Field<S, std::int64_t>{"shared", &S::shared, Unit::bytes, "shared memory of an SM", 0, 1e9}};
};

template <>
struct describe<gpu::AllocationUnits> {
  using S = gpu::AllocationUnits;
  static constexpr auto fields =
      std::tuple{Field<S, std::int64_t>{"registers", &S::registers, Unit::count,
                                        "32-bit registers: a warp gets a multiple of it", 1, 65536},
                 Field<S, std::int64_t>{"shared", &S::shared, Unit::bytes,
                                        "shared memory: a CTA gets a multiple of it", 1, 65536},
                 Field<S, std::int64_t>{"shared_reserved", &S::shared_reserved, Unit::bytes,
                                        "shared memory of each CTA that the system takes", 0, 65536}};
};

template <>
struct describe<gpu::SchedulerSpec> {
  using S = gpu::SchedulerSpec;
  static constexpr bool required = true;
  static constexpr auto fields = std::tuple{
      Field<S, std::int64_t>{"clock", &S::clock, Unit::frequency, "clock of the scheduler", 1, 1e12},
      Field<S, std::int64_t>{"kernel_latency", &S::kernel_latency, Unit::cycles,
                             "from a kernel at the head of its queue to its first CTA", 0, 1e9},
      Field<S, std::int64_t>{
          "launch_ahead", &S::launch_ahead, Unit::cycles,
          "part of kernel_latency that passes while the kernel before it in its stream still "
          "runs, if it is there so early",
          0, 1e9},
      Field<S, std::int64_t>{"end_latency", &S::end_latency, Unit::cycles,
                             "from the end of the last CTA to that of the kernel", 0, 1e9},
      Field<S, std::int64_t>{"cta_interval", &S::cta_interval, Unit::cycles,
                             "between two CTAs that are started", 1, 1e6},
      Field<S, std::int64_t>{"concurrent_kernels", &S::concurrent_kernels, Unit::count,
                             "kernels that run at the same time", 1, 1e6},
      Field<S, bool>{
          "in_order", &S::in_order, Unit::none,
          "whether CTAs wait for those of earlier or more urgent kernels that do not fit on an SM"},
      Section<S, gpu::AllocationUnits>{"units", &S::units, "units in which resources are allocated"},
      Section<S, gpu::SmResources>{"limits", &S::limits, "resources of an SM, which limit its occupancy"}};
};

template <>
struct describe<gpu::SchedulerStatistics> {
  using S = gpu::SchedulerStatistics;
  static constexpr auto fields =
      std::tuple{Statistic<S, Counter>{"kernels", &S::kernels, "1", "kernels completed"},
                 Statistic<S, Counter>{"ctas", &S::ctas, "1", "CTAs started"},
                 Statistic<S, Counter>{"copies", &S::copies, "1", "copies completed"}};
};

}  // namespace manyscale
