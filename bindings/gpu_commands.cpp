// SPDX-License-Identifier: Apache-2.0
// The host's command queue of a simulated GPU, see core/gpu/host.
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "gpu/host/command_queue.hpp"
#include "gpu_kernel.hpp"
#include "module.hpp"

using namespace manyscale;
using namespace manyscale::gpu;

namespace {

std::span<const std::byte> span_of(const nb::bytes& bytes) {
  return {static_cast<const std::byte*>(bytes.data()), bytes.size()};
}

// The rows of a copy as Python gives them: width, rows, slices, then pitch and slice pitch at the address and
// at the other side.
using CopyRows = std::array<std::uint64_t, 7>;

CopyShape shape_of(const CopyRows& rows) {
  if (rows[0] == 0) return {};
  return {rows[0], rows[1], rows[2], {rows[3], rows[5]}, {rows[4], rows[6]}};
}

// Counters by their names.
template <class Counts>
nb::dict counts_by_name(const Counts& counts) {
  nb::dict out;
  for_each_field<Counts>([&](const auto& field) {
    out[nb::str(field.name.data(), field.name.size())] = (counts.*(field.member)).value();
  });
  return out;
}

void bind_traffic_counts(nb::module_& module) {
  nb::class_<memory::Traffic>(module, "GpuTraffic")
      .def_prop_ro("l2", [](const memory::Traffic& traffic) { return counts_by_name(traffic.cache); })
      .def_prop_ro("crossbar",
                   [](const memory::Traffic& traffic) { return counts_by_name(traffic.crossbar); })
      .def_prop_ro("dram", [](const memory::Traffic& traffic) { return counts_by_name(traffic.dram); })
      .def_prop_ro(
          "l2_bytes",
          [](const memory::Traffic& traffic) {
            return traffic.crossbar.bytes.value() - memory::header_bytes * traffic.crossbar.messages.value();
          },
          "Data that passed the crossbar, without headers.")
      .def_prop_ro(
          "dram_bytes",
          [](const memory::Traffic& traffic) {
            return traffic.dram.read_bytes.value() + traffic.dram.write_bytes.value();
          },
          "Data read from memory and written to it.");
}

}  // namespace

void bind_gpu_commands(nb::module_& module) {
  nb::class_<SubmitOptions>(module, "GpuSubmitOptions")
      .def(
          "__init__",
          [](SubmitOptions* self, std::uint32_t stream, std::int32_t priority, Time delay) {
            new (self) SubmitOptions{stream, priority, delay};
          },
          nb::arg("stream"), nb::arg("priority"), nb::arg("delay"));
  nb::enum_<CopyKind>(module, "GpuCopyKind")
      .value("to_device", CopyKind::to_device)
      .value("to_host", CopyKind::to_host)
      .value("within", CopyKind::within)
      .value("fill", CopyKind::fill);
  nb::enum_<RangeCommandKind>(module, "GpuRangeKind")
      .value("prefetch_to_device", RangeCommandKind::prefetch_to_device)
      .value("prefetch_to_host", RangeCommandKind::prefetch_to_host)
      .value("host_read", RangeCommandKind::host_read)
      .value("host_write", RangeCommandKind::host_write);
  bind_traffic_counts(module);
  nb::class_<EndedCommand>(module, "GpuEndedCommand")
      .def_ro("command", &EndedCommand::command)
      .def_ro("begun", &EndedCommand::begun)
      .def_ro("ended", &EndedCommand::ended)
      .def_prop_ro("data",
                   [](const EndedCommand& self) { return nb::bytes(self.data.data(), self.data.size()); })
      .def_ro("traffic", &EndedCommand::traffic);
  nb::class_<CommandQueue>(module, "GpuCommandQueue")
      .def(
          "__init__",
          [](CommandQueue* self, Component& scheduler, const std::vector<Component*>& engines,
             const std::vector<Component*>& memory) {
            auto* found = dynamic_cast<Scheduler*>(&scheduler);
            if (found == nullptr) throw std::invalid_argument(scheduler.name() + " is not a GPU's scheduler");
            new (self) CommandQueue(*found, engines, memory);
          },
          nb::keep_alive<1, 2>(), nb::arg("scheduler"), nb::arg("engines"), nb::arg("memory"))
      .def(
          "enqueue_kernel",
          [](CommandQueue& self, std::uint32_t launch, Device& device, const KernelHandle& kernel,
             const nb::bytes& parameters, const SubmitOptions& options) {
            return self.enqueue_kernel(launch, device, *kernel.module, span_of(parameters), options);
          },
          nb::keep_alive<1, 3>(), nb::arg("launch"), nb::arg("device"), nb::arg("kernel"),
          nb::arg("parameters"), nb::arg("options"))
      .def(
          "enqueue_copy",
          [](CommandQueue& self, Device& device, CopyKind kind, std::uint64_t address, std::uint64_t source,
             std::uint64_t bytes, const nb::bytes& host, const SubmitOptions& options, std::uint64_t pinned,
             const CopyRows& rows) {
            const auto data = span_of(host);
            return self.enqueue_copy({kind,
                                      &device.memory,
                                      address,
                                      source,
                                      bytes,
                                      pinned,
                                      shape_of(rows),
                                      {data.begin(), data.end()}},
                                     options);
          },
          nb::keep_alive<1, 2>(), nb::arg("device"), nb::arg("kind"), nb::arg("address"), nb::arg("source"),
          nb::arg("bytes"), nb::arg("host"), nb::arg("options"), nb::arg("pinned") = 0,
          nb::arg("rows") = CopyRows{})
      .def_prop_ro("ended_ctas", &CommandQueue::ended_ctas)
      .def("enqueue_record", &CommandQueue::enqueue_record, nb::arg("options"))
      .def("enqueue_wait", &CommandQueue::enqueue_wait, nb::arg("event"), nb::arg("options"))
      .def("enqueue_range", &CommandQueue::enqueue_range, nb::arg("kind"), nb::arg("address"),
           nb::arg("bytes"), nb::arg("options"))
      .def("empty_l2", &CommandQueue::empty_l2, "Makes the L2 cold, between runs.")
      .def("stop_after", &CommandQueue::stop_after, nb::arg("command"))
      .def("may_race", &CommandQueue::may_race)
      .def("take_ended", &CommandQueue::take_ended)
      .def_prop_ro("origins", &CommandQueue::origins,
                   "So many numbers of commands that cause traffic are in use or wait to be used again.")
      .def("other_traffic", &CommandQueue::other_traffic,
           "What L2 and memory did on nobody's behalf, or for commands that had ended.");
}
