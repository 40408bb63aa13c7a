// SPDX-License-Identifier: Apache-2.0
// Trace compaction: the nodes that stay have their results when they would have had them in the full stream.
#include <algorithm>
#include <bit>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "cpu/trace/compactor.hpp"
#include "test_checks.hpp"
#include "test_compaction.hpp"

using namespace manyscale;
using namespace manyscale::cpu;
using namespace manyscale::test;

namespace {

using Times = std::vector<std::int64_t>;

// A stream whose pc is the number of the instruction, and what memory answers to each.
struct Stream {
  std::vector<TraceNode> records;
  Times answers;  // cycles that a load takes after its own latency
};

const Latencies& table() {
  static const Latencies latencies{CoreSpec{}};
  return latencies;
}

// When a result is there: the operands, its dispatch and its latency; of a store, address and data meet.
std::int64_t complete(const TraceNode& record, std::int64_t answer, std::int64_t dispatch,
                      const std::array<std::int64_t, 3>& operands) {
  const std::int64_t latency = table().latency(record);
  const std::int64_t begin = dispatch + 1;
  if (record.kind == InstructionClass::store) {
    return std::max({begin + latency, operands[1] + latency, operands[2] + latency, operands[0]});
  }
  return std::max({begin, operands[0], operands[1], operands[2]}) + latency +
         (record.kind == InstructionClass::load ? answer : 0);
}

Times full_times(const Stream& stream, const Times& dispatch) {
  Times times;
  for (std::size_t i = 0; i < stream.records.size(); ++i) {
    std::array<std::int64_t, 3> operands{};
    for (std::size_t k = 0; k < 3; ++k) {
      const std::size_t distance = stream.records[i].producers[k];
      if (distance > 0) operands[k] = times[i - distance];
    }
    times.push_back(complete(stream.records[i], stream.answers[i], dispatch[i], operands));
  }
  return times;
}

std::vector<TraceNode> compact(const Stream& stream, const CompactionLimits& limits) {
  TraceCompactor compactor(table(), limits);
  for (const TraceNode& record : stream.records) compactor.take(record);
  compactor.flush();
  return compactor.nodes();
}

Times node_times(const std::vector<TraceNode>& nodes, const Stream& stream, const Times& dispatch) {
  Times times;
  for (std::size_t j = 0; j < nodes.size(); ++j) {
    const TraceNode& node = nodes[j];
    std::array<std::int64_t, 3> operands{};
    for (std::size_t k = 0; k < 3; ++k) {
      const std::size_t distance = node.producers[k];
      const bool from_dispatch = distance == 0 || node.timing.counts_from_dispatch(k);
      const std::int64_t from = from_dispatch ? dispatch[nodes[j - distance].pc] + 1 : times[j - distance];
      operands[k] = from + node.timing.delays[k];
    }
    times.push_back(complete(node, stream.answers[node.pc], dispatch[node.pc], operands));
  }
  return times;
}

TraceNode instruction(InstructionClass kind, std::uint16_t first = 0, std::uint16_t second = 0,
                      std::uint16_t third = 0) {
  TraceNode record;
  record.kind = kind;
  record.producers = {first, second, third};
  if (record.touches_memory()) record.size = 8;
  return record;
}

void add(Stream& stream, TraceNode record, std::int64_t answer = 0) {
  record.pc = stream.records.size();
  for (std::uint16_t& distance : record.producers) {
    if (distance > record.pc) distance = 0;
  }
  stream.records.push_back(record);
  stream.answers.push_back(answer);
}

// A stream of all kinds that depend on each other, on near ones mostly.
Stream random_stream(std::uint64_t seed, std::size_t length) {
  std::mt19937_64 random(seed);
  const std::vector<InstructionClass> mix{
      InstructionClass::integer,     InstructionClass::integer,        InstructionClass::integer,
      InstructionClass::integer,     InstructionClass::multiply,       InstructionClass::float_add,
      InstructionClass::float_fused, InstructionClass::float_divide,   InstructionClass::load,
      InstructionClass::load,        InstructionClass::store,          InstructionClass::branch,
      InstructionClass::float_root,  InstructionClass::float_multiply, InstructionClass::divide,
      InstructionClass::jump};
  const std::uint64_t reach = 4 + random() % 60;
  const std::uint64_t arity = 1 + random() % 3;
  Stream stream;
  for (std::size_t i = 0; i < length; ++i) {
    TraceNode record = instruction(mix[random() % mix.size()]);
    for (std::size_t k = 0; k < arity; ++k) {
      if (random() % 4 == 0) continue;
      const std::uint64_t distance = 1 + random() % (random() % 50 == 0 ? 500 : reach);
      const bool has_result = distance <= i && stream.records[i - distance].kind != InstructionClass::store;
      if (has_result) record.producers[k] = static_cast<std::uint16_t>(distance);
    }
    if (record.is_control() && random() % 8 == 0) record.timing.prediction = Prediction::mispredict;
    if (record.kind == InstructionClass::branch && random() % 2 == 0) record.flags |= Trait::taken;
    add(stream, record, static_cast<std::int64_t>(random() % 5 == 0 ? random() % 300 : random() % 5));
  }
  return stream;
}

std::uint64_t instructions_in(const std::vector<TraceNode>& nodes) {
  std::uint64_t sum = 0;
  for (const TraceNode& node : nodes)
    sum += node.kind == InstructionClass::marker ? 0 : node.timing.weight + 1u;
  return sum;
}

// A core without limits: every node has its result exactly when the full stream has it.
TEST(unlimited_data_flow_is_exact) {
  std::uint64_t all = 0, kept = 0, wrong = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Stream stream = random_stream(seed, 1500);
    const std::vector<TraceNode> nodes =
        compact(stream, {.width = 0, .window = 2048, .model_ports = false, .tuning = fitted});
    const Times dispatch(stream.records.size(), 0);
    const Times full = full_times(stream, dispatch);
    const Times compacted = node_times(nodes, stream, dispatch);
    check_equal(static_cast<std::int64_t>(instructions_in(nodes)), 1500, "instructions");
    for (std::size_t j = 0; j < nodes.size(); ++j) wrong += compacted[j] != full[nodes[j].pc];
    all += stream.records.size();
    kept += nodes.size();
    for (const TraceNode& record : stream.records) {
      const bool needed = record.touches_memory() || record.timing.prediction == Prediction::mispredict;
      if (needed &&
          std::ranges::none_of(nodes, [&](const TraceNode& node) { return node.pc == record.pc; })) {
        ++wrong;
      }
    }
  }
  check_equal(static_cast<std::int64_t>(wrong), 0, "nodes with another time than in the full stream");
  check_between(static_cast<double>(kept) / static_cast<double>(all), 0.2, 0.8, "part of nodes");
}

