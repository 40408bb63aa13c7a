// SPDX-License-Identifier: Apache-2.0
// Launches on a simulated GPU: what its scheduler and SMs share with the functional device.
#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>

#include "gpu/exec/device.hpp"
#include "gpu/lower/lower.hpp"
#include "gpu/sched/scheduler.hpp"
#include "gpu/sm/kernel_profile.hpp"
#include "gpu_kernel.hpp"
#include "module.hpp"

using namespace manyscale;
using namespace manyscale::gpu;

namespace {

// The profile of a kernel as Python takes it: sums by name, and columns with a row for each operation.
nb::dict profile_columns(const KernelProfile& profile) {
  nb::dict statistics;
  for_each_field<SmStatistics>([&](const auto& field) {
    statistics[nb::str(field.name.data(), field.name.size())] = (profile.statistics.*(field.member)).value();
  });
  nb::dict columns;
  auto column = [&](const char* name, auto value) {
    nb::list values;
    for (const OperationLine& line : profile.operations) values.append(value(line));
    columns[name] = values;
  };
  using Line = const OperationLine&;
  column("function", [](Line line) { return line.function; });
  column("text", [](Line line) { return line.text; });
  column("file", [](Line line) { return line.file; });
  column("source_line", [](Line line) { return line.source_line; });
  column("ptx_line", [](Line line) { return line.ptx_line; });
  column("flops", [](Line line) { return line.flops; });
  column("flop_bits", [](Line line) { return line.flop_bits; });
  column("issued", [](Line line) { return line.profile.issued; });
  column("threads", [](Line line) { return line.profile.threads; });
  column("stall_memory", [](Line line) { return line.profile.stall_memory; });
  column("stall_shared", [](Line line) { return line.profile.stall_shared; });
  column("stall_execution", [](Line line) { return line.profile.stall_execution; });
  column("stall_other", [](Line line) { return line.profile.stall_other; });
  nb::dict out;
  out["sms"] = profile.sms;
  out["statistics"] = statistics;
  out["operations"] = columns;
  return out;
}

// The launches of one simulated GPU.
class GpuLaunches {
 public:
  GpuLaunches(Scheduler& scheduler, const std::vector<Component*>& sms) : scheduler_(&scheduler) {
    scheduler.attach(table_);
    for (Component* component : sms) {
      auto* sm = dynamic_cast<Sm*>(component);
      if (sm == nullptr) throw std::invalid_argument(component->name() + " is not an SM");
      sm->attach(table_);
      sms_.push_back(sm);
    }
  }

  std::size_t add(Device& device, const KernelHandle& kernel, const LaunchRequest& request,
                  std::uint32_t stream, std::int32_t priority) {
    auto timed = std::make_unique<TimedLaunch>();
    timed->launch = device.prepare(*kernel.module, kernel.kernel, request);
    timed->number_operations();
    const Program& program = *timed->launch.program;
    Lowered& lowered = lowered_[&program];
    if (!lowered.machine) {
      lowered.machine = std::make_shared<MachineProgram>(lower(program));
      lowered.address = next_address_;
      for (const MachineFunction& function : lowered.machine->functions)
        next_address_ += (function.instructions.size() * 16 + 255) / 256 * 256;
    }
    timed->machine = lowered.machine;
    timed->code_address = lowered.address;
    timed->stream = stream;
    timed->priority = priority;
    table_->launches.push_back(std::move(timed));
    return table_->launches.size() - 1;
  }

  nb::dict result(std::size_t index) const {
    const TimedLaunch& launch = *table_->launches.at(index);
    nb::dict out;
    out["begun"] = launch.begun;
    out["first_cta"] = launch.first_cta;
    out["ended"] = launch.ended;
    out["registers"] = launch.machine->registers;
    out["ctas_per_sm"] = scheduler_->fitting(launch);
    out["warps_per_cta"] = launch.warps();
    std::size_t instructions = 0;
    for (const MachineFunction& function : launch.machine->functions)
      instructions += function.instructions.size();
    out["machine_instructions"] = instructions;
    return out;
  }

  // What the SMs have counted for a launch that has ended; it can be taken once.
  nb::dict take_profile(std::uint32_t index) {
    return profile_columns(gpu::take_profile(sms_, *table_->launches.at(index), index));
  }

  // What kernels printed and warned of since the last call, in the order of time.
  nb::tuple take_said() {
    std::vector<Sm::Said> all;
    for (Sm* sm : sms_)
      for (Sm::Said& said : sm->take_said()) all.push_back(std::move(said));
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.when < b.when; });
    std::string printed;
    std::vector<std::string> warnings;
    for (Sm::Said& said : all) {
      printed += said.printed;
      for (std::string& warning : said.warnings)
        if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end())
          warnings.push_back(std::move(warning));
    }
    return nb::make_tuple(nb::bytes(printed.data(), printed.size()), warnings);
  }

 private:
  struct Lowered {
    std::shared_ptr<const MachineProgram> machine;
    std::uint64_t address = 0;
  };
  std::shared_ptr<LaunchTable> table_ = std::make_shared<LaunchTable>();
  Scheduler* scheduler_;
  std::vector<Sm*> sms_;
  std::map<const Program*, Lowered> lowered_;
  std::uint64_t next_address_ = 0;
};

}  // namespace

void bind_gpu_timing(nb::module_& module) {
  nb::class_<GpuLaunches>(module, "GpuLaunches")
      .def(
          "__init__",
          [](GpuLaunches* self, Component& scheduler, const std::vector<Component*>& sms) {
            auto* found = dynamic_cast<Scheduler*>(&scheduler);
            if (found == nullptr) throw std::invalid_argument(scheduler.name() + " is not a GPU's scheduler");
            new (self) GpuLaunches(*found, sms);
          },
          nb::keep_alive<1, 2>())
      .def(
          "add",
          [](GpuLaunches& self, Device& device, const KernelHandle& kernel, std::array<std::uint32_t, 3> grid,
             std::array<std::uint32_t, 3> block, std::uint64_t shared, nb::bytes parameters, bool check,
             std::uint32_t stream, std::int32_t priority) {
            const std::span bytes(static_cast<const std::byte*>(parameters.data()), parameters.size());
            return self.add(device, kernel, {grid, block, shared, bytes, 1, check, 0, true}, stream,
                            priority);
          },
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::arg("device"), nb::arg("kernel"),
          nb::arg("grid"), nb::arg("block"), nb::arg("shared"), nb::arg("parameters"), nb::arg("check"),
          nb::arg("stream"), nb::arg("priority"))
      .def("result", &GpuLaunches::result)
      .def("take_profile", &GpuLaunches::take_profile)
      .def("take_said", &GpuLaunches::take_said);
}
