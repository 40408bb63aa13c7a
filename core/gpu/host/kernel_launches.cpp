// SPDX-License-Identifier: Apache-2.0
#include "gpu/host/kernel_launches.hpp"

#include <algorithm>
#include <stdexcept>

#include "gpu/lower/lower.hpp"

namespace manyscale::gpu {

namespace {

// Of all functions of a program, each from a multiple of 256 on.
std::uint64_t code_bytes(const SassProgram& program) {
  std::uint64_t bytes = 0;
  for (const SassFunction& function : program.functions)
    bytes += (function.instructions.size() * 16 + 255) / 256 * 256;
  return bytes;
}

}  // namespace

KernelLaunches::KernelLaunches(Scheduler& scheduler, const std::vector<Component*>& sms)
    : scheduler_(&scheduler) {
  scheduler.attach(table_);
  for (Component* component : sms) {
    auto* sm = dynamic_cast<Sm*>(component);
    if (sm == nullptr) throw std::invalid_argument(component->name() + " is not an SM");
    sm->attach(table_);
    sms_.push_back(sm);
  }
}

std::size_t KernelLaunches::add(Device& device, LoadedModule& module, std::uint32_t kernel,
                                const LaunchRequest& request, std::uint32_t stream, std::int32_t priority) {
  auto timed = std::make_unique<TimedLaunch>();
  timed->launch = device.prepare(module, kernel, request);
  timed->number_operations();
  const Lowered& code = lowered(*timed->launch.program);
  timed->machine = code.machine;
  timed->code_address = code.address;
  timed->stream = stream;
  timed->priority = priority;
  timed->records_states = records_states_;
  if (scheduler_->fitting(*timed) == 0)
    throw BadLaunch(LaunchProblem::resources,
                    "a block needs more registers, threads or shared memory than an SM has");
  table_->launches.push_back(std::move(timed));
  return table_->launches.size() - 1;
}

std::pair<std::int64_t, std::uint32_t> KernelLaunches::occupancy(LoadedModule& module, std::uint32_t kernel,
                                                                 std::uint32_t threads,
                                                                 std::uint64_t shared) {
  TimedLaunch timed;
  timed.launch.program = &module.program(kernel, true);
  timed.launch.block = {threads, 1, 1};
  timed.launch.dynamic_shared_bytes = shared;
  timed.machine = lowered(*timed.launch.program).machine;
  return {scheduler_->fitting(timed), timed.machine->registers};
}

void KernelLaunches::warm_instructions(std::size_t index) {
  const TimedLaunch& launch = *table_->launches.at(index);
  const std::uint64_t bytes = code_bytes(*launch.machine);
  for (Sm* sm : sms_) sm->warm_instructions(launch.code_address, bytes);
}

void KernelLaunches::empty_tlbs() {
  for (Sm* sm : sms_) sm->empty_tlbs();
}

LaunchOutcome KernelLaunches::outcome(std::size_t index) const {
  const TimedLaunch& launch = *table_->launches.at(index);
  std::size_t instructions = 0;
  for (const SassFunction& function : launch.machine->functions) instructions += function.instructions.size();
  return {launch.begun,
          launch.prepared,
          launch.first_cta,
          launch.ended,
          launch.machine->registers,
          static_cast<std::int64_t>(scheduler_->fitting(launch)),
          launch.warps(),
          instructions};
}

KernelProfile KernelLaunches::take_profile(std::uint32_t index) {
  return gpu::take_profile(sms_, *table_->launches.at(index), index);
}

std::map<std::uint32_t, LaunchOutput> KernelLaunches::take_output() {
  std::vector<Sm::PrintfBuffer> buffers;
  for (Sm* sm : sms_)
    for (auto& buffer : sm->take_printf_buffers()) buffers.push_back(std::move(buffer));
  std::ranges::stable_sort(buffers, {}, [](const auto& buffer) { return buffer.when; });
  std::map<std::uint32_t, LaunchOutput> by_launch;
  for (auto& buffer : buffers) {
    auto& [printed, warnings] = by_launch[buffer.launch];
    printed += buffer.printed;
    for (std::string& warning : buffer.warnings)
      if (std::ranges::find(warnings, warning) == warnings.end()) warnings.push_back(std::move(warning));
  }
  return by_launch;
}

const KernelLaunches::Lowered& KernelLaunches::lowered(const Program& program) {
  Lowered& code = lowered_[&program];
  if (!code.machine) {
    code.machine = std::make_shared<SassProgram>(lower(program));
    code.address = next_address_;
    next_address_ += code_bytes(*code.machine);
  }
  return code;
}

}  // namespace manyscale::gpu