// The cycle at which the last instruction commits on a core that dispatches four a cycle and has 128 under
// way.
std::int64_t bounded_run(const std::vector<TraceNode>& nodes, const Stream& stream) {
  constexpr std::int64_t width = 4, window = 128;
  Times times, dispatched, commit;
  std::vector<std::int64_t> positions;  // instructions up to each node
  std::int64_t slot = 0;                // of dispatch, four a cycle
  std::size_t oldest = 0;
  for (std::size_t j = 0; j < nodes.size(); ++j) {
    const TraceNode& node = nodes[j];
    slot += node.timing.weight;
    positions.push_back((j > 0 ? positions.back() : 0) + node.timing.weight + 1);
    while (oldest < j && positions[j] - positions[oldest] >= window) {
      slot = std::max(slot, width * commit[oldest++]);
    }
    const std::int64_t dispatch = slot++ / width;
    dispatched.push_back(dispatch);
    std::array<std::int64_t, 3> operands{};
    for (std::size_t k = 0; k < 3; ++k) {
      const std::size_t distance = node.producers[k];
      const bool from_dispatch = distance == 0 || node.timing.counts_from_dispatch(k);
      operands[k] =
          (from_dispatch ? dispatched[j - distance] + 1 : times[j - distance]) + node.timing.delays[k];
    }
    times.push_back(complete(node, stream.answers[node.pc], dispatch, operands));
    commit.push_back(std::max(times.back(), j > 0 ? commit.back() : 0));
  }
  return commit.back();
}

