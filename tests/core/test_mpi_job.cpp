// SPDX-License-Identifier: Apache-2.0
// Whole jobs without Python: every algorithm of every collective, both protocols, within and between nodes;
// the same times on one and two threads.
#include <string>
#include <vector>

#include "mpi/collectives/algorithms.hpp"
#include "mpi/job.hpp"
#include "test_checks.hpp"

using namespace manyscale;
using namespace manyscale::mpi;
using manyscale::test::check;

namespace {

// A program made step by step; columns are constants, or the rank plus something, around the ranks.
struct Maker {
  Program program;

  explicit Maker(std::uint32_t ranks) {
    program.ranks = ranks;
    program.communicators.push_back(Communicator::world(ranks));
  }
  std::int32_t constant(std::int64_t value) {
    Column column;
    column.constant = value;
    program.columns.push_back(column);
    return static_cast<std::int32_t>(program.columns.size() - 1);
  }
  std::int32_t neighbour(std::int64_t distance) {
    Column column;
    column.constant = distance + program.ranks;
    column.rank_step = 1;
    column.modulus = program.ranks;
    program.columns.push_back(column);
    return static_cast<std::int32_t>(program.columns.size() - 1);
  }
  void add(const Operation& operation) { program.operations.push_back(operation); }
};

struct Outcome {
  RunReport report;
  std::vector<Time> ends;
  HostCounts counts;
};

Outcome run(const Program& program, std::uint32_t per_node, std::uint32_t threads) {
  network::NetworkDescription description;
  description.spec.fidelity = "packet";
  description.spec.topology.kind = "torus";
  description.spec.topology.parameters = {{"shape", std::string("3x2")}};
  std::vector<std::uint32_t> nodes(program.ranks);
  for (std::uint32_t rank = 0; rank < program.ranks; ++rank) nodes[rank] = rank / per_node % 6;
  Recording recording;
  recording.waits_per_rank = 4;
  Job job(description, MpiSpec{}, program, nodes, 1, recording);
  RunOptions options;
  options.threads = threads;
  Outcome outcome;
  outcome.report = job.simulation().run(options);
  for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
    const Rank& row = job.rank(rank);
    outcome.ends.push_back(row.end);
    check(row.times.compute + row.times.overhead + row.times.waiting + row.times.transfer == row.end,
          "the parts of a rank's time add up to its end");
  }
  outcome.counts = job.counts();
  check(!job.critical_path().pieces.empty(), "there is a critical path");
  return outcome;
}

