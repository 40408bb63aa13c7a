// SPDX-License-Identifier: Apache-2.0
// The kernel and CTA scheduler of a GPU: takes kernels from their queues, one per stream at a time, and
// starts their CTAs, one per cycle, on SMs that have room for them.
#pragma once
#include <memory>
#include <vector>

#include "engine/clock.hpp"
#include "gpu/sm/timed_launch.hpp"

namespace manyscale::gpu {

// What an SM has room for, and what of it is taken.
struct SmRoom {
  std::int64_t ctas = 32;
  std::int64_t threads = 2048;
  std::int64_t warps = 64;
  std::int64_t registers = 65536;
  std::int64_t shared = 96 * 1024;
};

struct SchedulerSpec {
  std::int64_t clock = 1'312'000'000;
  std::int64_t kernel_latency = 2000;  // from a kernel at the head of its queue to its first CTA
  std::int64_t end_latency = 200;      // from the last CTA's end to the kernel's
  std::int64_t cta_interval = 1;
  SmRoom room{};
};

struct SchedulerStatistics {
  Counter kernels, ctas;
};

class Scheduler final : public Component {
 public:
  using Spec = SchedulerSpec;

  explicit Scheduler(const Spec& spec);
  std::vector<Wait> waits() const override;

  void attach(std::shared_ptr<LaunchTable> launches) { launches_ = std::move(launches); }
  // Launches may have been added to the table: they begin as soon as their streams are free.
  void resume() override;
  // CTAs of a launch that fit on an SM at the same time.
  std::int64_t fitting(const TimedLaunch& launch) const;

 private:
  struct Running {
    std::uint32_t launch;
    std::uint64_t next_cta = 0;
    std::uint64_t unfinished = 0;
    Cycle first = 0;  // the cycle from which its CTAs may start
  };

  Cycle tick(Cycle now);
  void cta_ended(const CtaEnd& end, std::uint32_t sm);
  void begin_kernels();
  bool fits(const SmRoom& taken, const TimedLaunch& launch) const;
  static void take(SmRoom& taken, const TimedLaunch& launch, std::int64_t times);

  const Spec spec_;
  SchedulerStatistics statistics_;
  Clock clock_;
  SchedulerPort sms_{*this, "sms", "the SMs, one link each", Links::many};
  std::shared_ptr<LaunchTable> launches_;
  std::vector<SmRoom> taken_;  // by SM
  std::vector<Running> running_;
  std::uint32_t next_launch_ = 0;  // the first that has not begun
  std::uint32_t next_sm_ = 0;
};

}  // namespace manyscale::gpu

namespace manyscale {

template <>
struct describe<gpu::SmRoom> {
  using S = gpu::SmRoom;
  static constexpr auto fields = std::tuple{
      Field<S, std::int64_t>{"ctas", &S::ctas, Unit::count, "CTAs of an SM", 1, 1024},
      Field<S, std::int64_t>{"threads", &S::threads, Unit::count, "threads of an SM", 32, 65536},
      Field<S, std::int64_t>{"warps", &S::warps, Unit::count, "warps of an SM", 1, 2048},
      Field<S, std::int64_t>{"registers", &S::registers, Unit::count, "32-bit registers of an SM", 1, 1e9},
      Field<S, std::int64_t>{"shared", &S::shared, Unit::bytes, "shared memory of an SM", 0, 1e9}};
};

template <>
struct describe<gpu::SchedulerSpec> {
  using S = gpu::SchedulerSpec;
  static constexpr auto fields = std::tuple{
      Field<S, std::int64_t>{"clock", &S::clock, Unit::frequency, "clock of the scheduler", 1, 1e12},
      Field<S, std::int64_t>{"kernel_latency", &S::kernel_latency, Unit::cycles,
                             "from a kernel at the head of its queue to its first CTA", 0, 1e9},
      Field<S, std::int64_t>{"end_latency", &S::end_latency, Unit::cycles,
                             "from the end of the last CTA to that of the kernel", 0, 1e9},
      Field<S, std::int64_t>{"cta_interval", &S::cta_interval, Unit::cycles,
                             "between two CTAs that are started", 1, 1e6},
      Section<S, gpu::SmRoom>{"room", &S::room, "what an SM has room for"}};
};

template <>
struct describe<gpu::SchedulerStatistics> {
  using S = gpu::SchedulerStatistics;
  static constexpr auto fields =
      std::tuple{Statistic<S, Counter>{"kernels", &S::kernels, "1", "kernels completed"},
                 Statistic<S, Counter>{"ctas", &S::ctas, "1", "CTAs started"}};
};

}  // namespace manyscale
