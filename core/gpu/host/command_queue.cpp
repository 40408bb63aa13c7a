// SPDX-License-Identifier: Apache-2.0
#include "gpu/host/command_queue.hpp"

#include <stdexcept>
#include <utility>

#include "gpu/copy/copy_engine.hpp"
#include "gpu/uvm/managed_ranges.hpp"

namespace manyscale::gpu {

CommandQueue::CommandQueue(Scheduler& scheduler, const std::vector<Component*>& engines,
                           const std::vector<Component*>& memory)
    : scheduler_(&scheduler), origins_(memory) {
  scheduler.attach(table_);
  for (Component* component : engines) {
    auto* engine = dynamic_cast<CopyEngine*>(component);
    if (engine == nullptr) throw std::invalid_argument(component->name() + " is not a copy engine");
    engine->attach(table_);
  }
  for (Component* component : memory)
    if (auto* slice = dynamic_cast<memory::SharedCache*>(component)) l2_.push_back(slice);
}

void CommandQueue::empty_l2() {
  for (memory::SharedCache* slice : l2_) slice->empty();
}

CommandId CommandQueue::enqueue_kernel(std::uint32_t launch, Device& device, LoadedModule& module,
                                       std::span<const std::byte> parameters, const SubmitOptions& options) {
  Command command;
  command.kind = CommandKind::kernel;
  command.launch = launch;
  command.origin = origins_.open();
  const CommandId id = enqueue(std::move(command), options);
  touched_.add_kernel(id, options.stream, device.memory, module, parameters);
  return id;
}

CommandId CommandQueue::enqueue_copy(Copy copy, const SubmitOptions& options) {
  if ((copy.kind == CopyKind::to_device && copy.pinned == 0 && copy.host.size() != copy.bytes) ||
      (copy.kind == CopyKind::fill && copy.host.empty()))
    throw std::invalid_argument("the copy has another size than its data");
  Command command;
  command.kind = CommandKind::copy;
  command.copy = std::move(copy);
  command.origin = origins_.open();
  touched_.add_copy(next_, options.stream, command.copy);
  return enqueue(std::move(command), options);
}

CommandId CommandQueue::enqueue_record(const SubmitOptions& options) {
  Command command;
  command.kind = CommandKind::record;
  return enqueue(std::move(command), options);
}

CommandId CommandQueue::enqueue_wait(CommandId event, const SubmitOptions& options) {
  Command command;
  command.kind = CommandKind::wait;
  command.event = event;
  return enqueue(std::move(command), options);
}

CommandId CommandQueue::enqueue_range(RangeCommandKind kind, std::uint64_t address, std::uint64_t bytes,
                                      const SubmitOptions& options) {
  Command command;
  command.kind = CommandKind::range;
  const std::uint64_t first = address / kPageBytes;
  const std::uint64_t pages = bytes == 0 ? 0 : (address + bytes - 1) / kPageBytes - first + 1;
  command.range = {0, first, static_cast<std::uint32_t>(pages), kind};
  return enqueue(std::move(command), options);
}

std::vector<EndedCommand> CommandQueue::take_ended() {
  std::vector<EndedCommand> rows;
  for (const CommandId id : table_->ended) {
    auto node = table_->commands.extract(id);
    Command& command = node.mapped();
    const bool came = command.kind == CommandKind::copy && command.copy.kind == CopyKind::to_host;
    rows.push_back({id, command.begun, command.ended,
                    came ? std::move(command.copy.host) : std::vector<std::byte>{},
                    command.origin == memory::nobody ? memory::Traffic{} : origins_.close(command.origin)});
    touched_.remove(id);
  }
  table_->ended.clear();
  return rows;
}

CommandId CommandQueue::enqueue(Command command, const SubmitOptions& options) {
  command.stream = options.stream;
  command.priority = options.priority;
  table_->commands.emplace(next_, std::move(command));
  scheduler_->give(next_, options.delay);
  return next_++;
}

}  // namespace manyscale::gpu
