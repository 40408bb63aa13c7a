// SPDX-License-Identifier: Apache-2.0
// What the tests of cores share: a stream source that plays written records, machines to run them on, and
// short words for records.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "cpu/core/core.hpp"
#include "cpu/stream/stream_protocol.hpp"
#include "cpu/trace/trace_node.hpp"
#include "engine/registry.hpp"
#include "engine/simulation.hpp"
#include "test_checks.hpp"

namespace manyscale::cpu::test {

using manyscale::test::check;
using manyscale::test::check_between;
using manyscale::test::check_equal;

// Plays one list of records to each core and halts where they say so.
class ScriptedSource final : public Component {
 public:
  explicit ScriptedSource(std::vector<std::vector<TraceNode>> scripts, std::size_t ahead = 256) {
    for (auto& script : scripts) streams_.emplace_back(std::move(script), ahead);
    cores_.on_receive<&ScriptedSource::take>();
  }
  void start() override {
    for (std::uint32_t lane = 0; lane < streams_.size(); ++lane) {
      cores_.send({0, &streams_[lane].ring, StreamReply::Type::attach}, 0, lane);
      give(lane);
    }
  }
  const std::vector<Time>& reached(std::uint32_t lane) const { return streams_[lane].reached; }

 private:
  struct Stream {
    Stream(std::vector<TraceNode> records, std::size_t ahead)
        : script(std::move(records)), ring(ahead, RecordRing::Contents::replayed) {}
    std::vector<TraceNode> script;
    RecordRing ring;
    std::uint64_t given = 0, freed = 0;
    bool halted = false;
    std::vector<Time> reached;
  };

  void take(const StreamRequest& request, std::uint32_t lane) {
    Stream& stream = streams_[lane];
    if (request.type == StreamRequest::Type::reached) {
      if (!stream.halted || request.number + 1 != stream.given)
        throw SimulationError("reached a wrong record");
      stream.halted = false;
      stream.reached.push_back(now());
    } else {
      stream.freed = request.number;
    }
    give(lane);
  }
  void give(std::uint32_t lane) {
    Stream& stream = streams_[lane];
    const std::uint64_t before = stream.given;
    while (!stream.halted && stream.given < stream.script.size() &&
           stream.given - stream.freed < stream.ring.capacity()) {
      stream.ring[stream.given] = stream.script[stream.given];
      stream.ring.timing(stream.given) = stream.script[stream.given].timing;
      stream.halted = stream.ring[stream.given].has(Trait::halts_stream);
      ++stream.given;
    }
    if (stream.given == before) return;
    cores_.send({stream.given, nullptr, StreamReply::Type::available}, 0, lane);
    if (stream.given == stream.script.size()) cores_.send({0, nullptr, StreamReply::Type::ends}, 0, lane);
  }

