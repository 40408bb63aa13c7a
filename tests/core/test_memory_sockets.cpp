// SPDX-License-Identifier: Apache-2.0
// Two sockets joined by a link: where pages are placed, and what it takes to reach the other socket's memory.
#include <vector>

#include "engine/registry.hpp"
#include "test_memory_machine.hpp"

using namespace manyscale;
using namespace manyscale::memory;
using namespace manyscale::memory::test;
using namespace manyscale::test;

namespace {

// Two sockets of two cores, two slices and one channel. Clocks of 1 GHz; 2 cycles through a socket's network;
// links of 1 ns to and from it; a link of 30 ns between the sockets.
struct TwoSockets {
  TwoSockets(const std::vector<std::vector<Step>>& steps, const NamedValues& given = {},
             std::uint32_t threads = 1) {
    NamedValues values{{"clock", std::int64_t{1'000'000'000}},
                       {"flit", std::int64_t{72}},
                       {"traversal", std::int64_t{2}},
                       {"crossing_latency", 30 * nanosecond},
                       {"crossing_bandwidth", std::int64_t{72'000'000'000}}};
    values.insert(values.end(), given.begin(), given.end());
    Component& network = simulation.add("sockets", make_plugin<Component>("memory.sockets", values));
    PrivateCachesSpec spec = two_levels(true);
    spec.homes = 4;
    for (std::size_t i = 0; i < 4; ++i) {
      auto prober = std::make_unique<Prober>(spec, i < steps.size() ? steps[i] : std::vector<Step>{});
      probers.push_back(prober.get());
      Component& core = simulation.add("core" + std::to_string(i), std::move(prober));
      simulation.connect(port(core, "memory"), port(network, "requesters"), nanosecond);
    }
    DramSpec dram;
    dram.backend = "simple";
    dram.latency = 40 * nanosecond;
    dram.bandwidth = 16'000'000'000;
    for (int socket = 0; socket < 2; ++socket) {
      Component& channel = simulation.add("channel" + std::to_string(socket), std::make_unique<Dram>(dram));
      for (int i = 0; i < 2; ++i) {
        HomeSpec home;
        home.clock = 1'000'000'000;
        home.cache = cache(1 << 20, 16, 8, 22);
        home.slices = 2;
        Component& slice =
            simulation.add("slice" + std::to_string(2 * socket + i), std::make_unique<Home>(home));
        simulation.connect(port(network, "responders"), port(slice, "requesters"), nanosecond);
        simulation.connect(port(slice, "memory"), port(channel, "requests"), 10 * nanosecond);
      }
    }
    RunOptions options;
    options.threads = threads;
    used_threads = simulation.run(options).threads;
  }
  void expect(std::size_t core, std::size_t step, Time nanoseconds, Served served, const std::string& what) {
    check_equal(probers[core]->outcomes[step].latency, nanoseconds * nanosecond, what + ", latency");
    check_equal(static_cast<int>(probers[core]->outcomes[step].served), static_cast<int>(served),
                what + ", served by");
  }
  std::int64_t count(const std::string& component, const std::string& name) {
    const StatisticRows rows = simulation.statistics();
    for (std::size_t i = 0; i < rows.value.size(); ++i) {
      if (rows.component[i] == component && rows.statistic[i] == name)
        return std::get<std::int64_t>(rows.value[i]);
    }
    throw std::invalid_argument("no statistic " + name);
  }

  Simulation simulation;
  std::vector<Prober*> probers;
  std::uint32_t used_threads = 0;
};

// Tags 1 + 3 of the private caches; each way a link of 1 ns, 2 + 1 cycles of the network and a link of 1 ns.
constexpr Time there_and_back = 4 + 2 * (1 + 2 + 1 + 1);
constexpr Time from_slice = there_and_back + 8 + 22;
constexpr Time from_dram = there_and_back + 8 + 10 + 4 + 40 + 10;
// Twice the link, and the other socket's network each time.
constexpr Time further = 2 * (30 + 2);

TEST(the_first_to_touch_a_page_has_it) {
  // Core 0 is in the first socket, core 2 in the second. Lines of one page are spread over the slices of its
  // socket, whichever core asks.
  TwoSockets machine(
      {{{0, 0, load}, {10 * us, 8192, load}, {11 * us, 8192 + 64, load}},
       {{8 * us, 192, load}},
       {{1 * us, 64, load}, {2 * us, 128, load}, {5 * us, 8192, load}, {6 * us, 4096, store}}});
  machine.expect(0, 0, from_dram, Served::dram, "its own page");
  machine.expect(2, 0, from_dram + further, Served::dram, "a page of the other socket");
  machine.expect(2, 1, from_dram + further, Served::dram, "another line of it");
  machine.expect(2, 2, from_dram, Served::dram, "a page that it touches first");
  machine.expect(1, 0, from_dram, Served::dram, "a neighbour in the socket of the page");
  machine.expect(0, 2, from_dram + further, Served::dram, "the other's page from the first socket");
  check_equal(machine.count("sockets", "pages"), 3, "pages");
  check_equal(machine.count("channel0", "reads"), 4, "lines of the first page come from the first channel");
  check_equal(machine.count("channel1", "reads"), 3, "those of the others from the second");
  check(machine.count("slice0", "reads") > 0 && machine.count("slice1", "reads") > 0, "both slices are used");
}

TEST(pages_can_be_dealt_in_turn) {
  TwoSockets machine({{{0, 0, load}, {1 * us, 4096, load}, {2 * us, 8192, load}}},
                     {{"placement", std::string("interleave")}});
  machine.expect(0, 0, from_dram, Served::dram, "page 0");
  machine.expect(0, 1, from_dram + further, Served::dram, "page 1");
  machine.expect(0, 2, from_dram, Served::dram, "page 2");
}

TEST(lines_of_the_other_socket_are_kept_coherent) {
  TwoSockets machine({{{0, 0, load}, {3 * us, 0, load}}, {}, {{1 * us, 0, load}, {2 * us, 0, store}}});
  // The slice asks the owner, in its own socket: there and back without the requester's tag of L1, and its
  // tag once more.
  const Time asks = 2 * (1 + 2 + 1 + 1) + 3 + 8;
  machine.expect(2, 0, from_slice + further + asks, Served::peer, "a line that the first socket has");
  // Write permission for a line that both hold: no data from the slice.
  machine.expect(2, 1, from_slice - 22 + further + asks, Served::peer, "the first socket gives it up");
  machine.expect(0, 1, from_slice + asks + further, Served::peer, "and gets it back from the second");
}

TEST(a_narrow_link_holds_messages_up) {
  // Data takes 72 bytes: at 7.2 GB/s 10 ns of the link, a request of 8 bytes still a flit's time.
  std::vector<Step> warm, burst;
  for (std::uint64_t i = 0; i < 16; ++i) {
    warm.push_back({static_cast<Time>(i) * us, i * 64, load});
    burst.push_back({100 * us, i * 64, fetch});
  }
  TwoSockets wide({warm, {}, burst}),
      narrow({warm, {}, burst}, {{"crossing_bandwidth", std::int64_t{7'200'000'000}}});
  const auto last = [](TwoSockets& machine) {
    Time latest = 0;
    for (const auto& outcome : machine.probers[2]->outcomes) latest = std::max(latest, outcome.latency);
    return latest;
  };
  check(last(narrow) >= 16 * 10 * nanosecond, "16 lines take the link one after the other");
  check(last(narrow) > last(wide) + 80 * nanosecond, "the wide one is faster");
  // A request and its answer, and the slice's question, its answer and the confirmation, as far as they
  // cross.
  check_equal(narrow.count("sockets", "remote"), 3 * 16, "request, answer and confirmation of each line");
  check_equal(narrow.count("sockets", "link_busy"), 3 * 16 * 10 * nanosecond, "each a flit");
}

TEST(the_same_on_two_threads) {
  // Who touches a page first depends on simulated time only.
  std::vector<std::vector<Step>> steps(4);
  Random random(3, 4);
  for (auto& core : steps) {
    for (int i = 0; i < 3000; ++i) {
      core.push_back({static_cast<Time>(random.below(300 * us)), random.below(4000) * 64,
                      random.below(3) == 0 ? store : load});
    }
  }
  TwoSockets first(steps), second(steps, {}, 2);
  check_equal(second.used_threads, 2, "threads");
  for (std::size_t core = 0; core < 4; ++core) {
    for (std::size_t i = 0; i < steps[core].size(); ++i) {
      check(first.probers[core]->outcomes[i].latency == second.probers[core]->outcomes[i].latency,
            "the same");
      check(first.probers[core]->outcomes[i].latency > 0, "every access is done");
    }
  }
  check_equal(first.count("sockets", "remote"), second.count("sockets", "remote"), "remote messages");
}

TEST(wrong_parameters_are_refused) {
  check_refused([] { TwoSockets machine({}, {{"placement", std::string("far")}}); }, "first_touch");
  check_refused([] { TwoSockets machine({}, {{"page_size", std::int64_t{5000}}}); }, "page_size");
  check_refused([] { TwoSockets machine({}, {{"sockets", std::int64_t{3}}}); }, "3 sockets");
}

}  // namespace
