// SPDX-License-Identifier: Apache-2.0
// The host's command queue of a simulated GPU: kernels, copies, events and moves of managed memory in
// streams. Leaves out what a driver does before a command is on its way: that is a delay which whoever
// submits it states.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/component.hpp"
#include "gpu/exec/device.hpp"
#include "gpu/sched/command.hpp"
#include "gpu/sched/scheduler.hpp"
#include "gpu/sched/touched_memory.hpp"
#include "memory/origins/origins.hpp"

namespace manyscale::gpu {

// Where and how urgently a command runs, and how long it is on its way to the GPU.
struct SubmitOptions {
  std::uint32_t stream = 0;
  std::int32_t priority = 0;
  Time delay = 0;
};

// A command that has ended: begin, end, what came to the host, and what it did to L2 and memory.
struct EndedCommand {
  CommandId command = 0;
  Time begun = 0;
  Time ended = 0;
  std::vector<std::byte> data;
  memory::Traffic traffic;
};

// Between runs only: a run changes what is here.
class CommandQueue {
 public:
  // `engines` are copy engines, `memory` the components that count traffic.
  CommandQueue(Scheduler& scheduler, const std::vector<Component*>& engines,
               const std::vector<Component*>& memory);

  CommandId enqueue_kernel(std::uint32_t launch, Device& device, LoadedModule& module,
                           std::span<const std::byte> parameters, const SubmitOptions& options);
  // Throws std::invalid_argument where the copy has another size than its data.
  CommandId enqueue_copy(Copy copy, const SubmitOptions& options);
  CommandId enqueue_record(const SubmitOptions& options);
  CommandId enqueue_wait(CommandId event, const SubmitOptions& options);
  // Something with managed memory: all pages that have one of the bytes.
  CommandId enqueue_range(RangeCommandKind kind, std::uint64_t address, std::uint64_t bytes,
                          const SubmitOptions& options);

  // Makes the L2 cold, as a profiler does before a launch: without time, and without writes to memory.
  void empty_l2();

  // The next run ends when this command has; 0: when all have.
  void stop_after(CommandId id) { scheduler_->stop_after(id); }
  // CTAs that have ended since the beginning; may be read while the simulation runs.
  std::int64_t ended_ctas() const { return scheduler_->ended_ctas(); }
  // Whether streams may use the same memory in an order that shows.
  bool may_race() const { return touched_.shared_between_streams(); }
  // The commands that have ended since the last call, in the order of their ends. They are forgotten.
  std::vector<EndedCommand> take_ended();

  // So many numbers of commands that cause traffic are in use or wait to be used again.
  memory::Origin origins() const { return origins_.size(); }
  // What L2 and memory did on nobody's behalf, or for commands that had ended.
  memory::Traffic other_traffic() const { return origins_.other(); }

 private:
  CommandId enqueue(Command command, const SubmitOptions& options);

  std::shared_ptr<CommandTable> table_ = std::make_shared<CommandTable>();
  Scheduler* scheduler_;
  TouchedMemory touched_;
  memory::Origins origins_;
  std::vector<memory::SharedCache*> l2_;
  CommandId next_ = 1;
};

}  // namespace manyscale::gpu
