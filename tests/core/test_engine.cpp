// SPDX-License-Identifier: Apache-2.0
// The core without Python: builds, links and gives the same result on one and two threads.
#include <memory>
#include <vector>

#include "engine/registry.hpp"
#include "engine/simulation.hpp"
#include "synthetic/phold/phold.hpp"
#include "test_checks.hpp"

using namespace manyscale;
using manyscale::test::check;
using manyscale::test::check_refused;

namespace {

StatisticRows run_phold(std::uint32_t threads, RunReport& report, std::uint32_t partitions = 1) {
  Simulation simulation(7);
  std::vector<Component*> nodes;
  for (int i = 0; i < 6; ++i) {
    synthetic::PholdSpec spec;
    spec.jobs = 10;
    nodes.push_back(&simulation.add("node" + std::to_string(i), std::make_unique<synthetic::Phold>(spec)));
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    simulation.connect(*nodes[i]->ports()[0], *nodes[(i + 1) % nodes.size()]->ports()[0], 500 * picosecond);
  }
  RunOptions options;
  options.until = microsecond;
  options.threads = threads;
  options.partitions = partitions;
  report = simulation.run(options);
  return simulation.statistics();
}

TEST(same_statistics_on_one_and_two_threads) {
  RunReport one, two;
  const StatisticRows first = run_phold(1, one);
  const StatisticRows second = run_phold(2, two);
  check(one.threads == 1 && two.threads == 2, "threads are used");
  check(one.events == two.events && one.events > 10'000, "the same number of events");
  check(one.windows == two.windows, "the same windows");
  check(first.value == second.value, "the same statistics");
}

// More partitions than threads take turns.
TEST(same_statistics_in_parts) {
  RunReport whole, partitions, shared;
  const StatisticRows first = run_phold(1, whole);
  const StatisticRows second = run_phold(1, partitions, 3);
  const StatisticRows third = run_phold(2, shared, 5);
  check(partitions.threads == 1 && shared.threads == 2, "no more threads than asked for");
  check(whole.events == partitions.events && whole.events == shared.events, "the same number of events");
  check(whole.windows == partitions.windows && whole.windows == shared.windows, "the same windows");
  check(first.value == second.value && first.value == third.value, "the same statistics");
}

TEST(models_register_themselves) {
  check(Registry<Component>::get().contains("synthetic.phold"), "phold is registered");
  check(Registry<Component>::get().contains("synthetic.relay"), "relay is registered");
}

TEST(a_wrong_parameter_is_refused) {
  check_refused<std::invalid_argument>([] { from_values<synthetic::PholdSpec>({{"remote", 2.0}}); },
                                       "remote");
}

}  // namespace