// The same with the full stream and with the compacted one, where nothing waits for ports.
TEST(bounded_cores_differ_little) {
  std::int64_t full = 0, compacted = 0;
  double worst = 0;
  for (std::uint64_t seed = 500; seed < 600; ++seed) {
    const Stream stream = random_stream(seed, 4000);
    const std::int64_t expected = bounded_run(stream.records, stream);
    const std::int64_t found = bounded_run(
        compact(stream,
                {.width = 4, .window = 128, .model_ports = false, .max_compacted = 51, .tuning = fitted}),
        stream);
    full += expected;
    compacted += found;
    worst = std::max(worst, std::abs(static_cast<double>(found - expected) / static_cast<double>(expected)));
  }
  check_between(static_cast<double>(compacted) / static_cast<double>(full), 0.99, 1.01,
                "cycles, compacted and full");
  check_between(worst, 0, 0.05, "the worst of a hundred streams");
}

// s += a[i] * b[i]: the sum is a chain of fused multiply-adds, four cycles each, and one node for each stays.
TEST(chains_keep_their_length) {
  constexpr int rounds = 1000;
  Stream stream;
  for (int i = 0; i < rounds; ++i) {
    add(stream, instruction(InstructionClass::load, 3), 4);
    add(stream, instruction(InstructionClass::load, 3), 4);
    add(stream, instruction(InstructionClass::float_fused, 6, 2, 1));
    add(stream, instruction(InstructionClass::integer, 6));
    add(stream, instruction(InstructionClass::integer, 6));
    TraceNode branch = instruction(InstructionClass::branch, 2);
    branch.flags = Trait::taken;
    add(stream, branch);
  }
  add(stream, instruction(InstructionClass::store, 4, 2));
  const std::vector<TraceNode> nodes = compact(stream, {.width = 4, .model_ports = false, .tuning = fitted});
  const Times dispatch = [&] {
    Times cycles;
    for (std::size_t i = 0; i < stream.records.size(); ++i)
      cycles.push_back(static_cast<std::int64_t>(i / 4));
    return cycles;
  }();
  const Times full = full_times(stream, dispatch);
  const Times compacted = node_times(nodes, stream, dispatch);
  check(full.back() >= 4 * rounds, "the chain is as long as its additions");
  check_equal(compacted.back(), full.back(), "end of a chain of additions");
  check_between(static_cast<double>(nodes.size()) / (6.0 * rounds), 0.4, 0.52,
                "three nodes of six instructions");
  std::int64_t turns = 0;
  for (const TraceNode& node : nodes) turns += node.timing.weight > 0 ? node.timing.branches.count : 0;
  for (const TraceNode& node : nodes) turns += node.is_control();
  check_equal(turns, rounds, "every taken branch ends a fetch group");
}

// A chain that waits for nothing but its own dispatch counts from the node that its first instruction is in.
TEST(long_delays_count_from_older_dispatches) {
  Stream stream;
  add(stream, instruction(InstructionClass::integer));
  add(stream, instruction(InstructionClass::load), 50);
  add(stream, instruction(InstructionClass::integer, 2));
  for (int i = 0; i < 7; ++i) add(stream, instruction(InstructionClass::integer, 1));
  add(stream, instruction(InstructionClass::load, 1), 50);
  const std::vector<TraceNode> nodes = compact(stream, {.width = 4, .model_ports = false, .tuning = fitted});
  check_equal(nodes.size(), std::size_t{2}, "the loads");
  check_equal(nodes.back().producers[0], std::uint16_t{1}, "the first load");
  check(nodes.back().timing.counts_from_dispatch(0), "its dispatch, not its result");
  // Nine cycles after an instruction that is dispatched with it; parts of a cycle between two may count as
  // none.
  check_between(static_cast<double>(nodes.back().timing.delays[0]), 9, 11, "cycles of the chain");
}

