// SPDX-License-Identifier: Apache-2.0
// Recording traces of running programs, and blocks of traces as columns. Columns cross as bytes, since a
// trace may have millions of rows.
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>

#include "column_bytes.hpp"
#include "cpu/core/core.hpp"
#include "cpu/live/live_source.hpp"
#include "cpu/openmp/construct_times.hpp"
#include "cpu/trace/block.hpp"
#include "cpu/trace/packed_node.hpp"
#include "cpu/trace/recorder.hpp"
#include "cpu_program.hpp"

using namespace manyscale;
using namespace manyscale::cpu;

namespace {

using Producers = std::array<std::uint16_t, 3>;
using Delays = std::array<std::uint8_t, 3>;

// What a machine states of compaction, by name.
CompactionTuning tuning_of(const nb::dict& stated) {
  const auto whole = [&](const char* name) { return nb::cast<std::uint32_t>(stated[name]); };
  return {.max_dispatch_delay = whole("max_dispatch_delay"),
          .max_own_dispatch_delay = whole("max_own_dispatch_delay"),
          .max_hidden_completion = whole("max_hidden_completion"),
          .port_sample_period = whole("port_sample_period"),
          .port_node_period = whole("port_node_period"),
          .port_slack = nb::cast<double>(stated["port_slack"]),
          .reorder_buffer_share = nb::cast<double>(stated["reorder_buffer_share"])};
}

// Records a program that is about to run; hands each block to a Python function.
class TraceRecorder {
 public:
  TraceRecorder(Component& program, Component& core, const nb::dict& tuning, nb::callable sink)
      : sink_(std::move(sink)) {
    begin(model<LiveSource>(program, "cpu.program"), core, tuning);
    recorder_->keep_forks(true);
  }
  TraceRecorder(FunctionalProgram& program, Component& core, const nb::dict& tuning, nb::callable sink)
      : sink_(std::move(sink)) {
    begin(program.functional_run(), core, tuning);
  }
  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;
  ~TraceRecorder() { detach_(); }

  void set_l1_filter(std::uint64_t bytes) { recorder_->set_l1_filter(bytes); }

  // The program has ended. Raises what the Python function raised, if it did.
  void finish() {
    detach_();
    rethrow();
    recorder_->finish();
    rethrow();
  }
  void rethrow() {
    if (raised_) std::rethrow_exception(std::exchange(raised_, nullptr));
  }

  nb::dict columns() const {
    const auto& streams = recorder_->streams();
    const auto& teams = recorder_->teams();
    const auto shared = recorder_->shared_ranges();
    nb::dict out;
    const auto add = [&out]<class Rows, class Value>(const char* name, const Rows& rows, Value&& value) {
      out[name] = column_bytes(rows, value);
    };
    add("stream.is_task", streams, [](const auto& s) { return static_cast<std::uint8_t>(s.is_task); });
    add("stream.subject", streams, [](const auto& s) { return s.subject; });
    add("stream.process", streams, [](const auto& s) { return s.process; });
    add("stream.region", streams, [](const auto& s) { return s.region; });
    add("stream.parent", streams, [](const auto& s) { return s.parent; });
    add("stream.thread", streams, [](const auto& s) { return s.thread; });
    add("stream.instructions", streams, [](const auto& s) { return s.instructions; });
    add("stream.nodes", streams, [](const auto& s) { return s.nodes; });
    add("stream.dependences", streams,
        [](const auto& s) { return static_cast<std::uint32_t>(s.dependences.size()); });
    std::vector<TaskDependence> dependences;
    for (const StreamInfo& stream : streams) {
      dependences.insert(dependences.end(), stream.dependences.begin(), stream.dependences.end());
    }
    add("dependence.address", dependences, [](const auto& d) { return d.address; });
    add("dependence.kind", dependences, [](const auto& d) { return static_cast<std::uint8_t>(d.type); });
    add("team.region", teams, [](const auto& t) { return t.region; });
    add("team.master", teams, [](const auto& t) { return t.master; });
    add("team.process", teams, [](const auto& t) { return t.process; });
    add("team.threads", teams, [](const auto& t) { return t.threads; });
    add("shared.begin", shared, [](const auto& r) { return r.begin; });
    add("shared.end", shared, [](const auto& r) { return r.end; });
    return out;
  }

