// SPDX-License-Identifier: Apache-2.0
// Random streams of records on cores of many shapes: every cycle has one cause, results do not depend on
// host threads, and what observers are told fits.
#include <random>
#include <sstream>

#include "test_cpu_core.hpp"

using namespace manyscale;
using namespace manyscale::cpu;
using namespace manyscale::cpu::test;

namespace {

std::vector<TraceNode> random_stream(std::uint32_t seed, std::size_t n, std::uint64_t lines, bool halts) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
  std::vector<TraceNode> records;
  std::uint64_t pc = 0x10000;
  for (std::size_t i = 0; i < n; ++i) {
    TraceNode made;
    const std::uint32_t draw = below(100);
    made.kind = draw < 30            ? InstructionClass::integer
                : draw < 50          ? InstructionClass::load
                : draw < 62          ? InstructionClass::store
                : draw < 74          ? InstructionClass::branch
                : draw < 76          ? InstructionClass::indirect
                : draw < 78 && halts ? InstructionClass::atomic
                : draw < 79 && halts ? InstructionClass::fence
                : draw < 80 && halts ? InstructionClass::system
                                     : static_cast<InstructionClass>(below(9));
    for (auto& producer : made.producers)
      producer = static_cast<std::uint16_t>(below(3) == 0 ? below(40) : 0);
    if (made.touches_memory()) {
      made.address = 0x1000000 + below(static_cast<std::uint32_t>(lines)) * 64 + below(64);
      made.size = static_cast<std::uint8_t>(1u << below(4));
    }
    if (made.kind == InstructionClass::atomic || made.kind == InstructionClass::fence ||
        made.kind == InstructionClass::system)
      made.flags |= Trait::halts_stream;
    if (below(2) == 0) made.flags |= Trait::compressed;
    if (below(3) == 0) made.flags |= below(2) == 0 ? Trait::writes_integer : Trait::writes_float;
    made.pc = pc;
    pc = made.next_pc();
    if (made.is_control()) {
      if (made.kind == InstructionClass::indirect || below(2) == 0) {
        made.flags |= made.kind == InstructionClass::branch ? Trait::taken : 0;
        pc = 0x10000 + below(4096) * 4;
      }
      made.address = pc;
    }
    records.push_back(made);
  }
  return records;
}

CoreSpec random_core(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto between = [&](std::uint32_t least, std::uint32_t most) {
    return static_cast<std::int64_t>(least + random() % (most - least + 1));
  };
  CoreSpec spec;
  spec.clock = between(900, 4000) * 1'000'000;
  spec.in_order = between(0, 3) == 0;
  spec.fetch_width = between(1, 8);
  spec.dispatch_width = between(1, 8);
  spec.commit_width = between(1, 8);
  spec.issue_width = between(0, 6);
  spec.reorder_buffer = between(2, 200);
  spec.issue_queue = between(1, 60);
  spec.float_queue = between(0, 20);
  spec.memory_queue = between(0, 20);
  spec.integer_registers = between(33, 120);
  spec.float_registers = between(33, 120);
  spec.load_queue = between(1, 40);
  spec.store_queue = between(1, 40);
  spec.outstanding_stores = between(1, 8);
  spec.stores_per_cycle = between(1, 2);
  spec.speculative_loads = between(0, 1) == 0;
  spec.memory_model = between(0, 1) == 0 ? "tso" : "relaxed";
  spec.l1.size = 4096;
  spec.l1.outstanding_misses = between(1, 16);
  spec.l1.merged_misses = between(1, 8);
  spec.l1i.size = 4096;
  spec.l1i.outstanding_misses = between(1, 4);
  spec.l2.size = between(0, 1) == 0 ? 0 : 16384;
  spec.translation.enabled = between(0, 1) == 0;
  spec.translation.data.entries = 4;
  spec.translation.data.ways = 0;
  spec.translation.instruction.entries = 2;
  spec.translation.instruction.ways = 0;
  spec.translation.second.entries = 8;
  spec.translation.second.ways = 0;
  spec.translation.walkers = between(1, 3);
  spec.translation.walk_penalty = between(0, 1) * 25;
  spec.quantum = between(0, 20) * nanosecond + 1;
  return spec;
}

