// SPDX-License-Identifier: Apache-2.0
// Commands that the host gives to a simulated GPU: kernels, copies, events and moves of managed memory in
// streams.
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "gpu/copy/copy_engine.hpp"
#include "gpu/sched/scheduler.hpp"
#include "gpu/sched/touched_memory.hpp"
#include "gpu/uvm/managed_ranges.hpp"
#include "gpu_kernel.hpp"
#include "memory/origins.hpp"
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

// Where and how urgently a command runs, and how long it is on its way to the GPU.
struct Given {
  std::uint32_t stream;
  std::int32_t priority;
  Time delay;
};

// Counters by their names.
template <class Counts>
nb::dict counts_by_name(const Counts& counts) {
  nb::dict out;
  for_each_field<Counts>([&](const auto& field) {
    out[nb::str(field.name.data(), field.name.size())] = (counts.*(field.member)).value();
  });
  return out;
}

// A command that has ended: begin, end, what came to the host, and what it did to L2 and memory.
struct Ended {
  CommandId command;
  Time begun;
  Time ended;
  nb::bytes data;
  memory::Traffic traffic;
};

// The commands of one simulated GPU. Between runs only: a run changes what is here.
class GpuCommands {
 public:
  GpuCommands(Scheduler& scheduler, const std::vector<Component*>& engines,
              const std::vector<Component*>& memory)
      : scheduler_(&scheduler), origins_(memory) {
    scheduler.attach(table_);
    for (Component* component : engines) {
      auto* engine = dynamic_cast<CopyEngine*>(component);
      if (engine == nullptr) throw std::invalid_argument(component->name() + " is not a copy engine");
      engine->attach(table_);
    }
  }

  CommandId give_kernel(std::uint32_t launch, Device& device, const KernelHandle& kernel,
                        const nb::bytes& parameters, const Given& given) {
    Command command;
    command.kind = Command::Kind::kernel;
    command.launch = launch;
    command.origin = origins_.open();
    const CommandId id = give(std::move(command), given);
    touched_.add_kernel(id, given.stream, device.memory, *kernel.module, span_of(parameters));
    return id;
  }

  CommandId give_copy(Device& device, Copy::Kind kind, std::uint64_t address, std::uint64_t source,
                      std::uint64_t bytes, const nb::bytes& host, const Given& given, std::uint64_t pinned,
                      const CopyRows& rows) {
    Command command;
    command.kind = Command::Kind::copy;
    const auto from_host = span_of(host);
    if ((kind == Copy::Kind::to_device && pinned == 0 && from_host.size() != bytes) ||
        (kind == Copy::Kind::fill && from_host.empty()))
      throw std::invalid_argument("the copy has another size than its data");
    command.copy = {kind,  &device.memory, address,        source,
                    bytes, pinned,         shape_of(rows), {from_host.begin(), from_host.end()}};
    command.origin = origins_.open();
    touched_.add_copy(next_, given.stream, command.copy);
    return give(std::move(command), given);
  }

  CommandId give_record(const Given& given) {
    Command command;
    command.kind = Command::Kind::record;
    return give(std::move(command), given);
  }

  CommandId give_wait(CommandId event, const Given& given) {
    Command command;
    command.kind = Command::Kind::wait;
    command.event = event;
    return give(std::move(command), given);
  }

  // Something with managed memory: all pages that have one of the bytes.
  CommandId give_range(RangeStart::Kind kind, std::uint64_t address, std::uint64_t bytes,
                       const Given& given) {
    Command command;
    command.kind = Command::Kind::range;
    const std::uint64_t first = address / kPageBytes;
    const std::uint64_t pages = bytes == 0 ? 0 : (address + bytes - 1) / kPageBytes - first + 1;
    command.range = {0, first, static_cast<std::uint32_t>(pages), kind};
    return give(std::move(command), given);
  }

  void stop_after(CommandId id) { scheduler_->stop_after(id); }
  bool may_race() const { return touched_.shared_between_streams(); }

