// SPDX-License-Identifier: Apache-2.0
// RISC-V programs: launching them, their results, and what cores measured besides statistics.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <span>
#include <tuple>

#include "cpu/core/core.hpp"
#include "cpu/linux/elf_image.hpp"
#include "cpu/linux/load_program.hpp"
#include "cpu/live/live_source.hpp"
#include "cpu/mpi/mpi_calls.hpp"
#include "cpu/riscv/code_listing.hpp"
#include "cpu_program.hpp"

using namespace manyscale;
using namespace manyscale::cpu;

namespace {

// The part of an address in records that the process itself sees (virtual_memory/address_space.hpp).
constexpr std::uint64_t process_address_mask = (std::uint64_t{1} << 40) - 1;

LaunchSpec launch_spec(const nb::dict& given) {
  LaunchSpec spec;
  const auto elf = nb::cast<nb::bytes>(given["elf"]);
  spec.elf.assign(elf.c_str(), elf.c_str() + elf.size());
  spec.path = nb::cast<std::string>(given["path"]);
  spec.name = nb::cast<std::string>(given["name"]);
  spec.arguments = nb::cast<std::vector<std::string>>(given["arguments"]);
  spec.environment = nb::cast<std::vector<std::string>>(given["environment"]);
  spec.root = nb::cast<std::string>(given["root"]);
  spec.writable = nb::cast<bool>(given["writable"]);
  const auto input = nb::cast<nb::bytes>(given["standard_input"]);
  spec.standard_input.assign(input.c_str(), input.size());
  spec.ranks = nb::cast<std::uint32_t>(given["ranks"]);
  if (given.contains("job_ranks")) {
    spec.job_ranks = nb::cast<std::uint32_t>(given["job_ranks"]);
    spec.first_rank = nb::cast<std::uint32_t>(given["first_rank"]);
  }
  spec.memory_limit = nb::cast<std::uint64_t>(given["memory_limit"]);
  spec.output_limit = nb::cast<std::uint64_t>(given["output_limit"]);
  return spec;
}

std::vector<WatchPoint> watch_points(const nb::dict& given) {
  std::vector<WatchPoint> points;
  for (const auto& [address, name] :
       nb::cast<std::vector<std::pair<std::uint64_t, std::string>>>(given["watch"])) {
    points.push_back({address, construct_named(name)});
  }
  return points;
}

nb::bytes bytes_of(const std::string& text) {
  return nb::bytes(text.data(), text.size());
}

// Exit status, standard output and standard error of each process.
nb::list process_list(const Kernel& kernel) {
  nb::list list;
  for (const auto& process : kernel.processes()) {
    list.append(nb::make_tuple(process->exit_status, bytes_of(process->standard_output),
                               bytes_of(process->standard_error)));
  }
  return list;
}

nb::object failure_dict(const std::optional<Failure>& failure, const Kernel& kernel) {
  if (!failure) return nb::none();
  nb::dict out;
  out["process"] = failure->process;
  out["thread"] = failure->thread;
  out["pc"] = failure->pc;
  out["kind"] = failure->kind;
  out["address"] = failure->address;
  out["what"] = failure->what;
  out["several"] = kernel.threads().size() > 1;
  return out;
}

nb::list cycle_list(const CpiStack& stack) {
  nb::list list;
  for (const std::int64_t cycles : stack.cycles) list.append(cycles);
  return list;
}

// What threads did in regions, as columns; `core` is the index of the core that has the account.
class AccountColumns {
 public:
  void add(std::size_t core, const std::vector<RegionAccount::Row>& rows) {
    for (const auto& row : rows) {
      core_.append(core);
      thread_.append(row.thread);
      region_.append(row.region == RegionAccount::outside ? nb::none() : nb::cast(row.region));
      visits_.append(row.visits);
      time_.append(row.exclusive.time);
      away_.append(row.exclusive.away);
      instructions_.append(row.exclusive.instructions);
      cycles_.append(cycle_list(row.exclusive.stack));
      inclusive_time_.append(row.inclusive.time);
      inclusive_instructions_.append(row.inclusive.instructions);
      shortest_.append(row.shortest == never ? nb::none() : nb::cast(row.shortest));
      longest_.append(row.longest);
    }
  }
  nb::dict columns() const {
    nb::dict out;
    out["core"] = core_;
    out["thread"] = thread_;
    out["region"] = region_;
    out["visits"] = visits_;
    out["time"] = time_;
    out["away"] = away_;
    out["instructions"] = instructions_;
    out["cycles"] = cycles_;
    out["inclusive_time"] = inclusive_time_;
    out["inclusive_instructions"] = inclusive_instructions_;
    out["shortest"] = shortest_;
    out["longest"] = longest_;
    return out;
  }