// Where few may be compacted together, the one that is complete last is the node.
TEST(groups_have_their_last_as_node) {
  Stream stream;
  for (int i = 0; i < 64; ++i)
    add(stream, instruction(i % 8 == 3 ? InstructionClass::divide : InstructionClass::integer));
  const std::vector<TraceNode> nodes =
      compact(stream, {.width = 4, .model_ports = false, .max_compacted = 8, .tuning = fitted});
  for (const TraceNode& node : nodes) {
    check(node.timing.weight <= 8, "no more than may be");
    check(node.pc == 63 || node.kind == InstructionClass::divide, "a division, or the last instruction");
  }
}

// ALU instructions in a row become few nodes.
TEST(rows_of_alu_instructions_are_compacted) {
  Stream stream;
  add(stream, instruction(InstructionClass::load), 50);
  for (int i = 0; i < 5000; ++i) add(stream, instruction(InstructionClass::integer, 1));
  add(stream, instruction(InstructionClass::store, 1));
  const std::vector<TraceNode> nodes = compact(stream, {.width = 4, .tuning = fitted});
  const Times dispatch(stream.records.size(), 0);
  check_equal(node_times(nodes, stream, dispatch).back(), full_times(stream, dispatch).back(),
              "end of the row");
  check_equal(full_times(stream, dispatch).back(), 1 + 50 + 5000, "one load and 5000 cycles");
  check_between(static_cast<double>(nodes.size()), 5000 / 255, 5000 / 6, "nodes of the row");
}

// Of a kind that has more to do than its ports can take, a node stays for every twelve, and they follow each
// other no faster than the ports allow; one that has not is compacted.
TEST(limiting_ports_keep_their_rate) {
  CoreSpec spec;
  spec.dispatch_width = 4;
  const Latencies latencies(spec);  // one port for fused multiply-adds
  const auto nodes_of = [&](int fused) {
    Stream stream;
    for (int i = 0; i < 640; ++i) {
      add(stream, instruction(i % 8 < fused ? InstructionClass::float_fused : InstructionClass::integer));
    }
    TraceCompactor compactor(latencies, {.width = 4, .tuning = fitted});
    for (const TraceNode& record : stream.records) compactor.take(record);
    compactor.flush();
    std::vector<TraceNode> kept;
    for (const TraceNode& node : compactor.nodes()) {
      if (node.kind == InstructionClass::float_fused) kept.push_back(node);
    }
    return kept;
  };
  const std::vector<TraceNode> kept = nodes_of(4);
  check_equal(static_cast<std::int64_t>(kept.size()), 4 * (640 - 64) / 8 / 12,
              "half of all on a quarter of the ports: one of twelve stays, but of the first few");
  TraceNode fused;
  fused.kind = InstructionClass::float_fused;
  const std::int64_t wait = 12 - static_cast<std::int64_t>(latencies.latency(fused));
  std::int64_t waiting = 0;
  for (const TraceNode& node : kept) {
    for (std::size_t i = 0; i < 3; ++i) waiting += node.producers[i] > 0 && node.timing.delays[i] == wait;
  }
  check_equal(waiting, static_cast<std::int64_t>(kept.size()) - 1,
              "twelve cycles of the one port from one node to the next");
  check_between(static_cast<double>(nodes_of(2).size()), 0, 4,
                "a quarter of all on a quarter of the ports are compacted");
}

