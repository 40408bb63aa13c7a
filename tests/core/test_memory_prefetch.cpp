// SPDX-License-Identifier: Apache-2.0
// Prefetchers at the first and at the last private level, instructions fetched ahead, and whose MSHRs
// they take.
#include <vector>

#include "test_memory_machine.hpp"

using namespace manyscale;
using namespace manyscale::memory;
using namespace manyscale::memory::test;
using namespace manyscale::test;

namespace {

PrefetcherSpec stride(std::int64_t distance) {
  PrefetcherSpec spec;
  spec.kind = "stride";
  spec.distance = distance;
  spec.degree = 4;
  return spec;
}

std::vector<Step> stream(int lines, AccessKind kind, Time begin = 0, Time between = us,
                         std::uint64_t address = 0) {
  std::vector<Step> steps;
  for (int i = 0; i < lines; ++i)
    steps.push_back({begin + i * between, address + static_cast<std::uint64_t>(i) * 64, kind, 7});
  return steps;
}

int served_by(const Prober& prober, Served served, std::size_t from = 0) {
  int count = 0;
  for (std::size_t i = from; i < prober.outcomes.size(); ++i) count += prober.outcomes[i].served == served;
  return count;
}

TEST(each_level_has_a_prefetcher_of_its_own) {
  for (const bool coherent : {false, true}) {
    PrivateCachesSpec spec = two_levels(coherent);
    const auto served = [&](Served level) {
      Machine machine(spec, {stream(32, load)});
      return served_by(*machine.probers[0], level);
    };
    check_equal(served(Served::dram), 32, "no prefetcher: all lines come from memory");
    spec.prefetcher = stride(4);
    check_equal(served(Served::dram), 3, "at L2: two equal strides, then it runs ahead");
    check_equal(served(Served::l2), 29, "at L2: the rest is there when asked for");
    spec.first_prefetcher = stride(2);
    check_equal(served(Served::l1), 29, "at both: the rest is in L1 when asked for");
    spec.prefetcher = {};
    check_equal(served(Served::l1), 29, "at L1 alone: likewise, from memory");
    check_equal(served(Served::dram), 3, "at L1 alone: the first three");
  }
}

TEST(an_l1_prefetch_from_l2_takes_the_time_of_l2) {
  PrivateCachesSpec spec = two_levels(false);
  spec.levels[0].size = 1024;
  spec.first_prefetcher = stride(1);
  // Lines 0 to 31 into L2, far more than L1 keeps; then again, a line every 5 ns.
  std::vector<Step> steps = stream(32, load);
  for (const Step& step : stream(32, load, 100 * us, 5 * nanosecond)) steps.push_back(step);
  Machine machine(spec, {steps});
  // With one line of lead: asked for 1 ns after the access before, there 11 ns later, so 8 ns after its own.
  for (std::size_t i = 40; i < 64; ++i) machine.expect(0, i, 1 + 11 - 5, Served::l2, "in flight from L2");
  const PrefetcherStatistics& counted = machine.probers[0]->caches.first_prefetcher_statistics();
  check(counted.late.value() >= 24, "they count as late");
  check_equal(counted.useless.value(), 1, "the one beyond the end of the first pass was for nothing");
}

TEST(prefetches_of_l2_take_no_mshrs_of_l1) {
  for (const bool apart : {false, true}) {
    PrivateCachesSpec spec = two_levels(false);
    spec.levels[0].outstanding_misses = 2;
    spec.levels[1].outstanding_misses = 12;
    spec.prefetcher = stride(16);
    spec.mshrs_per_level = apart;
    Machine machine(spec, {stream(64, load, 0, 20 * nanosecond)});
    const double most = machine.probers[0]->caches.levels()[1]->statistics.outstanding.highest();
    check_equal(static_cast<std::int64_t>(most), apart ? 11 : 2,
                apart ? "one MSHR is kept free" : "as few as L1 has");
    for (const auto& outcome : machine.probers[0]->outcomes)
      check(outcome.latency > 0, "every access is done");
  }
  // Without a prefetcher the MSHRs of L1 are the limit either way.
  PrivateCachesSpec spec = two_levels(false);
  spec.levels[0].outstanding_misses = 2;
  spec.mshrs_per_level = true;
  Machine machine(spec, {stream(16, load, 0, nanosecond)});
  check_equal(
      static_cast<std::int64_t>(machine.probers[0]->caches.levels()[1]->statistics.outstanding.highest()), 2,
      "two at a time");
}

TEST(instructions_are_fetched_ahead) {
  PrivateCachesSpec spec = two_levels(true);
  spec.instruction->size = 512;
  std::vector<Step> steps = stream(24, fetch);
  for (const Step& step : stream(24, fetch, 100 * us)) steps.push_back(step);
  {
    Machine machine(spec, {steps});
    check_equal(served_by(*machine.probers[0], Served::dram), 24, "not ahead: each from memory");
    check_equal(served_by(*machine.probers[0], Served::l2), 24, "not ahead: each from L2 the second time");
  }
  spec.fetch_ahead = 1;
  Machine machine(spec, {steps});
  check_equal(served_by(*machine.probers[0], Served::dram), 1, "one ahead: only the first from memory");
  check_equal(served_by(*machine.probers[0], Served::l2), 1,
              "one ahead: only the first from L2 the second time");
  // Nothing is fetched beyond the page.
  Machine page(spec, {stream(4, fetch, 0, us, 4096 - 128)});
  check_equal(served_by(*page.probers[0], Served::dram), 2, "the first of each page");
}

TEST(everything_together_stays_consistent) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    Random random(seed, 3);
    PrivateCachesSpec spec = two_levels(seed % 2 == 0);
    spec.levels[0].size = 512;
    spec.levels[1].size = 4096;
    spec.levels[0].outstanding_misses = 3;
    spec.instruction->size = 512;
    spec.prefetcher = stride(6);
    spec.first_prefetcher = stride(2);
    spec.first_prefetcher.kind = seed % 3 == 0 ? "next_line" : "stride";
    spec.prefetcher.kind = seed % 3 == 1 ? "stream" : "stride";
    spec.fetch_ahead = 2;
    spec.mshrs_per_level = seed % 4 < 2;
    std::vector<std::vector<Step>> steps(3);
    for (auto& core : steps) {
      for (int run = 0; run < 400; ++run) {
        const auto draw = random.below(3);
        const AccessKind kind = draw == 0 ? fetch : draw == 1 ? load : store;
        const auto begin = static_cast<Time>(random.below(200 * us));
        for (const Step& step :
             stream(8, kind, begin, static_cast<Time>(random.below(40)) * nanosecond, random.below(200) * 64))
          core.push_back(step);
      }
    }
    Machine machine(spec, steps, 65536);
    for (Prober* prober : machine.probers) {
      for (const auto& outcome : prober->outcomes) {
        if (outcome.latency < 0) check(false, "an access was lost");
      }
      check_equal(static_cast<std::int64_t>(prober->caches.outstanding()), 0, "nothing is outstanding");
      const CacheArray& second = prober->caches.levels()[1]->array;
      for (const Level* level : {prober->caches.instruction(), prober->caches.levels()[0].get()}) {
        for (std::uint32_t at = 0; at < level->array.lines(); ++at) {
          if (!is_present(level->array.line(at).state)) continue;
          check(second.find_present(level->array.tag(at)) != CacheArray::none, "first levels lie within L2");
        }
      }
    }
  }
}

TEST(wrong_parameters_are_refused) {
  PrivateCachesSpec spec = one_level(false);
  spec.first_prefetcher = stride(2);
  check_refused([&] { Machine machine(spec, {{}}); }, "first_prefetcher");
  spec = one_level(false);
  spec.fetch_ahead = 1;
  check_refused([&] { Machine machine(spec, {{}}); }, "fetch_ahead");
  spec = two_levels(false);
  spec.first_prefetcher = stride(2);
  spec.first_prefetcher.line_size = 128;
  check_refused([&] { Machine machine(spec, {{}}); }, "line_size");
}

}  // namespace