  // The commands that have ended since the last call, in the order of their ends. They are forgotten.
  std::vector<Ended> take_ended() {
    std::vector<Ended> rows;
    for (const CommandId id : table_->ended) {
      const auto command = table_->commands.extract(id);
      const Command& of = command.mapped();
      const bool came = of.kind == Command::Kind::copy && of.copy.kind == Copy::Kind::to_host;
      rows.push_back({id, of.begun, of.ended, nb::bytes(of.copy.host.data(), came ? of.copy.host.size() : 0),
                      of.origin == memory::nobody ? memory::Traffic{} : origins_.close(of.origin)});
      touched_.remove(id);
    }
    table_->ended.clear();
    return rows;
  }

  memory::Origin origins() const { return origins_.size(); }
  memory::Traffic other_traffic() const { return origins_.other(); }

 private:
  CommandId give(Command command, const Given& given) {
    command.stream = given.stream;
    command.priority = given.priority;
    table_->commands.emplace(next_, std::move(command));
    scheduler_->give(next_, given.delay);
    return next_++;
  }

  std::shared_ptr<CommandTable> table_ = std::make_shared<CommandTable>();
  Scheduler* scheduler_;
  TouchedMemory touched_;
  memory::Origins origins_;
  CommandId next_ = 1;
};

}  // namespace

void bind_gpu_commands(nb::module_& module) {
  nb::class_<Given>(module, "GpuGiven")
      .def(
          "__init__",
          [](Given* self, std::uint32_t stream, std::int32_t priority, Time delay) {
            new (self) Given{stream, priority, delay};
          },
          nb::arg("stream"), nb::arg("priority"), nb::arg("delay"));
  nb::enum_<Copy::Kind>(module, "GpuCopyKind")
      .value("to_device", Copy::Kind::to_device)
      .value("to_host", Copy::Kind::to_host)
      .value("within", Copy::Kind::within)
      .value("fill", Copy::Kind::fill);
  nb::enum_<RangeStart::Kind>(module, "GpuRangeKind")
      .value("prefetch_to_device", RangeStart::Kind::prefetch_to_device)
      .value("prefetch_to_host", RangeStart::Kind::prefetch_to_host)
      .value("host_read", RangeStart::Kind::host_read)
      .value("host_write", RangeStart::Kind::host_write);
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
  nb::class_<Ended>(module, "GpuEnded")
      .def_ro("command", &Ended::command)
      .def_ro("begun", &Ended::begun)
      .def_ro("ended", &Ended::ended)
      .def_ro("data", &Ended::data)
      .def_ro("traffic", &Ended::traffic);
  nb::class_<GpuCommands>(module, "GpuCommands")
      .def(
          "__init__",
          [](GpuCommands* self, Component& scheduler, const std::vector<Component*>& engines,
             const std::vector<Component*>& memory) {
            auto* found = dynamic_cast<Scheduler*>(&scheduler);
            if (found == nullptr) throw std::invalid_argument(scheduler.name() + " is not a GPU's scheduler");
            new (self) GpuCommands(*found, engines, memory);
          },
          nb::keep_alive<1, 2>(), nb::arg("scheduler"), nb::arg("engines"), nb::arg("memory"))
      .def("kernel", &GpuCommands::give_kernel, nb::keep_alive<1, 3>(), nb::arg("launch"), nb::arg("device"),
           nb::arg("kernel"), nb::arg("parameters"), nb::arg("given"))
      .def("copy", &GpuCommands::give_copy, nb::keep_alive<1, 2>(), nb::arg("device"), nb::arg("kind"),
           nb::arg("address"), nb::arg("source"), nb::arg("bytes"), nb::arg("host"), nb::arg("given"),
           nb::arg("pinned") = 0, nb::arg("rows") = CopyRows{})
      .def("record", &GpuCommands::give_record, nb::arg("given"))
      .def("wait", &GpuCommands::give_wait, nb::arg("event"), nb::arg("given"))
      .def("range", &GpuCommands::give_range, nb::arg("kind"), nb::arg("address"), nb::arg("bytes"),
           nb::arg("given"))
      .def("stop_after", &GpuCommands::stop_after, nb::arg("command"))
      .def("may_race", &GpuCommands::may_race)
      .def("take_ended", &GpuCommands::take_ended)
      .def_prop_ro("origins", &GpuCommands::origins,
                   "So many numbers of commands that cause traffic are in use or wait to be used again.")
      .def("other_traffic", &GpuCommands::other_traffic,
           "What L2 and memory did on nobody's behalf, or for commands that had ended.");
}
