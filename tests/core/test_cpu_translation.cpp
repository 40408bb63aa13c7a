// SPDX-License-Identifier: Apache-2.0
// The translation unit of a core: how far its TLBs reach, what a walk reads and how long that takes.
#include <memory>
#include <vector>

#include "cpu/core/translation_unit.hpp"
#include "engine/simulation.hpp"
#include "engine/timer.hpp"
#include "memory/dram/dram.hpp"
#include "test_checks.hpp"

using namespace manyscale;
using namespace manyscale::cpu;
using namespace manyscale::test;
using Side = TranslationUnit::Side;
using Found = TranslationUnit::Lookup::Outcome;

namespace {

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t process = std::uint64_t{1} << 40;

TranslationUnitSpec enabled() {
  TranslationUnitSpec spec;
  spec.enabled = true;
  spec.walk_penalty = 30;
  return spec;
}

// Misses of the L1 TLB in the second of two passes over so many pages.
std::int64_t misses_over(TranslationUnit& unit, Side side, std::uint64_t pages,
                         std::uint64_t page_size = page) {
  const auto& counted = unit.statistics();
  const auto& misses = side == Side::data ? counted.data_misses : counted.instruction_misses;
  std::int64_t before = 0;
  for (int pass = 0; pass < 2; ++pass) {
    before = misses.value();
    for (std::uint64_t i = 0; i < pages; ++i) unit.lookup(process + i * page_size + i % page_size, side);
  }
  return misses.value() - before;
}

TEST(l1_tlbs_reach_as_far_as_they_have_entries) {
  TranslationUnitSpec spec = enabled();
  spec.instruction = {.entries = 32, .ways = 0, .latency = 0};
  spec.data = {.entries = 16, .ways = 0, .latency = 0};
  for (const auto& [side, entries] : {std::pair{Side::instruction, 32}, {Side::data, 16}}) {
    const auto reach = static_cast<std::uint64_t>(entries);
    TranslationUnit fits(spec), more(spec);
    check_equal(misses_over(fits, side, reach), 0, "as many pages as entries");
    check_equal(misses_over(more, side, reach + 1), entries + 1, "LRU over one page more");
  }
  spec.data.ways = 4;
  TranslationUnit sets(spec);
  check_equal(misses_over(sets, Side::data, 17), 5, "one set of four has five pages");
  spec.page_size = 2 << 20;
  TranslationUnit large(spec);
  check_equal(misses_over(large, Side::data, 16, 2 << 20), 0, "large pages reach further");
}

TEST(levels_add_their_latencies) {
  TranslationUnitSpec spec = enabled();
  spec.data = {.entries = 1, .ways = 0, .latency = 2};
  spec.instruction = {.entries = 1, .ways = 0, .latency = 0};
  spec.second = {.entries = 4, .ways = 0, .latency = 7};
  TranslationUnit unit(spec);
  check_equal(unit.lookup(process, Side::data).cycles, 2 + 7 + 30, "nobody knows the page");
  check_equal(unit.lookup(process + 8, Side::data).cycles, 2, "the L1 TLB knows it");
  check_equal(unit.lookup(process, Side::instruction).cycles, 7, "the L2 TLB is for both sides");
  check_equal(unit.lookup(process, Side::instruction).cycles, 0, "the instruction's own level has it now");
  check_equal(unit.lookup(process + page, Side::data).cycles, 39, "another page");
  check_equal(unit.lookup(process, Side::data).cycles, 9, "pushed out of the L1 TLB, not of the L2 TLB");
  check_equal(unit.lookup(2 * process, Side::data).cycles, 39, "the same page of another process is another");
  check_equal(unit.statistics().walks.value(), 3, "walks");
  check_equal(unit.statistics().second_hits.value(), 2, "hits of the L2 TLB");
  spec.second.entries = 0;
  TranslationUnit alone(spec);
  check_equal(alone.lookup(process, Side::data).cycles, 2 + 30, "without an L2 TLB");
  TranslationUnitSpec none;
  TranslationUnit disabled(none);
  check_equal(disabled.lookup(process, Side::data).cycles, 0, "translation can cost nothing");
}

// Looks up pages at given times and makes the walks through caches in front of memory (50 ns a line).
class Walker final : public Component, public memory::PrivateCaches::Owner {
 public:
  struct Step {
    Time time;
    std::uint64_t address;
    Side side = Side::data;
  };

