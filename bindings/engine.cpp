// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cerrno>
#include <exception>
#include <memory>

#include "engine/file_writer.hpp"
#include "engine/perfetto.hpp"
#include "engine/registry.hpp"
#include "engine/simulation.hpp"
#include "module.hpp"
#include "python_exchange.hpp"
#include "values.hpp"

using namespace manyscale;

namespace {

const char* links_name(Links links) {
  switch (links) {
    case Links::one:
      return "one";
    case Links::optional:
      return "optional";
    case Links::many:
      return "many";
  }
  return "one";
}

const char* outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::finished:
      return "finished";
    case Outcome::limit:
      return "limit";
    case Outcome::stopped:
      return "stopped";
    case Outcome::interrupted:
      return "interrupted";
    case Outcome::deadlock:
      return "deadlock";
  }
  return "finished";
}

nb::dict report_dict(const RunReport& report) {
  nb::list waits;
  for (const auto& [component, wait] : report.waits) {
    waits.append(nb::make_tuple(component, wait.what, wait.holder));
  }
  nb::dict out;
  out["outcome"] = outcome_name(report.outcome);
  out["now"] = report.now;
  out["events"] = report.events;
  out["windows"] = report.windows;
  out["threads"] = report.threads;
  out["processes"] = report.processes;
  out["lookahead"] = report.lookahead;
  out["wall_seconds"] = report.wall_seconds;
  out["pending_events"] = report.pending_events;
  out["waits"] = waits;
  return out;
}

// Runs without the interpreter lock; takes it now and then to see to signals and to show progress.
nb::dict run(Simulation& simulation, Time until, std::uint32_t threads, const std::string& queue,
             nb::object progress, nb::object processes, std::uint32_t partitions) {
  std::exception_ptr raised;
  std::unique_ptr<PythonExchange> exchange;
  if (!processes.is_none()) exchange = std::make_unique<PythonExchange>(processes);
  RunOptions options;
  options.until = until;
  options.threads = threads;
  options.partitions = partitions;
  options.queue = queue;
  options.exchange = exchange.get();
  options.poll = [&](const Progress& at) {
    const nb::gil_scoped_acquire held;
    try {
      if (PyErr_CheckSignals() != 0) nb::raise_python_error();
      if (!progress.is_none()) progress(at.now, at.events);
      return true;
    } catch (nb::python_error& error) {
      // Ctrl-C is an outcome, not an error: what was simulated so far is kept.
      if (!error.matches(PyExc_KeyboardInterrupt)) raised = std::current_exception();
      return false;
    } catch (...) {  // out of memory, for one; other threads wait for this one, which must not just leave
      raised = std::current_exception();
      return false;
    }
  };
  RunReport report;
  {
    const nb::gil_scoped_release released;
    report = simulation.run(options);
  }
  if (raised) std::rethrow_exception(raised);
  return report_dict(report);
}

nb::dict statistics(Simulation& simulation) {
  const StatisticRows rows = simulation.statistics();
  nb::dict out;
  out["component"] = rows.component;
  out["statistic"] = rows.statistic;
  out["kind"] = rows.kind;
  out["unit"] = rows.unit;
  out["description"] = rows.description;
  out["key"] = rows.key;
  out["value"] = rows.value;
  return out;
}

}  // namespace

void bind_engine(nb::module_& module) {
  nb::exception<SimulationError>(module, "SimulationError", PyExc_RuntimeError);
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const FileError& error) {
      errno = error.number();
      PyErr_SetFromErrno(PyExc_OSError);
    }
  });

  nb::class_<PortBase>(module, "Port")
      .def_prop_ro("name", &PortBase::name)
      .def_prop_ro("path", &PortBase::path)
      .def_prop_ro("protocol", &PortBase::protocol)
      .def_prop_ro("role", &PortBase::role)
      .def_prop_ro("other_role", &PortBase::other_role)
      .def_prop_ro("doc", &PortBase::doc)
      .def_prop_ro("width", &PortBase::width)
      .def_prop_ro("links", [](const PortBase& port) { return links_name(port.links()); });

  nb::class_<Component>(module, "Component")
      .def_prop_ro("name", &Component::name)
      .def_prop_ro("now", &Component::now)
      .def_prop_ro("ports", &Component::ports, nb::rv_policy::reference_internal)
      .def_prop_ro("statistics", [](const Component& component) {
        nb::list list;
        for (const auto& info : component.statistics()) {
          static constexpr const char* kinds[] = {"counter", "gauge", "histogram", "series"};
          list.append(nb::make_tuple(info.name, kinds[info.source.index()], info.unit, info.doc));
        }
        return list;
      });

  nb::class_<Simulation>(module, "Simulation")
      .def(nb::init<std::uint64_t>(), nb::arg("seed") = 0)
      .def(
          "add_model",
          [](Simulation& simulation, const std::string& model, const std::string& name,
             nb::dict parameters) -> Component& {
            return simulation.add(name, make_plugin<Component>(model, named_values(parameters)));
          },
          nb::arg("model"), nb::arg("name"), nb::arg("parameters"), nb::rv_policy::reference_internal)
      .def("connect", &Simulation::connect, nb::arg("a"), nb::arg("b"), nb::arg("latency"))
      .def("set_group", &Simulation::set_group)
      .def("set_weight", &Simulation::set_weight)
      .def("set_cut_latency", &Simulation::set_cut_latency)
      .def("enable_timeline", &Simulation::enable_timeline)
      .def("problems", &Simulation::problems)
      .def("run", &run, nb::arg("until") = never, nb::arg("threads") = 1, nb::arg("queue") = "radix",
           nb::arg("progress") = nb::none(), nb::arg("processes") = nb::none(), nb::arg("partitions") = 1)
      .def("statistics", &statistics)
      .def("component_names",
           [](const Simulation& simulation) {
             std::vector<std::string> names;
             for (const auto& component : simulation.components()) names.push_back(component->name());
             return names;
           })
      .def("clusters",
           [](const Simulation& simulation) {
             const Clustering clustering = simulation.clusters();
             return nb::make_tuple(clustering.cluster, clustering.lookahead);
           })
      .def("write_timeline",
           [](const Simulation& simulation, const std::string& path, Time tick) {
             std::vector<TimelineSource> sources;
             for (std::size_t i = 0; i < simulation.timelines().size(); ++i) {
               sources.push_back({simulation.components()[i]->name(), simulation.timelines()[i].get()});
             }
             const nb::gil_scoped_release released;
             write_perfetto(path, sources, tick);
           })
      .def_prop_ro("now", &Simulation::now);
}
