// SPDX-License-Identifier: Apache-2.0
// The stages of an MPI host, each alone: order of messages, software costs, numbers of ranks, operations
// without an order, collectives in flight, the log of waits.
#include "mpi/activities.hpp"
#include "mpi/message_order.hpp"
#include "mpi/rank_numbers.hpp"
#include "mpi/ready_operations.hpp"
#include "mpi/software_costs.hpp"
#include "mpi/wait_log.hpp"
#include "test_checks.hpp"

using namespace manyscale;
using namespace manyscale::mpi;
using namespace manyscale::test;

namespace {

Envelope numbered(std::uint32_t source, std::uint32_t number) {
  Envelope envelope;
  envelope.source = source;
  envelope.number = number;
  return envelope;
}

TEST(messages_that_overtook_others_are_held_back) {
  MessageOrder order;
  check(order.is_next(0, numbered(7, 0), 10), "the first message of a pair is next");
  check(!order.is_next(0, numbered(7, 3), 13), "the fourth message is not next after the first");
  check(!order.is_next(0, numbered(7, 2), 12), "nor is the third");
  check(order.is_next(0, numbered(8, 0), 20), "another sender has numbers of its own");
  check(order.is_next(1, numbered(7, 0), 30), "and so has another receiver");
  check(!order.release(0, 7), "nothing is released before the second message has come");
  check(order.is_next(0, numbered(7, 1), 11), "the second message is next");
  for (const std::uint64_t bytes : {12u, 13u}) {
    const auto early = order.release(0, 7);
    check(early && early->bytes == bytes, "messages are released in their order");
  }
  check(!order.release(0, 7) && order.none_held(), "nothing is left");
}

TEST(costs_are_those_of_the_parameters) {
  MpiSpec spec;
  spec.send_overhead = 300;
  spec.receive_overhead = 400;
  spec.send_overhead_per_byte = 2;
  spec.control_overhead = 50;
  spec.page_overhead = 7;
  spec.copy_bandwidth = 1'000'000'000;  // 1 ns for each byte
  spec.eager_limit = 100;
  spec.local.send_overhead = 30;
  spec.local.send_overhead_per_byte = 1;
  spec.local.eager_limit = 10;
  spec.local.bandwidth = 2'000'000'000;
  const SoftwareCosts costs(spec);
  check_equal(costs.send(false), 300, "a message to another node");
  check_equal(costs.send(true), 30, "a message within the node");
  check_equal(costs.send_bytes(5, false), 10, "bytes to another node");
  check_equal(costs.send_bytes(5, true), 15, "bytes within the node cost both");
  check_equal(costs.control(3), 50 + 3 * 7, "a control message with three pages");
  check_equal(costs.copy(4, false), 4 * nanosecond, "a copy through a buffer");
  check_equal(costs.copy(4, true), 0, "no copy within the node");
  check_equal(costs.local_copy(4), 2 * nanosecond, "a copy to another rank");
  check_equal(costs.reduction(1000), 0, "a bandwidth of 0 is free");
  check(costs.eager(100, false) && !costs.eager(101, false), "the eager limit is the largest eager message");
  check(costs.eager(10, true) && !costs.eager(11, true), "and is another within the node");
  spec.send_overhead_per_byte = never / 2;
  check_equal(costs.send_bytes(3, false), never, "costs beyond the range of time saturate");
}

TEST(each_rank_has_numbers_of_its_own) {
  Program program;
  program.slots = 3;
  program.depth = 2;
  program.phases = 1;
  program.communicators.assign(2, Communicator::world(4));
  RankNumbers numbers(program, 2);
  numbers.slots(0)[2] = 5;
  numbers.iterations(0)[1] = 6;
  numbers.occurrences(0)[0] = 7;
  numbers.collectives(0)[1] = 8;
  check_equal(numbers.slots(1)[2], none, "slots are empty at first");
  check_equal(numbers.iterations(1)[1] + numbers.occurrences(1)[0] + numbers.collectives(1)[1], 0,
              "everything else is 0");
  check_equal(numbers.slots(0)[2], 5, "a slot");
  check_equal(std::as_const(numbers).iterations(0)[1], 6, "an iteration");
  check_equal(numbers.occurrences(0)[0], 7, "an occurrence");
  check_equal(numbers.collectives(0)[1], 8, "a count of collectives");
}

// Operations 0 and 1 wait for nothing, 2 for the ends of both, 3 for the beginning of 2.
Program diamond() {
  Program program;
  program.ranks = 1;
  program.communicators.push_back(Communicator::world(1));
  program.columns.emplace_back();
  for (const OperationKind kind :
       {OperationKind::compute, OperationKind::receive, OperationKind::compute, OperationKind::compute})
    program.operations.push_back({.kind = kind, .peer = 0, .tag = 0, .bytes = 0});
  program.operations.push_back({.kind = OperationKind::end});
  program.dependencies.unordered = true;
  program.dependencies.ended = {{2, 0}, {2, 1}};
  program.dependencies.begun = {{3, 2}};
  program.prepare();
  return program;
}

TEST(operations_are_ready_when_nothing_is_missing) {
  const Program program = diamond();
  ReadyOperations ready;
  ready.start(program, 0, 100);
  check_equal(ready.take(), 1, "a receive comes first, though its number is higher");
  check_equal(ready.take(), 0, "then the operation that waits for nothing");
  check(ready.empty(), "the others are not ready");
  ready.ended(program, 0, 200);
  check(ready.empty(), "one of two ends is not enough");
  ready.ended(program, 1, 300);
  check_equal(ready.take(), 2, "both ends are");
  check(ready.empty(), "the last waits for its beginning");
  ready.begun(program, 2, 300);
  check_equal(ready.take(), 3, "which makes the last ready");
  ready.ended(program, 2, 400);
  check(!ready.all_ended(), "one has not ended");
  ready.ended(program, 3, 400);
  check(ready.all_ended(), "all have ended");
}

TEST(numbers_of_activities_are_used_again) {
  Activities activities;
  const std::uint32_t first = activities.add(), second = activities.add();
  activities[second].tag = 9;
  Activity* const stays = &activities[second];
  activities.remove(first);
  check_equal(activities.add(), first, "a free number is used again");
  for (int i = 0; i < 100; ++i) activities.add();
  check(&activities[second] == stays && stays->tag == 9, "an activity stays where it is");
  activities[first].incoming = 5;
  activities[first].take_received();
  check_equal(static_cast<std::int64_t>(activities[first].call.received), 5, "what came is passed on");
  check_equal(static_cast<std::int64_t>(activities[first].incoming), 0, "once");
}

TEST(the_last_waits_are_kept) {
  WaitLog log;
  check_equal(log.count(0), 0, "no wait at first");
  check(log.releases(0, 3).empty(), "so none is kept");
  for (Time end = 1; end <= 5; ++end) log.add(1, {end, 0, 0, 0}, 2, 3);
  check_equal(log.count(1), 5, "all are counted");
  const std::vector<Release> kept = log.releases(1, 3);
  check_equal(static_cast<std::int64_t>(kept.size()), 3, "three are kept");
  for (std::size_t i = 0; i < kept.size(); ++i)
    check_equal(kept[i].end, 5 - static_cast<Time>(i), "the last first");
  check(log.releases(0, 3).empty(), "another rank has none");
}

}  // namespace