 private:
  nb::list core_, thread_, region_, visits_, time_, away_, instructions_, cycles_, inclusive_time_,
      inclusive_instructions_, shortest_, longest_;
};

nb::list causes_list() {
  nb::list list;
  for (const auto name : cause_names) list.append(std::string(name));
  return list;
}

std::span<const std::uint8_t> code_of(const nb::bytes& code) {
  return {reinterpret_cast<const std::uint8_t*>(code.c_str()), code.size()};
}

// The instructions of a piece of code: address, bits, text.
nb::list disassembled(const nb::bytes& code, std::uint64_t address) {
  nb::list list;
  for (const auto& each : riscv::list_code(code_of(code), address)) {
    list.append(nb::make_tuple(each.address, each.bits, each.text));
  }
  return list;
}

// Those that are not executed: address, text, why.
nb::list unsupported(const nb::bytes& code, std::uint64_t address) {
  nb::list list;
  for (const auto& each : riscv::find_unsupported(code_of(code), address)) {
    list.append(nb::make_tuple(each.address, each.text, each.reason));
  }
  return list;
}

// What cores measured in a run besides statistics.
nb::dict core_details(const std::vector<Component*>& cores) {
  AccountColumns accounts;
  nb::list pcs, instructions, misses, stacks;
  for (std::size_t i = 0; i < cores.size(); ++i) {
    auto& core = model<Core>(*cores[i], "cpu.core");
    accounts.add(i, core.regions().rows());
    for (const auto& line : core.hot_lines()) {
      pcs.append(line.pc);
      instructions.append(line.instructions);
      misses.append(line.misses);
      stacks.append(cycle_list(line.stack));
    }
  }
  nb::dict hot;
  hot["pc"] = pcs;
  hot["instructions"] = instructions;
  hot["misses"] = misses;
  hot["cycles"] = stacks;
  nb::dict out;
  out["causes"] = causes_list();
  out["accounts"] = accounts.columns();
  out["hot"] = hot;
  return out;
}

// The same, with the regions and tasks of the program.
nb::dict details(Component& program, const std::vector<Component*>& cores) {
  const auto& source = model<LiveSource>(program, "cpu.program");
  nb::dict out = core_details(cores);
  out["regions"] = region_list(source.regions());
  out["tasks"] = task_list(source.tasks());
  return out;
}

// The beginnings and ends of regions that a core kept, as columns; `dropped` of them were too many.
nb::dict region_log(Component& component) {
  const RegionAccount& account = model<Core>(component, "cpu.core").regions();
  nb::list time, thread, region, enters;
  for (const RegionAccount::LogEntry& entry : account.log()) {
    if (!entry.is_boundary()) continue;
    time.append(entry.time);
    thread.append(entry.thread);
    region.append(entry.subject);
    enters.append(entry.action == MarkerAction::enter);
  }
  nb::dict out;
  out["time"] = time;
  out["thread"] = thread;
  out["region"] = region;
  out["enters"] = enters;
  out["dropped"] = account.log_dropped();
  return out;
}

// The pipeline log of one core; `label` gives the text of the instruction at an address. Empty if none is in
// it.
std::string konata(Component& component, const nb::callable& label) {
  const KonataLog& log = model<Core>(component, "cpu.core").konata();
  if (log.rows().empty()) return {};
  return log.text([&](std::uint64_t pc) { return nb::cast<std::string>(label(pc & process_address_mask)); });
}

}  // namespace

nb::list region_list(const RegionTable& regions) {
  nb::list list;
  for (std::uint32_t i = 0; i < regions.size(); ++i) {
    nb::dict entry;
    entry["kind"] = std::string(region_kind_name(regions[i].kind));
    entry["name"] = regions[i].name;
    entry["pc"] = regions[i].pc;
    entry["object"] = regions[i].object;
    list.append(entry);
  }
  return list;
}

nb::list task_list(const TaskTable& tasks) {
  static constexpr const char* types[] = {"in", "out", "mutexinoutset", "inoutset"};
  nb::list list;
  for (const Task& task : tasks.tasks()) {
    nb::list dependences;
    for (std::uint32_t i = 0; i < task.dependence_count; ++i) {
      const TaskDependence& one = tasks.dependences()[task.first_dependence + i];
      dependences.append(nb::make_tuple(one.address, types[static_cast<std::size_t>(one.type)]));
    }
    list.append(nb::make_tuple(task.region, task.creator,
                               task.parent == 0 ? nb::none() : nb::cast(task.parent - 1), dependences));
  }
  return list;
}

FunctionalProgram::FunctionalProgram(const nb::dict& launch, std::uint32_t cores, std::uint64_t seed)
    : run_(launch_spec(launch), cores, seed, watch_points(launch)) {}