// What waits for one load all issues when it is there, as far as there are ports, and stands in the issue
// queue until then.
TEST(waiters_share_ports_and_queue) {
  constexpr int waiters = 10;
  Stream stream;
  add(stream, instruction(InstructionClass::load));
  for (int i = 1; i <= waiters; ++i)
    add(stream, instruction(InstructionClass::integer, static_cast<std::uint16_t>(i)));
  add(stream, instruction(InstructionClass::load, 1));
  const std::vector<TraceNode> nodes = compact(stream, {.width = 4, .reorder_buffer = 64, .tuning = fitted});
  check_equal(static_cast<std::int64_t>(nodes.size()), 2, "the loads are nodes");
  check_equal(nodes[0].timing.waiters, waiters, "wait for the first");
  check_equal(nodes[1].timing.waiters, 0, "nobody waits for the second");
  const int ports = std::popcount(table().ports(instruction(InstructionClass::integer)));
  check_equal(nodes[1].timing.delays[0], (waiters - 1) / ports + 1,
              "cycles until the last of them has its result");
  const std::vector<TraceNode> few = compact(stream, {.width = 4, .reorder_buffer = 4, .tuning = fitted});
  check_equal(few[0].timing.waiters, 3, "those further behind are not there yet");
}

// A load that is sure to hit has its result as a node would: after its address, its line, or the store that
// wrote it, whichever is last.
TEST(filtered_loads_are_compacted) {
  CoreSpec spec;
  const Latencies latencies(spec);
  const std::int64_t hit = static_cast<std::int64_t>(latencies.l1_hit());
  const auto load_latency = static_cast<std::int64_t>(latencies.latency(instruction(InstructionClass::load)));
  const auto last_node = [&](const FilterResult& filter, InstructionClass first) {
    TraceCompactor compactor(latencies, {.width = 4, .model_ports = false, .tuning = fitted});
    compactor.take(instruction(first));
    compactor.take(instruction(InstructionClass::load, filter.fill == 0 && filter.store == 0 ? 1 : 0),
                   filter);
    compactor.take(instruction(InstructionClass::store, 1));
    compactor.flush();
    check_equal(static_cast<std::int64_t>(compactor.nodes().size()), 2, "the load is compacted");
    return std::pair(compactor.nodes().back(), compactor.l1_hits().back());
  };
  const auto [by_address, hits] = last_node({.is_hit = true}, InstructionClass::load);
  check_equal(by_address.producers[0], 1, "the data waits for the load that gives the address");
  check_equal(by_address.timing.delays[0], load_latency + hit, "and for a hit after it");
  check_equal(hits[0], 1, "which is counted");
  const auto [by_line, no_hits] = last_node({.is_hit = true, .fill = 1}, InstructionClass::load);
  check(by_line.producers[0] == 1 && by_line.timing.delays[0] == 0,
        "the line comes with the load that asked for it");
  check_equal(no_hits[0], 0, "no hit after that");
  const auto [by_store, still_none] = last_node({.is_hit = true, .store = 1}, InstructionClass::store);
  check(by_store.producers[0] == 1 && by_store.timing.delays[0] == latencies.store_forward(),
        "a store hands its data over");
  check_equal(still_none[0], 0, "which is no hit");
}

TEST(markers_keep_their_position) {
  Stream stream = random_stream(7, 3000);
  TraceCompactor compactor(table(), {.width = 4, .tuning = fitted});
  std::vector<std::uint64_t> before;
  for (std::size_t i = 0; i < stream.records.size(); ++i) {
    if (i % 37 == 5) {
      TraceNode marker;
      marker.kind = InstructionClass::marker;
      marker.address = i;
      compactor.take(marker);
    }
    compactor.take(stream.records[i]);
  }
  compactor.flush();
  std::uint64_t instructions = 0;
  int markers = 0;
  for (const TraceNode& node : compactor.nodes()) {
    if (node.kind != InstructionClass::marker) {
      instructions += node.timing.weight + 1u;
      continue;
    }
    ++markers;
    check_equal(static_cast<std::int64_t>(instructions), static_cast<std::int64_t>(node.address),
                "instructions before a marker");
  }
  check_equal(markers, 81, "markers");
  check_equal(static_cast<std::int64_t>(instructions), 3000, "instructions in all");
}

}  // namespace