  nb::dict statistics() const {
    const RecorderStatistics& counted = recorder_->statistics();
    nb::dict out;
    out["instructions"] = counted.instructions;
    out["nodes"] = counted.nodes;
    out["block_bytes"] = counted.bytes;
    out["runtime_instructions"] = counted.runtime_instructions;
    out["outside_instructions"] = counted.outside_instructions;
    out["unknown_threads"] = counted.unknown_threads;
    out["mispredicted"] = counted.mispredicted;
    out["filter_bytes"] = counted.filter_bytes;
    out["hit_cycles"] = counted.hit_cycles;
    return out;
  }

  // What was left out for each kind of sync node, and to choose tasks.
  nb::list sync_costs() const {
    nb::list out;
    for (std::size_t i = 0; i < sync_kinds; ++i) {
      out.append(cost_row(sync_kind_name(static_cast<SyncKind>(i)), recorder_->sync_costs()[i]));
    }
    out.append(cost_row("schedule", recorder_->scheduling_cost()));
    return out;
  }

  nb::list regions() const { return region_list(*regions_); }
  nb::list tasks() const { return task_list(*tasks_); }

 private:
  static nb::dict cost_row(std::string_view kind, const SyncCost& cost) {
    nb::dict row;
    row["kind"] = std::string(kind);
    row["nodes"] = cost.nodes;
    row["instructions"] = cost.instructions;
    row["least_instructions"] = cost.least_instructions;
    row["system_calls"] = cost.system_calls;
    row["least_system_calls"] = cost.least_system_calls;
    return row;
  }

  template <class Run>
  void begin(Run& run, Component& core, const nb::dict& tuning) {
    regions_ = &run.regions();
    tasks_ = &run.tasks();
    recorder_ = std::make_unique<Recorder>(model<Core>(core, "cpu.core").spec(), tuning_of(tuning), *regions_,
                                           *tasks_, [this](RecordedBlock&& block) { hand_over(block); });
    run.record_to(recorder_.get());
    detach_ = [&run] { run.record_to(nullptr); };
  }

  // Runs on whichever host thread executes the program.
  void hand_over(const RecordedBlock& block) {
    if (raised_) return;
    const nb::gil_scoped_acquire held;
    try {
      sink_(block.stream, block.number, block.nodes, block.instructions,
            nb::bytes(block.bytes.data(), block.bytes.size()), team_parts(block));
    } catch (...) {
      raised_ = std::current_exception();
    }
    if (raised_) throw std::runtime_error("the trace cannot be written");
  }

