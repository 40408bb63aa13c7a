// SPDX-License-Identifier: Apache-2.0
// The instruction side of private caches, and which level is said to have served an access: each case at its
// exact latency, worked out by hand.
#include <vector>

#include "test_memory_machine.hpp"

using namespace manyscale;
using namespace manyscale::memory;
using namespace manyscale::memory::test;
using namespace manyscale::test;

namespace {

// Beyond L2: tags 1 + 3, link 5, slice 8 + 22, link 5.
constexpr Time from_slice = 44;
// Instead of the slice's data: link 10, memory 4 + 40, link 10.
constexpr Time from_dram = 4 + 5 + 8 + 10 + 44 + 10 + 5;
// The slice asks the owner: tag 8, link 5, its tag 3, link 5, then the slice's tag and data.
constexpr Time from_peer = 4 + 5 + 8 + 5 + 3 + 5 + 8 + 22 + 5;

TEST(each_level_is_told_apart) {
  for (const bool coherent : {false, true}) {
    const std::string kind = coherent ? "coherent" : "not coherent";
    std::vector<Step> steps = {
        {0, 0, load},                             // 0: from memory
        {1 * us, 0, load},                        // 1: in L1
        {2 * us, 2048, load},                     // 2, 3: these two push line 0 out of L1 (2 ways, 32 sets)
        {3 * us, 4096, load}, {4 * us, 0, load},  // 4: still in L2
    };
    // Lines of the same set of L2 (4 ways, 64 sets) push line 0 out of it.
    for (int i = 1; i <= 4; ++i) steps.push_back({(4 + i) * us, static_cast<std::uint64_t>(i) * 65536, load});
    steps.push_back({20 * us, 0, load});
    Machine machine(two_levels(coherent), {steps});
    machine.expect(0, 0, from_dram, Served::dram, kind + ": the first access");
    machine.expect(0, 1, 4, Served::l1, kind + ": again");
    machine.expect(0, 4, 1 + 3 + 8, Served::l2, kind + ": after L1 lost it");
    machine.expect(0, steps.size() - 1, from_slice, Served::shared, kind + ": after L2 lost it");
  }
}

TEST(waiting_for_a_line_under_way_counts_as_where_it_comes_from) {
  Machine machine(two_levels(false), {{{0, 0, load}, {10 * nanosecond, 8, load}, {1 * us, 0, load}}});
  machine.expect(0, 1, from_dram - 10, Served::dram, "joined the first");
  machine.expect(0, 2, 4, Served::l1, "later");
}

TEST(other_cores_lines_are_served_by_a_peer) {
  Machine machine(two_levels(true),
                  {{{0, 0, store}, {4 * us, 0, load}, {5 * us, 128, load}, {7 * us, 128, store}},
                   {{1 * us, 0, load}, {2 * us, 0, load}, {6 * us, 128, load}}});
  machine.expect(0, 0, from_dram, Served::dram, "a store that misses");
  machine.expect(1, 0, from_peer, Served::peer, "a line that another core has written");
  machine.expect(1, 1, 4, Served::l1, "again");
  machine.expect(0, 1, 4, Served::l1, "the writer keeps it to read");
  // The other core shares the line: it must be told, and it has no data to send back.
  machine.expect(0, 3, 4 + 5 + 8 + 5 + 3 + 5 + 8 + 5, Served::peer, "write permission taken from a sharer");
}

TEST(fetches_have_a_level_of_their_own) {
  for (const bool coherent : {false, true}) {
    std::vector<Step> steps = {{0, 0, fetch},       {1 * us, 32, fetch},  {2 * us, 0, load},
                               {3 * us, 0, load},   {4 * us, 512, fetch}, {5 * us, 1024, fetch},
                               {6 * us, 0, fetch},  {7 * us, 0, load},    {8 * us, 64, load},
                               {9 * us, 64, fetch}, {10 * us, 64, fetch}};
    Machine machine(two_levels(coherent), {steps});
    machine.expect(0, 0, from_dram, Served::dram, "the first fetch");
    machine.expect(0, 1, 3, Served::l1, "the same line");
    machine.expect(0, 2, 12, Served::l2, "as data it is in L2 only");
    machine.expect(0, 3, 4, Served::l1, "and then in L1D too");
    machine.expect(0, 6, 12, Served::l2, "two lines of its set (2 ways, 8 sets) pushed it out of L1I");
    machine.expect(0, 7, 4, Served::l1, "but not out of L1D");
    machine.expect(0, 9, 12, Served::l2, "what was read as data is not in L1I");
    machine.expect(0, 10, 3, Served::l1, "until it was fetched");
    check_equal(machine.probers[0]->caches.instruction()->statistics.reads.value(), 7, "fetches");
    check_equal(machine.probers[0]->caches.instruction()->statistics.hits.value(), 2, "of them hits");
  }
}

TEST(what_the_second_level_loses_the_level_of_instructions_loses) {
  std::vector<Step> steps = {{0, 0, fetch}};
  for (int i = 1; i <= 4; ++i) steps.push_back({i * us, static_cast<std::uint64_t>(i) * 4096, load});
  steps.push_back({5 * us, 0, fetch});
  for (const bool coherent : {false, true}) {
    Machine machine(two_levels(coherent), {steps});
    machine.expect(0, steps.size() - 1, from_slice, Served::shared,
                   "four lines of its set in L2 pushed it out");
  }
}

TEST(writes_drop_instructions) {
  Machine own(two_levels(true),
              {{{0, 0, fetch}, {1 * us, 0, store}, {2 * us, 0, fetch}, {3 * us, 0, fetch}}});
  own.expect(0, 2, 12, Served::l2, "the core itself wrote the line");
  own.expect(0, 3, 3, Served::l1, "it is there again");
  Machine other(two_levels(true), {{{0, 0, fetch}, {2 * us, 0, fetch}}, {{1 * us, 0, store}}});
  other.expect(0, 1, from_peer, Served::peer, "another core wrote the line");
}

TEST(code_is_shared_by_all_who_fetch_it) {
  Machine machine(two_levels(true),
                  {{{0, 0, fetch}, {3 * us, 0, fetch}}, {{1 * us, 0, fetch}}, {{2 * us, 0, fetch}}});
  machine.expect(1, 0, from_slice, Served::shared, "the second core asks nobody else");
  machine.expect(0, 1, 3, Served::l1, "the first keeps it");
  check_equal(machine.statistic("downgrades_sent"), 0, "downgrades");
}

TEST(one_level_asks_for_itself) {
  // Without L2 a miss leaves after one tag.
  for (const bool coherent : {false, true}) {
    Machine machine(one_level(coherent), {{{0, 0, fetch},
                                           {1 * us, 0, fetch},
                                           {2 * us, 0, load},
                                           {3 * us, 2048, load},
                                           {4 * us, 4096, load},
                                           {5 * us, 0, fetch},
                                           {6 * us, 4096, fetch},
                                           {7 * us, 0, store},
                                           {8 * us, 0, fetch}}});
    machine.expect(0, 0, from_dram - 3, Served::dram, "one level: the first fetch");
    machine.expect(0, 1, 3, Served::l1, "one level: again");
    machine.expect(0, 2, from_slice - 3, Served::shared, "one level: as data it must be asked for");
    machine.expect(0, 5, 3, Served::l1, "one level: what L1D loses, L1I keeps");
    machine.expect(0, 6, 1 + 4, Served::l1, "one level: L1D beside it has the line");
    machine.expect(0, 8, 1 + 4, Served::l1, "one level: a store dropped it, L1D has it");
  }
  Machine other(one_level(true), {{{0, 0, fetch}, {2 * us, 0, fetch}}, {{1 * us, 0, store}}});
  other.expect(0, 1, from_peer - 3 - 2, Served::peer, "one level: another core wrote the line");
}

TEST(data_and_fetches_of_one_line_under_way_wait_for_each_other) {
  for (const auto& spec : {two_levels(true), one_level(true), two_levels(false), one_level(false)}) {
    const Time less = spec.levels.size() == 1 ? 3 : 0;
    Machine machine(spec, {{{0, 0, load},
                            {10 * nanosecond, 0, fetch},
                            {20 * nanosecond, 0, store},
                            {2 * us, 64, fetch},
                            {2 * us + 10 * nanosecond, 64, load},
                            {2 * us + 20 * nanosecond, 64, fetch},
                            {5 * us, 0, fetch},
                            {6 * us, 64, store}}});
    machine.expect(0, 1, from_dram - less - 10, Served::dram, "a fetch joins a load");
    machine.expect(0, 5, from_dram - less - 20, Served::dram, "a fetch joins a fetch");
    for (const Measured& outcome : machine.probers[0]->outcomes)
      check(outcome.latency > 0, "every access is done");
  }
}

// Random accesses of four cores: instructions never outlive their line in L2, nor another core's write.
TEST(random_accesses_keep_the_levels_consistent) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Random random(seed, 1);
    PrivateCachesSpec spec = seed % 2 == 0 ? two_levels(true) : one_level(true);
    spec.levels.front().size = 512;
    if (spec.levels.size() > 1) spec.levels[1].size = 2048;
    spec.instruction->size = 512;
    spec.levels.front().outstanding_misses = 3;
    std::vector<std::vector<Step>> steps(4);
    for (auto& core : steps) {
      for (int i = 0; i < 4000; ++i) {
        const auto draw = random.below(10);
        core.push_back({static_cast<Time>(random.below(400 * us)), random.below(120) * 64,
                        draw < 4   ? fetch
                        : draw < 8 ? load
                                   : store});
      }
    }
    Machine machine(spec, steps, 16384);
    for (Prober* prober : machine.probers) {
      for (const Measured& outcome : prober->outcomes) {
        if (outcome.latency < 0) check(false, "an access was lost");
      }
      const CacheArray& instructions = prober->caches.instruction()->array;
      for (std::uint32_t at = 0; at < instructions.lines(); ++at) {
        if (!is_present(instructions.line(at).state)) continue;
        const std::uint64_t line = instructions.tag(at);
        if (spec.levels.size() > 1) {
          check(prober->caches.levels()[1]->array.find_present(line) != CacheArray::none, "L1I is within L2");
        }
        for (Prober* other : machine.probers) {
          const CacheArray& outer = other->caches.levels().back()->array;
          const std::uint32_t there = other == prober ? CacheArray::none : outer.find_present(line);
          check(there == CacheArray::none || outer.line(there).state == LineState::shared,
                "nobody else may write a line that is in L1I");
        }
      }
    }
  }
}

TEST(a_fetch_without_a_level_is_refused) {
  PrivateCachesSpec spec = two_levels(false);
  spec.instruction.reset();
  check_refused([&] { Machine machine(spec, {{{0, 0, fetch}}}); }, "instructions");
  spec = two_levels(false);
  spec.instruction->line = 128;
  check_refused([&] { Machine machine(spec, {{}}); }, "line");
}

}  // namespace