  Walker(const TranslationUnitSpec& spec, std::vector<Step> steps)
      : unit(spec),
        caches(*this, caches_spec(), nanosecond, 1),
        steps_(std::move(steps)),
        found(steps_.size()),
        done(steps_.size()) {
    memory_.on_receive<&Walker::receive>();
    timer_.on_expire<&Walker::begin>();
  }
  void start() override {
    for (std::uint32_t i = 0; i < steps_.size(); ++i) timer_.after(steps_[i].time, i);
  }

  TranslationUnit unit;
  memory::PrivateCaches caches;

 private:
  static memory::PrivateCachesSpec caches_spec() {
    memory::PrivateCachesSpec spec;
    spec.levels.push_back({.tag_latency = 1, .data_latency = 3});
    return spec;
  }
  void begin(const std::uint32_t& number) {
    found[number] = unit.lookup(steps_[number].address, steps_[number].side);
    if (found[number].outcome != Found::walk) return;
    walks_.resize(8);
    walks_[found[number].walk] = number;
    go_on(found[number].walk, now() + found[number].cycles * nanosecond);
  }
  void go_on(std::uint32_t walk, Time when) {
    const auto progress = unit.proceed(walk, caches, when, walk);
    if (progress.status == TranslationUnit::Progress::Status::done)
      done[walks_[walk]] = progress.ready - steps_[walks_[walk]].time;
  }
  void receive(const memory::Message& message, std::uint32_t) { caches.receive(message, now()); }
  void send_to_memory(const memory::Message& message, Time when) override {
    memory_.send(message, when - now());
  }
  void access_done(std::uint32_t token, Time ready, memory::Value, memory::Served) override {
    go_on(token, ready);
  }
  void unblocked() override {}

  std::vector<Step> steps_;
  std::vector<std::uint32_t> walks_;  // the step of each walk
  memory::RequesterPort memory_{*this, "memory", "what serves the misses"};
  Timer<std::uint32_t> timer_{*this};

 public:
  std::vector<TranslationUnit::Lookup> found;
  std::vector<Time> done;  // how long the walk of a step took
};

struct Machine {
  Machine(const TranslationUnitSpec& spec, std::vector<Walker::Step> steps) {
    memory::DramSpec dram;
    dram.backend = "simple";
    dram.latency = 36 * nanosecond;
    dram.bandwidth = 16'000'000'000;
    auto made = std::make_unique<Walker>(spec, std::move(steps));
    walker = made.get();
    Component& core = simulation.add("core", std::move(made));
    Component& channel = simulation.add("channel", std::make_unique<memory::Dram>(dram));
    simulation.connect(*core.ports()[0], *channel.ports()[0], 5 * nanosecond);
    simulation.run({});
  }
  void expect(std::size_t step, Time nanoseconds, const std::string& what) {
    check_equal(walker->done[step], nanoseconds * nanosecond, what);
  }

