// SPDX-License-Identifier: Apache-2.0
// Launches on a simulated GPU: what its scheduler and SMs share with the functional device.
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <optional>

#include "gpu/exec/device.hpp"
#include "gpu/lower/lower.hpp"
#include "gpu/sched/scheduler.hpp"
#include "gpu/sm/kernel_profile.hpp"
#include "gpu_kernel.hpp"
#include "module.hpp"

using namespace manyscale;
using namespace manyscale::gpu;

namespace {

// A column for each thing that `values` knows of a row.
template <class Row>
void add_column(nb::dict& columns, const char* name, const std::vector<Row>& rows, auto value) {
  nb::list values;
  for (const Row& row : rows) values.append(value(row));
  columns[name] = values;
}

// What is known of a program's operations before they run, as columns.
nb::dict line_columns(const std::vector<OperationLine>& lines) {
  nb::dict columns;
  using Line = const OperationLine&;
  add_column(columns, "function", lines, [](Line line) { return line.function; });
  add_column(columns, "text", lines, [](Line line) { return line.text; });
  add_column(columns, "file", lines, [](Line line) { return line.file; });
  add_column(columns, "source_line", lines, [](Line line) { return line.source_line; });
  add_column(columns, "ptx_line", lines, [](Line line) { return line.ptx_line; });
  add_column(columns, "flops", lines, [](Line line) { return line.flops; });
  add_column(columns, "flop_bits", lines, [](Line line) { return line.flop_bits; });
  return columns;
}

// The profile of a kernel as Python takes it: sums by name, and columns with a row for each operation if
// their lines are given.
nb::dict profile_columns(const KernelProfile& profile, const std::optional<nb::dict>& lines) {
  nb::dict statistics;
  for_each_field<SmStatistics>([&](const auto& field) {
    statistics[nb::str(field.name.data(), field.name.size())] = (profile.statistics.*(field.member)).value();
  });
  nb::dict out;
  out["sms"] = profile.sms;
  out["statistics"] = statistics;
  if (!lines) return out;
  nb::dict columns;
  columns.update(*lines);
  auto column = [&](const char* name, std::int64_t OperationProfile::* member) {
    add_column(columns, name, profile.operations,
               [member](const OperationProfile& operation) { return operation.*member; });
  };
  column("issued", &OperationProfile::issued);
  column("threads", &OperationProfile::threads);
  column("executed", &OperationProfile::executed);
  column("stall_memory", &OperationProfile::stall_memory);
  column("stall_shared", &OperationProfile::stall_shared);
  column("stall_execution", &OperationProfile::stall_execution);
  column("stall_other", &OperationProfile::stall_other);
  column("stall_fault", &OperationProfile::stall_fault);
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
    const Lowered& lowered = machine_code(program);
    timed->machine = lowered.machine;
    timed->code_address = lowered.address;
    timed->stream = stream;
    timed->priority = priority;
    if (scheduler_->fitting(*timed) == 0)
      throw BadLaunch("a block needs more registers, threads or shared memory than an SM has");
    table_->launches.push_back(std::move(timed));
    return table_->launches.size() - 1;
  }

  // Of a kernel with blocks of so many threads: the CTAs that fit on an SM, and the registers of a thread.
  std::pair<std::int64_t, std::uint32_t> occupancy(const KernelHandle& kernel, std::uint32_t threads,
                                                   std::uint64_t shared) {
    TimedLaunch timed;
    timed.launch.program = &kernel.module->program(kernel.kernel, true);
    timed.launch.block = {threads, 1, 1};
    timed.launch.dynamic_shared_bytes = shared;
    timed.machine = machine_code(*timed.launch.program).machine;
    return {scheduler_->fitting(timed), timed.machine->registers};
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
    out["code_instructions"] = instructions;
    return out;
  }

  // What the SMs have counted for a launch that has ended; it can be taken once.
  nb::dict take_profile(std::uint32_t index, bool operations) {
    const TimedLaunch& launch = *table_->launches.at(index);
    Lowered& lowered = lowered_.at(launch.launch.program);
    if (!operations) return profile_columns(gpu::take_profile(sms_, launch, index), std::nullopt);
    if (!lowered.lines) lowered.lines = line_columns(operation_lines(*launch.launch.program));
    return profile_columns(gpu::take_profile(sms_, launch, index), lowered.lines);
  }

  // What kernels printed and warned of since the last call, by launch and in the order of time.
  nb::dict take_said() {
    std::vector<Sm::Said> all;
    for (Sm* sm : sms_)
      for (Sm::Said& said : sm->take_said()) all.push_back(std::move(said));
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.when < b.when; });
    struct Words {
      std::string printed;
      std::vector<std::string> warnings;
    };
    std::map<std::uint32_t, Words> by_launch;
    for (Sm::Said& said : all) {
      auto& [printed, warnings] = by_launch[said.launch];
      printed += said.printed;
      for (std::string& warning : said.warnings)
        if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end())
          warnings.push_back(std::move(warning));
    }
    nb::dict out;
    for (const auto& [launch, words] : by_launch)
      out[nb::int_(launch)] =
          nb::make_tuple(nb::bytes(words.printed.data(), words.printed.size()), words.warnings);
    return out;
  }

  // Forgets a launch that has ended; its number is not used again.
  void release(std::size_t index) { table_->launches.at(index).reset(); }

 private:
  struct Lowered {
    std::shared_ptr<const MachineProgram> machine;
    std::uint64_t address = 0;
    std::optional<nb::dict> lines;  // made when somebody looks
  };

  const Lowered& machine_code(const Program& program) {
    Lowered& lowered = lowered_[&program];
    if (!lowered.machine) {
      lowered.machine = std::make_shared<MachineProgram>(lower(program));
      lowered.address = next_address_;
      for (const MachineFunction& function : lowered.machine->functions)
        next_address_ += (function.instructions.size() * 16 + 255) / 256 * 256;
    }
    return lowered;
  }

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
             std::uint64_t maximum_instructions, std::uint32_t stream, std::int32_t priority,
             std::uint64_t workspace) {
            const std::span bytes(static_cast<const std::byte*>(parameters.data()), parameters.size());
            return self.add(device, kernel,
                            {grid, block, shared, bytes, 1, check, maximum_instructions, true, workspace},
                            stream, priority);
          },
          nb::keep_alive<1, 2>(), nb::arg("device"), nb::arg("kernel"), nb::arg("grid"), nb::arg("block"),
          nb::arg("shared"), nb::arg("parameters"), nb::arg("check"), nb::arg("maximum_instructions"),
          nb::arg("stream"), nb::arg("priority"), nb::arg("workspace") = 0)
      .def("result", &GpuLaunches::result)
      .def("occupancy", &GpuLaunches::occupancy, nb::arg("kernel"), nb::arg("threads"), nb::arg("shared"))
      .def("take_profile", &GpuLaunches::take_profile, nb::arg("launch"), nb::arg("operations") = true)
      .def("take_said", &GpuLaunches::take_said)
      .def("release", &GpuLaunches::release);
}
