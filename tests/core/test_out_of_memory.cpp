// SPDX-License-Identifier: Apache-2.0
// Every allocation of a simulation fails once, alone and with all that follow: building it, running it on one
// thread and on several, and reading its statistics throw std::bad_alloc, or give what they always give; no
// thread waits for ever.
#include <functional>
#include <memory>
#include <vector>

#include "engine/simulation.hpp"
#include "failing_new.hpp"
#include "mpi/job.hpp"
#include "synthetic/phold/phold.hpp"
#include "test_checks.hpp"

using namespace manyscale;
using manyscale::test::check;

namespace {

std::vector<double> run_phold(std::uint32_t threads, std::uint32_t parts) {
  Simulation simulation(7);
  std::vector<Component*> nodes;
  for (int i = 0; i < 4; ++i) {
    synthetic::PholdSpec spec;
    spec.jobs = 3;
    nodes.push_back(&simulation.add("node" + std::to_string(i), std::make_unique<synthetic::Phold>(spec)));
  }
  for (std::size_t i = 0; i < nodes.size(); ++i)
    simulation.connect(*nodes[i]->ports()[0], *nodes[(i + 1) % nodes.size()]->ports()[0], 500 * picosecond);
  RunOptions options;
  options.until = 40 * nanosecond;
  options.threads = threads;
  options.partitions = parts;
  simulation.run(options);
  const StatisticRows rows = simulation.statistics();
  std::vector<double> values;
  for (const auto& value : rows.value)
    values.push_back(std::visit([](auto each) { return double(each); }, value));
  return values;
}

// A job of six ranks on a torus whose program is empty: what is allocated to set it up and to end it.
std::vector<double> run_job() {
  mpi::Program program;
  program.ranks = 6;
  program.communicators.push_back(mpi::Communicator::world(6));
  network::NetworkDescription description;
  description.spec.fidelity = "packet";
  description.spec.topology.kind = "torus";
  description.spec.topology.parameters = {{"shape", std::string("3x2")}};
  mpi::Job job(description, mpi::MpiSpec{}, program, {0, 1, 2, 3, 4, 5}, 1, mpi::Recording{});
  RunOptions options;
  options.threads = 2;
  const RunReport report = job.simulation().run(options);
  return {static_cast<double>(report.events), static_cast<double>(report.now)};
}

void fails_safely(const char* name, const std::function<std::vector<double>()>& simulate) {
  const std::vector<double> expected = simulate();
  test::fail_from(test::never_fails, false);
  check(simulate() == expected, std::string(name) + ": the same twice");
  const std::int64_t count = test::fail_none();
  std::int64_t failed = 0;
  for (std::int64_t number = 0; number < count; ++number) {
    for (const bool only_one : {true, false}) {
      bool same = true;
      test::fail_from(number, only_one);
      try {
        const std::vector<double> found = simulate();
        test::fail_none();
        same = found == expected;  // a thread less gives the same
      } catch (const std::bad_alloc&) {
        test::fail_none();
        ++failed;
      }
      check(same, std::string(name) + ": allocation " + std::to_string(number) +
                      " failed, and the result is another");
    }
  }
  check(failed > count, std::string(name) + ": hardly any allocation failed");
  check(simulate() == expected, std::string(name) + ": the same after all");
}

TEST(a_run_on_one_thread_fails_safely) {
  fails_safely("one thread", [] { return run_phold(1, 1); });
}

TEST(a_run_in_partitions_fails_safely) {
  fails_safely("partitions", [] { return run_phold(1, 3); });
}

TEST(a_run_on_threads_fails_safely) {
  fails_safely("threads", [] { return run_phold(3, 1); });
}

TEST(a_job_fails_safely) {
  fails_safely("a job", run_job);
}

}  // namespace