  std::vector<Stream> streams_;
  SourcePort cores_{*this, "cores", "the cores that execute the scripts", Links::many};
};

// A record of a straight line of instructions; the caller sets the rest.
inline TraceNode record(InstructionClass kind, std::uint16_t producer = 0) {
  TraceNode made;
  made.kind = kind;
  made.producers[0] = producer;
  return made;
}
inline TraceNode load(std::uint64_t address, std::uint16_t producer = 0) {
  TraceNode made = record(InstructionClass::load, producer);
  made.address = address;
  made.size = 8;
  return made;
}
inline TraceNode store(std::uint64_t address, std::uint16_t data = 0, std::uint16_t base = 0) {
  TraceNode made = record(InstructionClass::store, data);
  made.producers[1] = base;
  made.address = address;
  made.size = 8;
  return made;
}
// A branch to the next instruction, which is so never taken.
inline TraceNode branch(std::uint16_t producer = 0) {
  return record(InstructionClass::branch, producer);
}
// Gives instructions addresses one after the other, around a loop so short that it stays in the instruction
// cache.
inline std::vector<TraceNode> at_addresses(std::vector<TraceNode> records, std::uint64_t base = 0x10000) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    records[i].pc = base + i % 256 * 4;
    if (records[i].kind == InstructionClass::branch) records[i].address = records[i].next_pc();
  }
  return records;
}
inline std::vector<TraceNode> repeat(const std::vector<TraceNode>& part, std::size_t times) {
  std::vector<TraceNode> all;
  for (std::size_t i = 0; i < times; ++i) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Round numbers: 1 GHz, so that a cycle is a nanosecond; wide where a test does not say otherwise; no
// instruction cache; all branches predicted.
inline CoreSpec plain_core() {
  CoreSpec spec;
  spec.clock = 1'000'000'000;
  spec.fetch_width = spec.dispatch_width = spec.commit_width = 8;
  spec.fetch_bytes = 64;
  spec.front_end_depth = 5;
  spec.reorder_buffer = 128;
  spec.issue_queue = 128;
  spec.integer_registers = spec.float_registers = 1024;
  spec.load_queue = 128;
  spec.store_queue = 64;
  spec.ports =
      "integer control; integer multiply; integer divide; float; float; load; load; store; atomic fence "
      "system";
  spec.l1i.size = 0;
  spec.l1.outstanding_misses = 64;
  spec.l1.merged_misses = 256;
  spec.branch.kind = "perfect";
  spec.quantum = 8 * nanosecond;
  return spec;
}

inline std::int64_t value_of(const StatisticRows& rows, const std::string& component,
                             const std::string& statistic) {
  for (std::size_t i = 0; i < rows.value.size(); ++i) {
    if (rows.component[i] == component && rows.statistic[i] == statistic)
      return std::get<std::int64_t>(rows.value[i]);
  }
  throw std::out_of_range(component + " " + statistic);
}

struct Ran {
  std::int64_t cycles = 0;  // up to the last commit
  std::int64_t instructions = 0;
  CpiStack stack{};
  RunReport report;
  StatisticRows rows;
  std::vector<Time> reached;
  std::vector<HotLines::Line> hot_lines;
  std::string konata;

  std::int64_t value(const std::string& component, const std::string& statistic) const {
    return value_of(rows, component, statistic);
  }
};

// With the time that a line takes on its bus, 100 ns.
inline constexpr Time memory_latency = 100 * nanosecond - 64;
inline constexpr std::int64_t fast = 1'000'000'000'000'000;  // a bandwidth that never matters

inline Component& add_model(Simulation& simulation, const std::string& name, const std::string& model,
                            const NamedValues& values) {
  return simulation.add(name, make_plugin<Component>(model, values));
}

inline std::int64_t working(const CpiStack& stack) {
  return stack.sum() - stack[Cause::idle];
}

// Runs records on one core in front of a memory that answers after a fixed time.
inline Ran run(const CoreSpec& spec, std::vector<TraceNode> records, std::size_t ahead = 256) {
  Simulation simulation(1);
  auto& source = static_cast<ScriptedSource&>(simulation.add(
      "source",
      std::make_unique<ScriptedSource>(std::vector<std::vector<TraceNode>>{std::move(records)}, ahead)));
  auto& core = static_cast<Core&>(simulation.add("core", std::make_unique<Core>(spec)));
  auto& channel = add_model(simulation, "channel", "memory.dram",
                            {{"backend", "simple"}, {"latency", memory_latency}, {"bandwidth", fast}});
  simulation.connect(*core.ports()[0], *source.ports()[0], nanosecond);
  simulation.connect(*core.ports()[1], *channel.ports()[0], 0);
  Ran ran;
  ran.report = simulation.run({});
  ran.rows = simulation.statistics();
  ran.stack = core.stack();
  ran.cycles = working(core.stack());
  ran.instructions = core.instructions();
  ran.reached = source.reached(0);
  ran.hot_lines = core.hot_lines();
  ran.konata = core.konata().text();
  check(ran.report.outcome == Outcome::finished, "the run ends");
  check_equal(ran.stack.sum(), ran.value("core", "cycles"), "the causes add up to the cycles");
  return ran;
}

// What the second half of so many repetitions takes, which is free of how it begins and ends.
inline std::int64_t steady(const CoreSpec& spec, const std::vector<TraceNode>& part, std::size_t times) {
  return run(spec, at_addresses(repeat(part, times))).cycles -
         run(spec, at_addresses(repeat(part, times / 2))).cycles;
}

// Some cores with coherent caches, one home and a memory, joined to the source.
inline std::vector<Core*> add_coherent_cores(Simulation& simulation, Component& source, CoreSpec spec,
                                             std::size_t count) {
  const std::int64_t gigahertz = 1'000'000'000;
  auto& between = add_model(simulation, "interconnect", "memory.crossbar", {{"clock", gigahertz}});
  auto& slice = add_model(simulation, "slice", "memory.home", {{"clock", gigahertz}});
  auto& channel = add_model(simulation, "channel", "memory.dram",
                            {{"backend", "simple"}, {"latency", memory_latency}, {"bandwidth", fast}});
  const auto port = [](Component& component, const std::string& name) -> PortBase& {
    for (PortBase* each : component.ports()) {
      if (each->name() == name) return *each;
    }
    throw std::out_of_range(name);
  };
  std::vector<Core*> cores;
  spec.coherent = true;
  for (std::size_t i = 0; i < count; ++i) {
    auto& core =
        static_cast<Core&>(simulation.add("core[" + std::to_string(i) + "]", std::make_unique<Core>(spec)));
    simulation.connect(port(core, "work"), port(source, "cores"), nanosecond);
    simulation.connect(port(core, "memory"), port(between, "requesters"), nanosecond);
    cores.push_back(&core);
  }
  simulation.connect(port(between, "responders"), port(slice, "requesters"), nanosecond);
  simulation.connect(port(slice, "memory"), port(channel, "requests"), nanosecond);
  return cores;
}

// Runs a list of records on each of some cores with coherent caches and one home.
inline std::vector<Ran> run_coherent(const CoreSpec& spec, std::vector<std::vector<TraceNode>> scripts,
                                     std::uint32_t threads = 1) {
  Simulation simulation(1);
  const std::size_t count = scripts.size();
  auto& source = static_cast<ScriptedSource&>(
      simulation.add("source", std::make_unique<ScriptedSource>(std::move(scripts))));
  const std::vector<Core*> cores = add_coherent_cores(simulation, source, spec, count);
  RunOptions options;
  options.threads = threads;
  const RunReport report = simulation.run(options);
  const StatisticRows rows = simulation.statistics();
  std::vector<Ran> all;
  for (std::size_t i = 0; i < count; ++i) {
    Ran ran;
    ran.report = report;
    ran.rows = rows;
    ran.stack = cores[i]->stack();
    ran.cycles = working(ran.stack);
    ran.instructions = cores[i]->instructions();
    ran.reached = source.reached(static_cast<std::uint32_t>(i));
    all.push_back(std::move(ran));
    check_equal(all[i].stack.sum(), all[i].value("core[" + std::to_string(i) + "]", "cycles"),
                "the causes add up to the cycles");
  }
  check(report.outcome == Outcome::finished, "the run ends");
  return all;
}

}  // namespace manyscale::cpu::test
