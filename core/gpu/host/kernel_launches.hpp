// SPDX-License-Identifier: Apache-2.0
// The launches of a simulated GPU: prepared and lowered for its SMs, and what came of them. Leaves out when
// they run: that is the command queue's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/component.hpp"
#include "gpu/exec/device.hpp"
#include "gpu/sched/scheduler.hpp"
#include "gpu/sm/kernel_profile.hpp"
#include "gpu/sm/sm.hpp"

namespace manyscale::gpu {

// How a launch went, and what it took of an SM.
struct LaunchOutcome {
  Time begun = 0;
  std::int64_t prepared = 0;  // cycles of its launch that had passed then
  Time first_cta = 0;
  Time ended = 0;
  std::uint32_t registers = 0;  // of a thread
  std::int64_t ctas_per_sm = 0;
  std::uint64_t warps_per_cta = 0;
  std::size_t code_instructions = 0;
};

// What a kernel has printed, and what was noticed about it.
struct LaunchOutput {
  std::string printed;
  std::vector<std::string> warnings;  // each once
};

class KernelLaunches {
 public:
  KernelLaunches(Scheduler& scheduler, const std::vector<Component*>& sms);

  // Throws BadLaunch. The number of the launch is its index.
  std::size_t add(Device& device, LoadedModule& module, std::uint32_t kernel, const LaunchRequest& request,
                  std::uint32_t stream, std::int32_t priority);
  // Of a kernel with blocks of so many threads: the CTAs that fit on an SM, and the registers of a thread.
  std::pair<std::int64_t, std::uint32_t> occupancy(LoadedModule& module, std::uint32_t kernel,
                                                   std::uint32_t threads, std::uint64_t shared);
  // Fills the instruction caches of all SMs with the code of a launch, as a run of it before would have.
  void warm_instructions(std::size_t index);
  // Lets all SMs forget translations of device memory, as what a profiler does between launches does.
  void empty_tlbs();
  LaunchOutcome outcome(std::size_t index) const;
  const Program& program(std::size_t index) const { return *table_->launches.at(index)->launch.program; }
  // Whether its results can depend on the order in which CTAs run.
  bool order_matters(std::size_t index) const { return table_->launches.at(index)->launch.order_matters; }
  // Whether SMs record the states of warps over time, of launches that are added from now on.
  void record_states(bool recorded) { records_states_ = recorded; }
  // What the SMs have counted for a launch that has ended; it can be taken once.
  KernelProfile take_profile(std::uint32_t index);
  // What kernels printed and warned of since the last call, by launch and in the order of time.
  std::map<std::uint32_t, LaunchOutput> take_output();
  // Forgets a launch that has ended; its number is not used again.
  void release(std::size_t index) { table_->launches.at(index).reset(); }

 private:
  struct Lowered {
    std::shared_ptr<const SassProgram> machine;
    std::uint64_t address = 0;
  };

  const Lowered& lowered(const Program& program);

  std::shared_ptr<LaunchTable> table_ = std::make_shared<LaunchTable>();
  Scheduler* scheduler_;
  std::vector<Sm*> sms_;
  std::map<const Program*, Lowered> lowered_;
  std::uint64_t next_address_ = 0;
  bool records_states_ = false;
};

}  // namespace manyscale::gpu