TEST(every_collective) {
  for (const AlgorithmInfo& info : algorithm_infos()) {
    for (const std::uint32_t ranks : {1u, 12u, 13u}) {
      const std::string name = std::string(kind_name(info.collective)) + " " + std::string(info.name) +
                               " of " + std::to_string(ranks);
      Maker maker(ranks);
      const std::int32_t root = maker.constant(ranks / 2), bytes = maker.constant(20'000),
                         slot = maker.constant(0);
      const Operation collective{.kind = info.collective,
                                 .algorithm = static_cast<std::uint8_t>(info.algorithm),
                                 .peer = root,
                                 .bytes = bytes};
      Operation beside = collective;
      beside.slot = slot;
      maker.add(collective);
      maker.add(beside);
      maker.add({.kind = OperationKind::compute, .bytes = maker.constant(30 * microsecond)});
      maker.add({.kind = OperationKind::wait, .slot = slot});
      const Outcome one = run(maker.program, 3, 1), two = run(maker.program, 3, 2);
      check(one.report.outcome == manyscale::Outcome::finished, name + " comes to its end");
      check(one.ends == two.ends, name + " takes the same time on two threads");
    }
  }
}

TEST(rings_of_messages) {
  for (const std::int64_t bytes : {0, 1000, 5000, 100'000}) {
    Maker maker(12);
    const std::int32_t tag = maker.constant(3), size = maker.constant(bytes), first = maker.constant(0),
                       second = maker.constant(1), both = maker.constant(2);
    maker.add({.kind = OperationKind::receive_init, .peer = maker.neighbour(-1), .tag = tag, .slot = first});
    maker.add({.kind = OperationKind::send_init,
               .peer = maker.neighbour(1),
               .tag = tag,
               .bytes = size,
               .slot = second});
    maker.add({.kind = OperationKind::loop_begin, .count = maker.constant(50), .target = 0});
    maker.add({.kind = OperationKind::start, .slot = first, .count = both});
    maker.add({.kind = OperationKind::waitall, .slot = first, .count = both});
    maker.add({.kind = OperationKind::send_receive,
               .peer = maker.neighbour(5),
               .tag = tag,
               .bytes = size,
               .from = maker.neighbour(-5),
               .receive_tag = maker.constant(any)});
    maker.add({.kind = OperationKind::loop_end, .target = 0});
    const Outcome one = run(maker.program, 2, 1), two = run(maker.program, 2, 2);
    check(one.report.outcome == manyscale::Outcome::finished, "a ring comes to its end");
    check(one.ends == two.ends, "a ring takes the same time on two threads");
    check(one.counts.messages + one.counts.local_messages == 12 * 50 * 2, "each message is counted once");
    check(one.counts.eager + one.counts.rendezvous == 12 * 50 * 2, "by its protocol");
  }
}

// Twenty rounds: a message to each of three neighbours and one from each, all at once, then work that
// requires what came from one of them.
Program rounds_without_an_order(std::int64_t bytes) {
  Maker maker(12);
  const std::int32_t size = maker.constant(bytes), work = maker.constant(microsecond);
  std::vector<Dependencies::Pair>& ended = maker.program.dependencies.ended;
  maker.program.dependencies.unordered = true;
  std::uint32_t before = none;
  for (std::int64_t round = 0; round < 20; ++round) {
    const auto first = static_cast<std::uint32_t>(maker.program.operations.size());
    for (std::int64_t distance = 1; distance <= 3; ++distance) {
      const std::int32_t tag = maker.constant(3 * round + distance);
      maker.add({.kind = OperationKind::send, .peer = maker.neighbour(distance), .tag = tag, .bytes = size});
      maker.add({.kind = OperationKind::receive, .peer = maker.neighbour(-distance), .tag = tag});
      if (before != none) ended.push_back({first + 2 * static_cast<std::uint32_t>(distance) - 2, before});
    }
    maker.add({.kind = OperationKind::compute, .bytes = work});
    ended.push_back({first + 6, first + 1 + 2 * static_cast<std::uint32_t>(round % 3)});
    before = first + 6;
  }
  maker.add({.kind = OperationKind::end});
  return maker.program;
}

TEST(operations_without_an_order) {
  for (const std::int64_t bytes : {0, 1000, 100'000}) {
    const Program program = rounds_without_an_order(bytes);
    const Outcome one = run(program, 2, 1), two = run(program, 2, 2);
    check(one.report.outcome == manyscale::Outcome::finished,
          "operations without an order come to their end");
    check(one.ends == two.ends, "and take the same time on two threads");
    check(one.counts.messages + one.counts.local_messages == 12 * 20 * 3, "with all messages");
  }
  for (const Dependencies::Pair wrong : {Dependencies::Pair{1, 1000}, {1, 140}, {140, 1}}) {
    Program program = rounds_without_an_order(8);
    program.dependencies.begun.push_back(wrong);
    bool refused = false;
    try {
      run(program, 2, 1);
    } catch (const std::invalid_argument&) {
      refused = true;
    }
    check(refused, "an operation cannot wait for one that is not there, or for an end");
  }
}

TEST(a_deadlock) {
  Maker maker(3);
  maker.add({.kind = OperationKind::receive, .peer = maker.neighbour(1), .tag = maker.constant(7)});
  network::NetworkDescription description;
  description.spec.topology.kind = "switch";
  description.spec.topology.nodes = 3;
  Job job(description, MpiSpec{}, maker.program, {0, 1, 2}, 1, {});
  check(job.simulation().run({}).outcome == manyscale::Outcome::deadlock, "nobody sends");
  check(job.explain_deadlock().find("in a circle: rank 0 waits for rank 1") != std::string::npos,
        "the circle is named");
}

}  // namespace
