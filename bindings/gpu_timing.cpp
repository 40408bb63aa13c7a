// SPDX-License-Identifier: Apache-2.0
// The launches of a simulated GPU, see core/gpu/host.
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <optional>

#include "gpu/host/kernel_launches.hpp"
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

// Cycles of warps by state, a number for each interval.
nb::dict state_columns(const WarpStates& states) {
  nb::dict columns;
  for (std::size_t state = 0; state < kWarpStates; ++state)
    add_column(columns, kWarpStateNames[state].data(), states.rows(),
               [state](const WarpStates::Row& row) { return row[state]; });
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
  if (!profile.states.rows().empty()) {
    out["state_interval"] = profile.states.interval();
    out["states"] = state_columns(profile.states);
  }
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

// The launches of a GPU, with the lines of programs as columns: made when somebody looks.
struct Launches : KernelLaunches {
  using KernelLaunches::KernelLaunches;
  std::map<const Program*, nb::dict> lines;

  nb::dict profile(std::uint32_t index, bool operations) {
    if (!operations) return profile_columns(take_profile(index), std::nullopt);
    const Program* of = &program(index);
    auto found = lines.find(of);
    if (found == lines.end()) found = lines.emplace(of, line_columns(operation_lines(*of))).first;
    return profile_columns(take_profile(index), found->second);
  }
};

nb::dict outcome_by_name(const LaunchOutcome& outcome) {
  nb::dict out;
  out["begun"] = outcome.begun;
  out["prepared"] = outcome.prepared;
  out["first_cta"] = outcome.first_cta;
  out["ended"] = outcome.ended;
  out["registers"] = outcome.registers;
  out["ctas_per_sm"] = outcome.ctas_per_sm;
  out["warps_per_cta"] = outcome.warps_per_cta;
  out["code_instructions"] = outcome.code_instructions;
  return out;
}

// Bytes printed and warnings, by launch.
nb::dict output_by_launch(std::map<std::uint32_t, LaunchOutput> output) {
  nb::dict out;
  for (const auto& [launch, words] : output)
    out[nb::int_(launch)] =
        nb::make_tuple(nb::bytes(words.printed.data(), words.printed.size()), words.warnings);
  return out;
}

}  // namespace

void bind_gpu_timing(nb::module_& module) {
  nb::class_<Launches>(module, "GpuLaunches")
      .def(
          "__init__",
          [](Launches* self, Component& scheduler, const std::vector<Component*>& sms) {
            auto* found = dynamic_cast<Scheduler*>(&scheduler);
            if (found == nullptr) throw std::invalid_argument(scheduler.name() + " is not a GPU's scheduler");
            new (self) Launches(*found, sms);
          },
          nb::keep_alive<1, 2>())
      .def(
          "add",
          [](Launches& self, Device& device, const KernelHandle& kernel, std::array<std::uint32_t, 3> grid,
             std::array<std::uint32_t, 3> block, std::uint64_t shared, nb::bytes parameters, bool check,
             std::uint64_t maximum_instructions, std::uint32_t stream, std::int32_t priority,
             std::uint64_t workspace) {
            const std::span bytes(static_cast<const std::byte*>(parameters.data()), parameters.size());
            return self.add(device, *kernel.module, kernel.kernel,
                            {grid, block, shared, bytes, 1, check, maximum_instructions, true, workspace},
                            stream, priority);
          },
          nb::keep_alive<1, 2>(), nb::arg("device"), nb::arg("kernel"), nb::arg("grid"), nb::arg("block"),
          nb::arg("shared"), nb::arg("parameters"), nb::arg("check"), nb::arg("maximum_instructions"),
          nb::arg("stream"), nb::arg("priority"), nb::arg("workspace") = 0)
      .def("result",
           [](const Launches& self, std::size_t launch) { return outcome_by_name(self.outcome(launch)); })
      .def(
          "occupancy",
          [](Launches& self, const KernelHandle& kernel, std::uint32_t threads, std::uint64_t shared) {
            return self.occupancy(*kernel.module, kernel.kernel, threads, shared);
          },
          nb::arg("kernel"), nb::arg("threads"), nb::arg("shared"))
      .def("order_matters",
           [](const Launches& self, std::size_t launch) { return self.order_matters(launch); })
      .def(
          "empty_tlbs", [](Launches& self) { self.empty_tlbs(); }, "Makes the TLBs cold, between runs.")
      .def(
          "warm_instructions", [](Launches& self, std::size_t launch) { self.warm_instructions(launch); },
          nb::arg("launch"),
          "Fills the instruction caches of all SMs with the code of a launch, between runs.")
      .def("record_states", &Launches::record_states, nb::arg("recorded"),
           "Whether SMs record the states of warps over time, of launches that are added from now on.")
      .def("take_profile", &Launches::profile, nb::arg("launch"), nb::arg("operations") = true)
      .def("take_output", [](Launches& self) { return output_by_launch(self.take_output()); })
      .def("release", [](Launches& self, std::size_t launch) { self.release(launch); });
}
