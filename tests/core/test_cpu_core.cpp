// SPDX-License-Identifier: Apache-2.0
// The time of a core against closed forms: chains, units, widths, buffers, branches.
#include "test_cpu_core.hpp"

using namespace manyscale;
using namespace manyscale::cpu;
using namespace manyscale::cpu::test;

namespace {

struct KindLatency {
  InstructionClass kind;
  std::int64_t latency;
  const char* name;
};

// n dependent instructions take n times the latency of their kind.
TEST(chains) {
  const CoreSpec spec = plain_core();
  const InstructionTimings& t = spec.timing;
  for (const KindLatency& each :
       {KindLatency{InstructionClass::integer, t.integer.latency, "integer"},
        {InstructionClass::multiply, t.multiply.latency, "multiply"},
        {InstructionClass::divide, t.divide.latency, "divide"},
        {InstructionClass::float_add, t.float_add.latency, "float_add"},
        {InstructionClass::float_multiply, t.float_multiply.latency, "float_multiply"},
        {InstructionClass::float_fused, t.float_fused.latency, "float_fused"},
        {InstructionClass::float_divide, t.float_divide.latency, "float_divide"},
        {InstructionClass::float_root, t.float_root.latency, "float_root"},
        {InstructionClass::float_convert, t.float_convert.latency, "float_convert"},
        {InstructionClass::branch, t.control.latency, "branch"}}) {
    check_equal(steady(spec, {record(each.kind, 1)}, 2000), 1000 * each.latency,
                std::string("a chain of ") + each.name);
  }
  TraceNode single = record(InstructionClass::float_divide, 1);
  single.format = 4;
  check_equal(steady(spec, {single}, 2000), 1000 * t.float_divide_single.latency, "single precision");
  TraceNode delayed = record(InstructionClass::integer, 1);
  delayed.timing.delays[0] = 7;
  check_equal(steady(spec, {delayed}, 2000), 8000, "a chain of delays");
  // Two chains, of which each instruction waits for the slower one; and a delay that counts from dispatch.
  TraceNode two = record(InstructionClass::integer, 1);
  two.producers[1] = 2;
  two.timing.delays[1] = 9;
  check_equal(steady(spec, {two}, 2000), 1000 * (1 + 9) / 2, "the delay of the second operand");
  TraceNode from_dispatch = record(InstructionClass::integer, 1);
  from_dispatch.timing.delays[1] = 100;
  CoreSpec narrow = spec;
  narrow.reorder_buffer = 10;
  // Ten at a time, each of which takes a cycle to issue, its delay and its latency.
  check_equal(steady(narrow, {from_dispatch}, 2000), 100 * (1 + 100 + 1), "a delay from dispatch");
  // Loads that hit the L1 cache: each address comes from the load before.
  check_equal(steady(spec, {load(64, 1)}, 2000), 1000 * (spec.l1.tag_latency + spec.l1.data_latency),
              "a chain of loads that hit");
}

// Independent instructions take an issue slot of a unit each, for the unit's interval.
TEST(throughput) {
  CoreSpec spec = plain_core();
  check_equal(steady(spec, {record(InstructionClass::integer)}, 6000), 1000, "three integer units");
  check_equal(steady(spec, {record(InstructionClass::multiply)}, 2000), 1000, "one multiplier");
  check_equal(steady(spec, {record(InstructionClass::float_fused)}, 4000), 1000, "two floating-point units");
  check_equal(steady(spec, {record(InstructionClass::divide)}, 200), 100 * spec.timing.divide.interval,
              "one divider");
  check_equal(steady(spec, {record(InstructionClass::float_divide)}, 400),
              100 * spec.timing.float_divide.interval, "two floating-point dividers");
  check_equal(
      steady(spec, {record(InstructionClass::float_divide), record(InstructionClass::float_root)}, 200),
      50 * (spec.timing.float_divide.interval + spec.timing.float_root.interval),
      "division and roots share their unit");
  check_equal(steady(spec, {load(64)}, 4000), 1000, "two loads in a cycle");
  check_equal(steady(spec, {store(64)}, 2000), 1000, "one store in a cycle");
  spec.stores_per_cycle = 2;
  spec.ports = "integer multiply divide control float load atomic fence system; store; store";
  check_equal(steady(spec, {store(64)}, 4000), 1000, "two stores in a cycle");
  // Whoever is asked first takes the port that takes fewest kinds.
  check_equal(steady(plain_core(),
                     {record(InstructionClass::integer), record(InstructionClass::integer),
                      record(InstructionClass::multiply)},
                     2000),
              1000, "integer work leaves the multiplier alone");
}

// Four wide in one stage and eight wide in the others: four in a cycle.
TEST(widths) {
  const std::vector<TraceNode> mix{record(InstructionClass::integer),
                                   record(InstructionClass::integer),
                                   record(InstructionClass::integer),
                                   record(InstructionClass::float_add),
                                   record(InstructionClass::float_add),
                                   load(64),
                                   load(64),
                                   store(64)};
  check_equal(steady(plain_core(), mix, 2000), 1000, "eight of eight kinds in a cycle");
  for (auto width :
       {&CoreSpec::fetch_width, &CoreSpec::dispatch_width, &CoreSpec::commit_width, &CoreSpec::issue_width}) {
    CoreSpec spec = plain_core();
    spec.*width = 4;
    check_equal(steady(spec, mix, 2000), 2000, "four in a cycle");
  }
  CoreSpec spec = plain_core();
  spec.fetch_bytes = 16;
  check_equal(steady(spec, mix, 2000), 2000, "sixteen bytes in a cycle");
  std::vector<TraceNode> compressed = mix;
  for (TraceNode& each : compressed) each.flags |= Trait::compressed;
  check_equal(steady(spec, compressed, 2000), 1000, "sixteen bytes are eight compressed instructions");
  // A taken branch is the last of its fetch group.
  std::vector<TraceNode> jumps{record(InstructionClass::integer), record(InstructionClass::integer),
                               record(InstructionClass::jump)};
  check_equal(steady(plain_core(), jumps, 2000), 1000, "a taken branch ends the group");
}

// Instructions compacted into a record take slots and entries, and do nothing.
TEST(compacted) {
  CoreSpec spec = plain_core();
  spec.fetch_width = spec.dispatch_width = spec.commit_width = 4;
  TraceNode heavy = record(InstructionClass::integer);
  heavy.timing.weight = 7;
  const Ran ran = run(spec, at_addresses(repeat({heavy}, 1000)));
  check_equal(ran.instructions, 8000, "compacted instructions are counted");
  check_equal(steady(spec, {heavy}, 2000), 2000, "eight instructions in two cycles");
  heavy.timing.weight = 2;
  check_equal(steady(spec, {heavy}, 4000), 1500, "three instructions in three quarters of a cycle");
}

// The first instruction is dispatched when the front end is through, and each mispredicted branch costs
// resolving, redirecting and the front end again.
TEST(mispredicts) {
  CoreSpec spec = plain_core();
  const std::vector<TraceNode> part{record(InstructionClass::integer), record(InstructionClass::integer, 1),
                                    branch(1)};
  spec.branch.kind = "always_wrong";
  // From the fetch of the first: the front end, a cycle to issue, three dependent instructions.
  const std::int64_t each = spec.front_end_depth + 1 + 2 * spec.timing.integer.latency +
                            spec.timing.control.latency + spec.mispredict_penalty;
  check_equal(steady(spec, part, 200), 100 * each, "every branch goes wrong");
  const Ran ran = run(spec, at_addresses(repeat(part, 200)));
  check_equal(ran.value("core", "mispredicts"), 200, "mispredicts");
  check_between(ran.stack[Cause::branch], 199 * (spec.front_end_depth + spec.mispredict_penalty - 2),
                200 * (spec.front_end_depth + spec.mispredict_penalty + 1), "cycles lost to branches");
}

// An entry is free when its instruction leaves: a divide at the head lets in as many as there are entries
// for.
TEST(full_buffers_stall_dispatch) {
  // A window of n with a divide each n instructions: each divide waits for the one before to commit.
  CoreSpec spec = plain_core();
  spec.reorder_buffer = 16;
  std::vector<TraceNode> part(16, record(InstructionClass::integer));
  part[0] = record(InstructionClass::divide, 16);
  const std::int64_t small = steady(spec, part, 200);
  spec.reorder_buffer = 128;
  const std::int64_t large = steady(spec, part, 200);
  check_equal(large, 100 * spec.timing.divide.latency, "a large window shows only the chain of divisions");
  check(small > large, "a small window waits for each division");

  CoreSpec registers = plain_core();
  registers.integer_registers = 32 + 4;
  std::vector<TraceNode> writes(64, record(InstructionClass::integer));
  for (TraceNode& each : writes) each.flags |= Trait::writes_integer;
  // A register is free again when its instruction commits: it issues a cycle after dispatch and completes a
  // cycle later.
  check_equal(steady(registers, writes, 200), 100 * 64 / 4 * 2, "four registers for two cycles each");

  // An issue queue of four, full of those who wait for a division: the next division enters when they issue,
  // and issues a cycle later.
  CoreSpec queue = plain_core();
  queue.issue_queue = 4;
  queue.ports = "integer control; integer multiply; integer; divide; float; load; store; atomic fence system";
  std::vector<TraceNode> waiting{record(InstructionClass::divide, 6),  record(InstructionClass::integer, 1),
                                 record(InstructionClass::integer, 2), record(InstructionClass::integer, 3),
                                 record(InstructionClass::integer, 4), record(InstructionClass::integer)};
  check_equal(steady(queue, waiting, 200), 100 * (queue.timing.divide.latency + 1),
              "a queue full of waiting ones");
  // The same with those that wait compacted.
  std::vector<TraceNode> compacted{record(InstructionClass::divide, 2), record(InstructionClass::integer)};
  compacted[1].timing.weight = 4;
  check_equal(steady(queue, compacted, 200), 100 * queue.timing.divide.latency, "nobody in the queue");
  compacted[0].timing.waiters = 4;
  check_equal(steady(queue, compacted, 200), 100 * (queue.timing.divide.latency + 1),
              "a queue full of compacted ones");
}

TEST(wrong_specs) {
  const auto refused = [](const CoreSpec& spec, const std::string& word) {
    try {
      Core core(spec);
      check(false, "should be refused: " + word);
    } catch (const std::invalid_argument& error) {
      check(std::string(error.what()).find(word) != std::string::npos,
            "'" + word + "' should be in: " + error.what());
    }
  };
  CoreSpec spec = plain_core();
  spec.ports = "integer; flaot";
  refused(spec, "there is no kind 'flaot'");
  spec.ports = "integer control";
  refused(spec, "no port takes 'multiply'");
  spec = plain_core();
  spec.memory_model = "weak";
  refused(spec, "memory_model");
}

}  // namespace