  Simulation simulation;
  Walker* walker = nullptr;
};

constexpr Time us = 1000 * nanosecond;
// A read that misses: tag, link, 4 ns of bus and 36 ns, link.
constexpr Time from_memory = 1 + 5 + 4 + 36 + 5;
constexpr Time from_l1 = 4;

TEST(walks_read_their_entries_one_after_the_other) {
  TranslationUnitSpec spec = enabled();
  spec.walk_penalty = 0;
  spec.second = {.entries = 64, .ways = 0, .latency = 7};
  spec.walk_cache.entries = 0;
  const std::uint64_t far = std::uint64_t{1} << 30;
  Machine plain(spec, {{0, process},
                       {1 * us, process + page},
                       {2 * us, process + 8 * page},
                       {3 * us, process + 512 * page},
                       {4 * us, process + 8 * far},
                       {5 * us, process}});
  plain.expect(0, 7 + 3 * from_memory, "three tables, none of them in a cache");
  plain.expect(1, 7 + 3 * from_l1, "its neighbour's entries lie in the same lines");
  plain.expect(2, 7 + 2 * from_l1 + from_memory, "eight pages on, the last entry lies in the next line");
  plain.expect(3, 7 + 2 * from_l1 + from_memory,
               "512 pages on, the last table is another; the entry before is a neighbour");
  plain.expect(4, 7 + 3 * from_memory, "8 GiB on, all entries lie elsewhere");
  check(plain.walker->found[5].outcome == Found::known, "the page is in the TLB");
  check_equal(plain.walker->unit.statistics().walks.value(), 5, "walks");
  check_equal(plain.walker->unit.statistics().walk_reads.value(), 15, "reads");
  check_equal(plain.walker->caches.levels()[0]->statistics.reads.value(), 15, "reads that the cache saw");

  spec.walk_cache = {.entries = 16, .ways = 0, .latency = 1};
  Machine cached(
      spec,
      {{0, process}, {1 * us, process + page}, {2 * us, process + 512 * page}, {3 * us, process + far}});
  cached.expect(0, 8 + 3 * from_memory, "walk caches know nothing yet");
  cached.expect(1, 8 + from_l1, "only the last entry is read");
  cached.expect(2, 8 + from_l1 + from_memory, "the last two");
  cached.expect(3, 8 + from_l1 + 2 * from_memory, "all three; the root's entry is a neighbour");
  check_equal(cached.walker->unit.statistics().walk_reads.value(), 3 + 1 + 2 + 3, "reads");

  spec.levels = 4;
  Machine deeper(spec, {{0, process}});
  deeper.expect(0, 8 + 4 * from_memory, "four tables");
}

TEST(walkers_work_side_by_side) {
  TranslationUnitSpec spec = enabled();
  spec.walk_penalty = 0;
  spec.second.entries = 0;
  spec.walk_cache.entries = 0;
  const std::vector<Walker::Step> steps = {{0, process},
                                           {0, 2 * process},
                                           {nanosecond, process + 64},
                                           {1 * us, process},
                                           {nanosecond, process, Side::instruction},
                                           {1 * us, process, Side::instruction}};
  Machine one(spec, steps);
  check(one.walker->found[1].outcome == Found::full, "one walker is busy");
  check(one.walker->found[2].outcome == Found::joined, "a walk to this page is outstanding");
  check(one.walker->found[3].outcome == Found::known, "when it is done, the page is known");
  check(one.walker->found[4].outcome == Found::joined, "also to the other side");
  check(one.walker->found[5].outcome == Found::known, "which then knows it too");
  check_equal(one.walker->unit.statistics().refused.value(), 1, "refused");
  check_equal(one.walker->unit.statistics().joined.value(), 2, "joined");
  spec.walkers = 2;
  Machine two(spec, steps);
  check(two.walker->found[1].outcome == Found::walk, "the second walker takes it");
  two.expect(0, 3 * from_memory, "the first walk");
  two.expect(1, 3 * from_memory + 4, "the second, behind it on the bus");
  check_equal(two.walker->unit.active(), 0, "both are free again");
}

TEST(wrong_parameters_are_refused) {
  TranslationUnitSpec spec;
  spec.data.entries = 0;
  check_refused([&] { TranslationUnit unit(spec); }, "entry");
  spec = {};
  spec.page_size = 5000;
  check_refused([&] { TranslationUnit unit(spec); }, "power of two");
  spec = {};
  spec.second.ways = 7;
  check_refused([&] { TranslationUnit unit(spec); }, "7 ways");
}

}  // namespace
