// SPDX-License-Identifier: Apache-2.0
// Memory as a core sees it, against closed forms: misses side by side, stores and what loads get from them,
// fences and atomic operations, lines that two cores want, instruction lines and pages.
#include <functional>

#include "test_cpu_core.hpp"

using namespace manyscale;
using namespace manyscale::cpu;
using namespace manyscale::cpu::test;

namespace {

// From an L1 miss to the data: its tags, and the memory.
constexpr std::int64_t miss_latency = 1 + 100;
constexpr std::uint64_t data = 0x1000000;
using Scripts = std::vector<std::vector<TraceNode>>;  // one for each core

// n records made by their number, each line touched once.
std::vector<TraceNode> make(std::size_t n, const std::function<TraceNode(std::size_t)>& one) {
  std::vector<TraceNode> records;
  for (std::size_t i = 0; i < n; ++i) records.push_back(one(i));
  return at_addresses(std::move(records));
}

// The cycles of the second half.
std::int64_t second_half(const CoreSpec& spec, std::size_t n,
                         const std::function<TraceNode(std::size_t)>& one) {
  return run(spec, make(n, one)).cycles - run(spec, make(n / 2, one)).cycles;
}

// Misses that depend on each other come one by one; others as many at a time as the window, the load queue
// and the cache let them.
TEST(misses_side_by_side) {
  CoreSpec spec = plain_core();
  const auto chase = [](std::size_t i) { return load(data + i * 64, 1); };
  check_equal(second_half(spec, 400, chase), 200 * miss_latency, "a chase through memory");
  const Ran ran = run(spec, make(400, chase));
  check_between(ran.stack[Cause::dram], 400 * (miss_latency - 2), 400 * miss_latency,
                "cycles of the chase that waited for memory");

  struct Limit {
    const char* what;
    std::int64_t reorder_buffer, load_queue, outstanding;
    std::size_t spacing;
    std::int64_t at_a_time;
  };
  for (const Limit& limit : {Limit{"window", 64, 128, 64, 8, 8},
                             {"window", 128, 128, 64, 8, 16},
                             {"window", 128, 128, 64, 32, 4},
                             {"load queue", 128, 6, 64, 1, 6},
                             {"outstanding misses", 128, 128, 10, 1, 10}}) {
    spec.reorder_buffer = limit.reorder_buffer;
    spec.load_queue = limit.load_queue;
    spec.l1.outstanding_misses = limit.outstanding;
    const std::size_t loads = 960;
    const auto spaced = [&](std::size_t i) {
      return i % limit.spacing == 0 ? load(data + i / limit.spacing * 64) : record(InstructionClass::integer);
    };
    const std::int64_t cycles = second_half(spec, loads * limit.spacing, spaced);
    const auto expected = static_cast<std::int64_t>(loads) / 2 * miss_latency / limit.at_a_time;
    // The windows do not fit exactly behind each other: a few cycles each time.
    check_between(cycles, expected * 98 / 100, expected * 112 / 100,
                  std::string("misses at a time, limited by the ") + limit.what);
  }
}

// A load gets the data of an older store after the forwarding latency.
TEST(forwarding) {
  const CoreSpec spec = plain_core();
  // x = *p + 1; *p = x: load, addition, store, over and over.
  const std::vector<TraceNode> part{load(data), record(InstructionClass::integer, 1), store(data, 1)};
  check_equal(steady(spec, part, 400), 200 * (spec.forward_latency + spec.timing.integer.latency),
              "a value through memory");
  const Ran ran = run(spec, at_addresses(repeat(part, 400)));
  check_between(ran.value("core", "forwarded_loads"), 398, 399, "loads served by stores");
  std::vector<TraceNode> halves{load(data), record(InstructionClass::integer, 1), store(data + 4, 1)};
  halves[2].size = 4;
  check_equal(steady(spec, halves, 400), 200 * (spec.failed_forward_latency + spec.timing.integer.latency),
              "half a value through memory");
  // A store of unknown address: a load to another address passes it, or not.
  CoreSpec careful = spec;
  careful.speculative_loads = false;
  const std::vector<TraceNode> chain{record(InstructionClass::divide, 2), store(data, 0, 1)};
  check_equal(steady(spec, chain, 200), 100 * spec.timing.divide.latency, "divisions and stores");
  // Each division needs the load before it, which needs nothing but, perhaps, the store's address.
  const std::vector<TraceNode> behind{record(InstructionClass::divide, 1), store(data, 0, 1),
                                      load(data + 64)};
  check_equal(steady(spec, behind, 200), 100 * spec.timing.divide.interval, "a load that passes the store");
  check_equal(steady(careful, behind, 200),
              100 * (spec.timing.divide.latency + spec.timing.store.latency + 4),
              "a load that waits for the store's address");
}

// Stores that miss are written after commit, until the store queue is full.
TEST(store_buffer) {
  CoreSpec spec = plain_core();
  spec.store_queue = 16;
  const auto missing = [](std::size_t i) { return store(data + i * 64); };
  for (const std::int64_t outstanding : {1, 4}) {
    spec.outstanding_stores = outstanding;
    const std::int64_t cycles = second_half(spec, 400, missing);
    check_between(cycles, 200 * miss_latency / outstanding, 200 * (miss_latency + 3) / outstanding,
                  "stores that miss, " + std::to_string(outstanding) + " at a time");
  }
  const Ran full = run(spec, make(400, missing));
  check(full.stack[Cause::store_buffer] > full.cycles * 9 / 10, "the store buffer is what it waits for");
  const Ran few = run(spec, make(12, missing));
  check(few.cycles < 40, "a few stores do not hold anybody up: " + std::to_string(few.cycles));
  // In program order an entry is free only when all older stores are written.
  spec.outstanding_stores = 16;
  const auto mixed = [](std::size_t i) { return store(i % 16 == 0 ? data + i * 64 : data); };
  const std::int64_t relaxed = second_half(spec, 640, mixed);
  spec.memory_model = "tso";
  const std::int64_t ordered = second_half(spec, 640, mixed);
  check(ordered > relaxed * 3 / 2, "stores in order wait for the one that misses: " +
                                       std::to_string(ordered) + " and " + std::to_string(relaxed));
}

TraceNode halting(InstructionClass kind, std::uint64_t address = 0) {
  TraceNode made = record(kind);
  made.address = address;
  made.size = address == 0 ? 0 : 8;
  made.flags = Trait::halts_stream;
  return made;
}

// A fence waits until it is the oldest and older stores are written; it is announced to the source then and
// not before.
TEST(fences) {
  const CoreSpec spec = plain_core();
  const Ran ran = run(
      spec, at_addresses({store(data), halting(InstructionClass::fence), record(InstructionClass::integer)}));
  check_equal(static_cast<std::int64_t>(ran.reached.size()), 1, "one fence is reached");
  // Attached after 1 ns: front end, issue, address, commit; a cycle later the store is written.
  const std::int64_t committed = 1 + spec.front_end_depth + 1 + spec.timing.store.latency;
  check_equal(ran.reached[0], (committed + 1 + miss_latency + 1) * nanosecond,
              "when the fence reaches the source");
  check_between(ran.stack[Cause::synchronisation], miss_latency - 2, miss_latency + 4, "cycles at the fence");
  // Without stores each takes the way to the source and back.
  check_equal(steady(spec, {halting(InstructionClass::fence)}, 200), 100 * 2, "fences behind each other");
}

// A run that stops while a core waits for its source: that core does not sleep.
TEST(a_core_that_waits_for_its_source_does_not_sleep) {
  Simulation simulation(1);
  const std::vector<TraceNode> records =
      at_addresses({halting(InstructionClass::fence), record(InstructionClass::integer)});
  auto& source = simulation.add(
      "source", std::make_unique<ScriptedSource>(std::vector<std::vector<TraceNode>>{records}));
  auto& core = static_cast<Core&>(simulation.add("core", std::make_unique<Core>(plain_core())));
  auto& channel = add_model(simulation, "channel", "memory.dram",
                            {{"backend", "simple"}, {"latency", memory_latency}, {"bandwidth", fast}});
  simulation.connect(*core.ports()[0], *source.ports()[0], 50 * nanosecond);
  simulation.connect(*core.ports()[1], *channel.ports()[0], 0);
  RunOptions options;
  options.until = 120 * nanosecond;  // the fence was reached, and the source has not heard of it
  simulation.run(options);
  const StatisticRows rows = simulation.statistics();
  check_equal(core.instructions(), 1, "the fence was executed");
  check_equal(core.stack()[Cause::sleeping], 0, "cycles asleep");
}

// An atomic operation waits for older stores to be written where stores are in order, and only there.
TEST(atomic_operations_wait_for_stores_in_total_store_order) {
  for (const bool in_order : {false, true}) {
    CoreSpec spec = plain_core();
    spec.memory_model = in_order ? "tso" : "relaxed";
    const auto reached = [&](std::vector<TraceNode> records) {
      return run(spec, at_addresses(std::move(records))).reached[0];
    };
    const Time alone = reached({halting(InstructionClass::atomic, data + 4096)});
    const Time behind = reached({store(data), halting(InstructionClass::atomic, data + 4096)});
    const std::string what = in_order ? "in total store order" : "relaxed";
    check_between(static_cast<double>(behind - alone) / nanosecond, in_order ? miss_latency : 0,
                  in_order ? miss_latency + 4 : 4, "cycles behind a store that misses, " + what);
    // A system call waits for none of them.
    const Time call = reached({halting(InstructionClass::system)});
    const Time call_behind = reached({store(data), halting(InstructionClass::system)});
    check_between(static_cast<double>(call_behind - call) / nanosecond, 0, 4,
                  "cycles of a system call behind a store that misses, " + what);
  }
}

// Two cores that want one line, and what they pay for it.
TEST(sharing) {
  const CoreSpec spec = plain_core();
  const auto halves = [&](const std::function<Scripts(std::size_t)>& scripts) {
    return run_coherent(spec, scripts(400))[0].cycles - run_coherent(spec, scripts(200))[0].cycles;
  };
  const std::int64_t own =
      halves([&](std::size_t n) { return Scripts{make(n, [](std::size_t) { return load(data, 1); })}; });
  check_equal(own, 200 * 4, "loads of an own line");
  // Atomic operations on one line, by one core and by two.
  const auto atomics = [&](std::size_t n, std::uint64_t address) {
    return make(n, [&](std::size_t) { return halting(InstructionClass::atomic, address); });
  };
  const std::int64_t alone = halves([&](std::size_t n) { return Scripts{atomics(n, data)}; });
  const std::int64_t apart =
      halves([&](std::size_t n) { return Scripts{atomics(n, data), atomics(n, data + 64)}; });
  const std::int64_t together =
      halves([&](std::size_t n) { return Scripts{atomics(n, data), atomics(n, data + 8)}; });
  check_equal(apart, alone, "different lines do not meet");
  check(together > 2 * alone,
        "words of one line meet: " + std::to_string(together) + " and " + std::to_string(alone));
  // With so much work in between that the other core has always taken the line meanwhile, each operation pays
  // the whole way instead of a hit: to the home and back, and from the home to the other core and back. A
  // message takes 7 cycles, and one with data 8.
  const auto seldom = [&](std::size_t n, std::uint64_t address) {
    return make(n * 11, [&](std::size_t i) {
      return i % 11 == 0 ? halting(InstructionClass::atomic, address) : record(InstructionClass::divide, 1);
    });
  };
  const std::int64_t turns =
      halves([&](std::size_t n) { return Scripts{seldom(n, data), seldom(n, data + 8)}; });
  const std::int64_t no_turns = halves([&](std::size_t n) { return Scripts{seldom(n, data)}; });
  const std::int64_t hit = spec.l1.tag_latency + spec.l1.data_latency;
  // The home looks into its tags for the request and for the answer, and into its data then.
  const std::int64_t tags = 8, tags_and_data = 8 + 22;
  const std::int64_t taken = spec.l1.tag_latency + 7 + tags + 7 + spec.l1.tag_latency + 8 + tags_and_data + 8;
  check_equal(turns - no_turns, 200 * (taken - hit), "a line that goes back and forth");
  // A line that is only in the slice, and one that another core has changed.
  const auto first = [&](std::vector<TraceNode> records) { return at_addresses(std::move(records)); };
  const auto load_after = [&](bool changed) {
    std::vector<TraceNode> writer = repeat({store(data)}, changed ? 1 : 0);
    writer.push_back(record(InstructionClass::integer));
    std::vector<TraceNode> reader = repeat({record(InstructionClass::divide, 1)}, 20);
    reader.push_back(load(data, 1));
    reader.push_back(load(data + 4096, 1));
    const auto ran = run_coherent(spec, {first(writer), first(reader)});
    return ran[1];
  };
  check(load_after(true).stack[Cause::peer] > 0, "the other core's cache is waited for");
  check_equal(load_after(false).stack[Cause::peer], 0, "nobody else's cache is waited for");
}

// In order: what comes after a load runs until its data is needed.
TEST(in_order) {
  CoreSpec spec = plain_core();
  spec.in_order = true;
  const auto used = [](std::size_t i) {
    return i % 12 == 0 ? load(data + i / 12 * 64) : record(InstructionClass::integer, i % 12 == 11 ? 11 : 0);
  };
  check_equal(second_half(spec, 12 * 80, used), 40 * miss_latency, "each load is waited for at its use");
  const auto unused = [](std::size_t i) {
    return i % 12 == 0 ? load(data + i / 12 * 64) : record(InstructionClass::integer);
  };
  check(second_half(spec, 12 * 80, unused) < 40 * miss_latency / 2,
        "loads that nobody needs are not waited for");
  spec.in_order = false;
  check(second_half(spec, 12 * 80, used) < 40 * miss_latency / 4, "out of order the loads come side by side");
}

// A straight line of code that is not in the instruction cache: every line is fetched from memory.
TEST(instruction_lines) {
  CoreSpec spec = plain_core();
  spec.l1i.size = 32 * 1024;
  const auto straight = [&](std::size_t n) {
    std::vector<TraceNode> records(n, record(InstructionClass::integer));
    for (std::size_t i = 0; i < n; ++i) records[i].pc = 0x10000 + i * 4;
    return records;
  };
  const std::int64_t hit = spec.l1i.tag_latency + spec.l1i.data_latency;
  const std::int64_t lines = 100;
  const std::int64_t cycles = run(spec, straight(32 * lines)).cycles - run(spec, straight(16 * lines)).cycles;
  check_equal(cycles, lines * (miss_latency - hit + 64 / 4 / spec.fetch_width), "lines from memory");
  const Ran ran = run(spec, straight(16 * lines));
  check(ran.stack[Cause::fetch] > ran.cycles * 9 / 10, "the instruction cache is what it waits for");
  check_equal(steady(spec, {record(InstructionClass::integer, 1)}, 4000), 2000,
              "code that fits is fetched once");
}

// A page that no TLB knows costs a walk.
TEST(pages) {
  CoreSpec spec = plain_core();
  spec.translation.enabled = true;
  spec.translation.data.entries = 16;
  spec.translation.data.ways = 0;
  spec.translation.second.entries = 0;
  spec.translation.walk_penalty = 30;
  // 32 pages in turn, one line each, all of which stay in the cache.
  const auto turn = [](std::size_t i) { return load(data + i % 32 * (4096 + 64), 1); };
  check_equal(second_half(spec, 1280, turn), 640 * (4 + 30), "a chain of loads with a walk each");
  const Ran ran = run(spec, make(1280, turn));
  check_between(ran.stack[Cause::tlb], 1280 * 29, 1280 * 30, "cycles of page walks");
  const auto few = [](std::size_t i) { return load(data + i % 16 * (4096 + 64), 1); };
  check_equal(second_half(spec, 1280, few), 640 * 4, "pages that the TLB knows");
  // Walks that read their entries: each entry is in the L1 cache after the first time.
  spec.translation.walk_penalty = 0;
  spec.translation.walk_cache.entries = 0;
  check_equal(second_half(spec, 1280, turn), 640 * (4 + 4 * spec.translation.levels),
              "walks whose entries are in the cache");
}

TEST(split_lines) {
  const CoreSpec spec = plain_core();
  const Ran ran = run(spec, at_addresses(repeat({load(data + 60), store(data + 1020)}, 100)));
  check_equal(ran.value("core", "split_accesses"), 200, "accesses that cross a line");
  check_equal(steady(spec, {load(data + 60, 1)}, 400), 200 * 5, "the second part comes a cycle later");
}

}  // namespace