// Everything commits, and the causes add up (run() checks that).
TEST(streams_of_all_kinds) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    const CoreSpec spec = random_core(seed);
    const Ran ran = run(spec, random_stream(seed, 3000, seed % 3 == 0 ? 4000 : 60, true), 64);
    check_equal(ran.instructions, 3000, "all instructions of stream " + std::to_string(seed));
    check(ran.cycles >= 3000 / spec.commit_width, "no more than the width commits");
    const Ran again = run(spec, random_stream(seed, 3000, seed % 3 == 0 ? 4000 : 60, true), 64);
    check(again.rows.value == ran.rows.value, "the same again");
  }
}

// The quantum is an approximation that must not change much.
TEST(quantum_changes_little) {
  CoreSpec spec;
  spec.l2.size = 256 * 1024;
  const std::vector<TraceNode> stream = random_stream(7, 20000, 2000, false);
  spec.quantum = 1;
  const auto exact = static_cast<double>(run(spec, stream, 512).cycles);
  for (const Time quantum : {2 * nanosecond, 10 * nanosecond, 50 * nanosecond}) {
    spec.quantum = quantum;
    const double off = static_cast<double>(run(spec, stream, 512).cycles) / exact - 1;
    check(off > -0.02 && off < 0.02, "a quantum of " + std::to_string(quantum / nanosecond) + " ns is " +
                                         std::to_string(100 * off) + "% off");
  }
}

// What cores synchronise by is never done ahead of time, so the quantum does not change who gets it when.
TEST(quantum_does_not_change_synchronisation) {
  TraceNode atomic = record(InstructionClass::atomic);
  atomic.address = 0x1000000;
  atomic.size = 8;
  atomic.flags = Trait::halts_stream;
  const std::vector<TraceNode> script =
      at_addresses(repeat({atomic, record(InstructionClass::integer)}, 200));
  CoreSpec spec = plain_core();
  spec.quantum = 1;
  const auto exact = run_coherent(spec, {script, script});
  spec.quantum = 20 * nanosecond;
  const auto coarse = run_coherent(spec, {script, script});
  for (std::size_t core = 0; core < 2; ++core)
    check_equal(coarse[core].cycles, exact[core].cycles, "two cores at one line");
}

TEST(many_cores_on_threads) {
  std::vector<std::vector<TraceNode>> scripts;
  for (std::uint32_t core = 0; core < 4; ++core) scripts.push_back(random_stream(core, 4000, 100, true));
  CoreSpec spec;
  spec.l2.size = 64 * 1024;
  const auto one = run_coherent(spec, scripts, 1);
  const auto two = run_coherent(spec, scripts, 2);
  check(one[0].rows.value == two[0].rows.value, "the same on one and two threads");
  check_equal(two[0].report.threads, 2, "two threads are used");
}

TEST(hot_lines_add_up) {
  CoreSpec spec = plain_core();
  spec.hot_lines = true;
  const Ran ran = run(
      spec,
      at_addresses(repeat({record(InstructionClass::divide, 2), record(InstructionClass::integer, 1)}, 512)));
  std::int64_t cycles = 0, instructions = 0;
  for (const HotLines::Line& line : ran.hot_lines) {
    cycles += line.stack.sum();
    instructions += line.instructions;
  }
  check_equal(instructions, 1024, "instructions by address");
  check_equal(cycles, ran.cycles, "cycles by address: all but those without anything to do");
  check_equal(static_cast<std::int64_t>(ran.hot_lines.size()), 256, "addresses");
}

// Every instruction of the window begins, goes through four stages and retires, in an order of cycles.
TEST(konata) {
  CoreSpec spec = plain_core();
  spec.konata_from = 10;
  spec.konata_count = 20;
  const Ran ran =
      run(spec, at_addresses(repeat({record(InstructionClass::integer, 1), load(0x1000000, 1)}, 50)));
  std::istringstream lines(ran.konata);
  std::string line;
  std::getline(lines, line);
  check(line == "Kanata\t0004", "the format's name");
  std::map<char, int> counts;
  bool forward = true;
  while (std::getline(lines, line)) {
    ++counts[line[0]];
    if (line.starts_with("C\t")) forward = forward && std::stoll(line.substr(2)) > 0;
  }
  check(forward, "time goes forward");
  check_equal(counts['I'], 20, "instructions in the log");
  check_equal(counts['S'], 80, "stages that begin");
  check_equal(counts['E'], 80, "stages that end");
  check_equal(counts['R'], 20, "instructions that retire");
}

}  // namespace