const char* FunctionalProgram::run(std::uint64_t limit, const nb::object& progress) {
  std::exception_ptr raised;
  bool interrupted = false;
  const auto poll = [&](std::uint64_t instructions) {
    const nb::gil_scoped_acquire held;
    try {
      if (PyErr_CheckSignals() != 0) nb::raise_python_error();
      if (!progress.is_none()) progress(0, instructions);
    } catch (nb::python_error& error) {
      interrupted = true;
      if (!error.matches(PyExc_KeyboardInterrupt)) raised = std::current_exception();
      return false;
    }
    return limit == 0 || instructions < limit;
  };
  bool finished = false;
  {
    const nb::gil_scoped_release released;
    finished = run_.run(poll);
  }
  if (raised) std::rethrow_exception(raised);
  return interrupted ? "interrupted" : finished ? "finished" : "limit";
}

nb::list FunctionalProgram::work() const {
  nb::list rows;
  for (const WorkCounts::Summary& counted : work_.summaries()) {
    nb::dict row;
    row["instructions"] = counted.instructions;
    row["branches"] = counted.branches;
    row["loads"] = counted.loads;
    row["stores"] = counted.stores;
    rows.append(row);
  }
  return rows;
}

nb::list FunctionalProgram::processes() const {
  return process_list(run_.kernel());
}

nb::object FunctionalProgram::failure() const {
  return failure_dict(run_.failure(), run_.kernel());
}

nb::dict FunctionalProgram::details() {
  AccountColumns accounts;
  accounts.add(0, run_.region_rows());
  nb::dict out;
  out["causes"] = causes_list();
  out["regions"] = region_list(run_.regions());
  out["tasks"] = task_list(run_.tasks());
  out["accounts"] = accounts.columns();
  return out;
}

void bind_cpu(nb::module_& module) {
  nb::exception<ElfError>(module, "BadProgram", PyExc_ValueError);

  module.attr("cpu_position_independent_base") = Layout::position_independent_base;
  module.def("cpu_check_elf", [](const nb::bytes& elf, const std::string& name) {
    parse_elf({reinterpret_cast<const std::uint8_t*>(elf.c_str()), elf.size()}, name);
  });
  module.def("riscv_disassemble", &disassembled, nb::arg("code"), nb::arg("address"));
  module.def("riscv_unsupported", &unsupported, nb::arg("code"), nb::arg("address"));

  module.def("cpu_launch", [](Component& program, const nb::dict& launch) {
    model<LiveSource>(program, "cpu.program").launch(launch_spec(launch), watch_points(launch));
  });
  module.def("cpu_processes", [](Component& program) {
    return process_list(model<LiveSource>(program, "cpu.program").kernel());
  });
  module.def("cpu_failure", [](Component& program) {
    const auto& source = model<LiveSource>(program, "cpu.program");
    return failure_dict(source.failure(), source.kernel());
  });
  module.def(
      "cpu_pause_at",
      [](Component& program, std::string region, std::uint64_t function) {
        model<LiveSource>(program, "cpu.program").pause_at(std::move(region), function);
      },
      nb::arg("program"), nb::arg("region"), nb::arg("function"));
  module.def(
      "cpu_visits_open",
      [](const std::vector<Component*>& cores) {
        std::int64_t open = 0;
        for (Component* core : cores) open += model<Core>(*core, "cpu.core").visits_open();
        return open;
      },
      nb::arg("cores"));
  module.def("cpu_details", &details, nb::arg("program"), nb::arg("cores"));
  module.def(
      "cpu_instructions",
      [](const std::vector<Component*>& cores) {
        std::int64_t sum = 0;
        for (Component* core : cores) sum += model<Core>(*core, "cpu.core").instructions();
        return sum;
      },
      nb::arg("cores"), "Instructions that cores have committed; of a run that goes on, on one thread only.");
  module.def("cpu_core_details", &core_details, nb::arg("cores"));
  module.def("cpu_konata", &konata, nb::arg("core"), nb::arg("label"));
  module.def("cpu_region_log", &region_log, nb::arg("core"));
  module.def("mpi_call_names", [] { return std::vector<std::string>(mpi_calls.begin(), mpi_calls.end()); });

  nb::class_<FunctionalProgram>(module, "CpuFunctionalRun")
      .def(nb::init<const nb::dict&, std::uint32_t, std::uint64_t>(), nb::arg("launch"), nb::arg("cores"),
           nb::arg("seed"))
      .def("run", &FunctionalProgram::run, nb::arg("limit"), nb::arg("progress").none())
      .def_prop_ro("instructions", &FunctionalProgram::instructions)
      .def("processes", &FunctionalProgram::processes)
      .def("failure", &FunctionalProgram::failure)
      .def("count_work", &FunctionalProgram::count_work)
      .def("work", &FunctionalProgram::work)
      .def("details", &FunctionalProgram::details);
}
