// SPDX-License-Identifier: Apache-2.0
// What the tests of replay share: traces written by hand, and a machine to play them on.
#pragma once
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cpu/replay/replay_source.hpp"
#include "cpu/trace/block.hpp"
#include "cpu/trace/trace_node.hpp"
#include "test_cpu_core.hpp"

namespace manyscale::cpu::test {

// So many dependent instructions: as many cycles.
inline std::vector<TraceNode> chain(std::size_t length) {
  return std::vector<TraceNode>(length, record(InstructionClass::integer, 1));
}

// A stream in the making.
class Script {
 public:
  Script& add(const TraceNode& record) {
    records_.push_back(record);
    return *this;
  }
  Script& add(const std::vector<TraceNode>& records) {
    records_.insert(records_.end(), records.begin(), records.end());
    return *this;
  }
  Script& sync(SyncKind kind, std::uint64_t object = 0) { return add(sync_node(kind, object, 0)); }
  Script& work(std::size_t cycles) { return add(chain(cycles)); }
  std::vector<TraceNode> records() const { return at_addresses(records_); }

 private:
  std::vector<TraceNode> records_;
};

// A trace that is written rather than recorded, in blocks of a few nodes so that there are several.
class WrittenTrace {
 public:
  std::uint32_t add_thread(const Script& script) {
    StreamInfo info;
    info.subject = threads_;
    info.thread = threads_++;
    return add(std::move(info), script);
  }
  void add_task(std::uint64_t number, const Script& script, std::vector<TaskDependence> dependences = {},
                std::uint64_t parent = 0, std::uint16_t thread = 0) {
    StreamInfo info;
    info.is_task = true;
    info.subject = number;
    info.parent = parent;
    info.thread = thread;
    info.dependences = std::move(dependences);
    add(std::move(info), script);
  }
  void add_team(std::uint32_t threads) {
    TeamInfo team;
    team.threads = threads;
    trace.teams.push_back(team);
  }
  RecordedTrace finished() const {
    RecordedTrace result = trace;
    result.block = [records = records_](std::uint32_t stream, std::uint32_t block) {
      const std::vector<TraceNode>& all = records[stream];
      const std::size_t begin = block * nodes_of_block;
      return encode_block(std::span(all).subspan(begin, std::min(nodes_of_block, all.size() - begin)));
    };
    return result;
  }

  RecordedTrace trace;

 private:
  static constexpr std::size_t nodes_of_block = 300;

  std::uint32_t add(StreamInfo info, const Script& script) {
    records_.push_back(script.records());
    info.instructions = info.nodes = records_.back().size();
    info.blocks = static_cast<std::uint32_t>((info.nodes + nodes_of_block - 1) / nodes_of_block);
    trace.streams.push_back(std::move(info));
    return static_cast<std::uint32_t>(trace.streams.size() - 1);
  }

  std::uint16_t threads_ = 0;
  std::vector<std::vector<TraceNode>> records_;
};

struct Replayed {
  RunReport report;
  StatisticRows rows;
  std::vector<ReplaySource::TaskRun> tasks;

  // Nanoseconds, which are cycles here, until all cores were done.
  std::int64_t time() const { return report.now / nanosecond; }
  std::int64_t value(const std::string& component, const std::string& statistic) const {
    return value_of(rows, component, statistic);
  }
  // Of a core's state, in nanoseconds.
  std::int64_t spent(std::size_t core, const std::string& state) const {
    return value("trace", "core[" + std::to_string(core) + "]." + state + "_time") / nanosecond;
  }
};

// Plays a trace on coherent cores; what is to be different is told by `change`.
inline Replayed replay(const WrittenTrace& trace, std::int64_t cores,
                       const std::function<void(ReplaySourceSpec&)>& change = {}, std::uint32_t threads = 1,
                       const std::vector<TaskAssignment>& assignments = {}) {
  Simulation simulation(1);
  ReplaySourceSpec spec;
  spec.cores = cores;
  if (change) change(spec);
  auto& source = static_cast<ReplaySource&>(simulation.add("trace", std::make_unique<ReplaySource>(spec)));
  source.load_trace(trace.finished(), assignments);
  CoreSpec core_spec = plain_core();
  core_spec.branch.kind = "recorded";
  add_coherent_cores(simulation, source, core_spec, static_cast<std::size_t>(cores));
  RunOptions options;
  options.threads = threads;
  Replayed replayed;
  replayed.report = simulation.run(options);
  replayed.rows = simulation.statistics();
  replayed.tasks = source.task_runs();
  return replayed;
}

inline void check_finished(const Replayed& replayed, const std::string& what) {
  check(replayed.report.outcome == Outcome::finished, what + ": the run ends");
}

// The words of a deadlock, one line for each who waits.
inline std::string diagnosis(const Replayed& replayed) {
  check(replayed.report.outcome == Outcome::deadlock, "the run cannot end");
  std::string text;
  for (const ComponentWait& each : replayed.report.waits) text += each.wait.what + "\n";
  return text;
}

inline void check_says(const std::string& text, const std::string& words) {
  check(text.find(words) != std::string::npos, "'" + words + "' should be in: " + text);
}

}  // namespace manyscale::cpu::test