  nb::callable sink_;
  const RegionTable* regions_ = nullptr;
  const TaskTable* tasks_ = nullptr;
  std::unique_ptr<Recorder> recorder_;
  std::function<void()> detach_;
  std::exception_ptr raised_;
};

// The nodes of a block as columns, packed as in the block.
nb::dict decoded(const nb::bytes& block) {
  const std::vector<TraceNode> nodes = decode_block(byte_vector(block));
  nb::dict out;
  const auto add = [&]<class Value>(const char* name, Value&& value) {
    out[name] = column_bytes(nodes, value);
  };
  add("pc", [](const TraceNode& n) { return n.pc; });
  add("address", [](const TraceNode& n) { return n.address; });
  add("producers", [](const TraceNode& n) { return PackedNode::pack_producers(n); });
  add("delays", [](const TraceNode& n) { return n.timing.delays; });
  add("kind", [](const TraceNode& n) { return static_cast<std::uint8_t>(n.kind); });
  add("flags", [](const TraceNode& n) { return PackedNode::pack(n).flags; });
  add("size", [](const TraceNode& n) { return PackedNode::pack(n).size; });
  add("format", [](const TraceNode& n) { return PackedNode::pack(n).format; });
  add("thread", [](const TraceNode& n) { return n.thread; });
  add("weight", [](const TraceNode& n) { return n.timing.weight; });
  return out;
}

// A block of the nodes whose columns these are.
nb::bytes encoded(const nb::dict& columns) {
  std::vector<TraceNode> nodes(column_values<std::uint64_t>(columns, "pc").size());
  if (nodes.size() > block_nodes) {
    throw std::invalid_argument("a block holds at most " + std::to_string(block_nodes) + " nodes");
  }
  const auto fill = [&]<class Value>(const char* name, Value, auto&& set) {
    const auto values = column_values<Value>(columns, name, nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) set(nodes[i], values[i], i);
  };
  std::vector<PackedNode> packed(nodes.size());
  fill("pc", std::uint64_t{}, [](TraceNode& n, std::uint64_t value, std::size_t) { n.pc = value; });
  fill("address", std::uint64_t{}, [](TraceNode& n, std::uint64_t value, std::size_t) { n.address = value; });
  fill("producers", Producers{},
       [](TraceNode& n, const Producers& value, std::size_t) { PackedNode::unpack_producers(value, n); });
  fill("delays", Delays{}, [](TraceNode& n, const Delays& value, std::size_t) { n.timing.delays = value; });
  fill("kind", std::uint8_t{}, [](TraceNode& n, std::uint8_t value, std::size_t) {
    if (value >= instruction_classes)
      throw std::invalid_argument("there is no kind " + std::to_string(value));
    n.kind = static_cast<InstructionClass>(value);
  });
  fill("flags", std::uint8_t{},
       [&](TraceNode&, std::uint8_t value, std::size_t i) { packed[i].flags = value; });
  fill("size", std::uint8_t{},
       [&](TraceNode&, std::uint8_t value, std::size_t i) { packed[i].size = value; });
  fill("format", std::uint8_t{},
       [&](TraceNode&, std::uint8_t value, std::size_t i) { packed[i].format = value; });
  fill("thread", std::uint16_t{}, [](TraceNode& n, std::uint16_t value, std::size_t) { n.thread = value; });
  fill("weight", std::uint8_t{},
       [](TraceNode& n, std::uint8_t value, std::size_t) { n.timing.weight = value; });
  for (std::size_t i = 0; i < nodes.size(); ++i) packed[i].unpack(nodes[i]);
  const auto bytes = encode_block(nodes);
  return nb::bytes(bytes.data(), bytes.size());
}

// What constructs took in a run whose cores kept a log of regions: parameter of a replay, femtoseconds.
std::vector<std::pair<std::string, Time>> construct_time_list(Component& program,
                                                              const std::vector<Component*>& cores) {
  std::vector<const std::vector<RegionAccount::LogEntry>*> logs;
  for (Component* core : cores) logs.push_back(&model<Core>(*core, "cpu.core").regions().log());
  return construct_times(logs, model<LiveSource>(program, "cpu.program").regions());
}

}  // namespace

void bind_cpu_trace(nb::module_& module) {
  nb::exception<BlockError>(module, "BadBlock", PyExc_ValueError);
  module.attr("cpu_block_nodes") = block_nodes;
  module.attr("cpu_no_region") = StreamInfo::none;
  module.def("cpu_sync_kinds", [] {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < sync_kinds; ++i) {
      names.emplace_back(sync_kind_name(static_cast<SyncKind>(i)));
    }
    return names;
  });
  module.def(
      "cpu_l1_size_and_latency",
      [](Component& core) {
        const memory::CacheSpec& cache = model<Core>(core, "cpu.core").spec().l1;
        return std::pair(cache.size, cache.tag_latency + cache.data_latency);
      },
      nb::arg("core"));
  module.def("cpu_construct_times", &construct_time_list, nb::arg("program"), nb::arg("cores"));
  module.def("cpu_decode_block", &decoded, nb::arg("block"));
  module.def("cpu_encode_block", &encoded, nb::arg("columns"));
  nb::class_<TraceRecorder>(module, "CpuRecorder")
      .def(nb::init<Component&, Component&, const nb::dict&, nb::callable>(), nb::arg("program"),
           nb::arg("core"), nb::arg("compaction"), nb::arg("sink"), nb::keep_alive<1, 2>(),
           nb::keep_alive<1, 3>())
      .def(nb::init<FunctionalProgram&, Component&, const nb::dict&, nb::callable>(), nb::arg("program"),
           nb::arg("core"), nb::arg("compaction"), nb::arg("sink"), nb::keep_alive<1, 2>(),
           nb::keep_alive<1, 3>())
      .def("set_l1_filter", &TraceRecorder::set_l1_filter, nb::arg("bytes"))
      .def("finish", &TraceRecorder::finish)
      .def("rethrow", &TraceRecorder::rethrow)
      .def("columns", &TraceRecorder::columns)
      .def("statistics", &TraceRecorder::statistics)
      .def("sync_costs", &TraceRecorder::sync_costs)
      .def("regions", &TraceRecorder::regions)
      .def("tasks", &TraceRecorder::tasks);
}
