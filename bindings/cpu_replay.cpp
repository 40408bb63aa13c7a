// SPDX-License-Identifier: Apache-2.0
// Replay of recorded traces.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "column_bytes.hpp"
#include "cpu/replay/replay_source.hpp"
#include "cpu_program.hpp"

using namespace manyscale;
using namespace manyscale::cpu;

namespace {

// A function of Python that gives blocks, called by the host thread of the replay.
class BlockSource {
 public:
  explicit BlockSource(nb::callable source) : source_(std::move(source)) {}
  BlockSource(const BlockSource&) = delete;
  BlockSource& operator=(const BlockSource&) = delete;
  ~BlockSource() {
    const nb::gil_scoped_acquire held;
    source_.reset();
  }

  std::vector<std::uint8_t> operator()(std::uint32_t stream, std::uint32_t block) {
    const nb::gil_scoped_acquire held;
    try {
      return byte_vector(nb::cast<nb::bytes>(source_(stream, block)));
    } catch (const nb::python_error& error) {
      throw SimulationError(nb::cast<std::string>(nb::str(error.value())));
    }
  }

 private:
  nb::callable source_;
};

// Gives a trace to the replay source.
void play(Component& component, const nb::dict& columns, const std::vector<std::string>& regions,
          nb::callable source, const std::vector<std::pair<std::uint64_t, std::uint32_t>>& task_assignments,
          int slower_hits) {
  RecordedTrace trace;
  trace.slower_hits = slower_hits;
  const auto subject = column_values<std::uint64_t>(columns, "stream.subject");
  trace.streams.resize(subject.size());
  const auto streams = [&]<class Value>(const char* name, Value StreamInfo::* member) {
    const auto values = column_values<Value>(columns, name, trace.streams.size());
    for (std::size_t i = 0; i < values.size(); ++i) trace.streams[i].*member = values[i];
  };
  streams("stream.subject", &StreamInfo::subject);
  streams("stream.process", &StreamInfo::process);
  streams("stream.region", &StreamInfo::region);
  streams("stream.parent", &StreamInfo::parent);
  streams("stream.thread", &StreamInfo::thread);
  streams("stream.instructions", &StreamInfo::instructions);
  streams("stream.nodes", &StreamInfo::nodes);
  streams("stream.blocks", &StreamInfo::blocks);
  const auto is_task = column_values<std::uint8_t>(columns, "stream.is_task", trace.streams.size());
  const auto count = column_values<std::uint32_t>(columns, "stream.dependences", trace.streams.size());
  const auto address = column_values<std::uint64_t>(columns, "dependence.address");
  const auto kind = column_values<std::uint8_t>(columns, "dependence.kind", address.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < trace.streams.size(); ++i) {
    trace.streams[i].is_task = is_task[i] != 0;
    for (std::uint32_t j = 0; j < count[i]; ++j, ++next) {
      trace.streams[i].dependences.push_back(
          {address.at(next), static_cast<TaskDependence::Type>(kind.at(next) & 3)});
    }
  }
  trace.teams.resize(column_values<std::uint32_t>(columns, "team.region").size());
  const auto teams = [&]<class Value>(const char* name, Value TeamInfo::* member) {
    const auto values = column_values<Value>(columns, name, trace.teams.size());
    for (std::size_t i = 0; i < values.size(); ++i) trace.teams[i].*member = values[i];
  };
  teams("team.region", &TeamInfo::region);
  teams("team.master", &TeamInfo::master);
  teams("team.process", &TeamInfo::process);
  teams("team.threads", &TeamInfo::threads);
  const auto begin = column_values<std::uint64_t>(columns, "shared.begin");
  const auto end = column_values<std::uint64_t>(columns, "shared.end", begin.size());
  for (std::size_t i = 0; i < begin.size(); ++i) trace.shared.push_back({begin[i], end[i]});
  trace.regions = regions;
  auto shared_source = std::make_shared<BlockSource>(std::move(source));
  trace.block = [shared_source](std::uint32_t stream, std::uint32_t block) {
    return (*shared_source)(stream, block);
  };
  std::vector<TaskAssignment> assignments;
  assignments.reserve(task_assignments.size());
  for (const auto& [task, core] : task_assignments) assignments.push_back({task, core});
  model<ReplaySource>(component, "cpu.trace").load_trace(std::move(trace), std::move(assignments));
}

}  // namespace

void bind_cpu_replay(nb::module_& module) {
  module.def("cpu_play", &play, nb::arg("component"), nb::arg("columns"), nb::arg("regions"),
             nb::arg("source"), nb::arg("task_assignments"), nb::arg("slower_hits") = 0);
  module.def("cpu_task_runs", [](Component& component) {
    nb::list out;
    for (const auto& run : model<ReplaySource>(component, "cpu.trace").task_runs()) {
      out.append(nb::make_tuple(run.task, run.copy, run.core, run.begin, run.end));
    }
    return out;
  });
}
