// SPDX-License-Identifier: Apache-2.0
// How a rank runs operations that have no order: its processor begins whatever is ready, the longest ready
// first, and while one message is awaited it goes on with everything that does not depend on it.
#include <algorithm>
#include <functional>
#include <utility>

#include "mpi/host.hpp"

namespace manyscale::mpi {

void Host::begin_flow(Rank& rank) {
  const Program& program = job_.program;
  Flow& flow = flows_[index_of(rank)];
  flow.first = rank.operation;
  std::uint32_t end = flow.first;
  while (program.operations[end].kind != Kind::end) ++end;
  flow.left = end - flow.first;
  const auto missing = program.dependencies.missing.begin();
  flow.missing.assign(missing + flow.first, missing + end);
  for (std::uint32_t operation = flow.first; operation < end; ++operation)
    if (flow.missing[operation - flow.first] == 0) now_ready(rank, operation);
}

void Host::now_ready(Rank& rank, std::uint32_t operation) {
  std::vector<Flow::Ready>& ready = flows_[index_of(rank)].ready;
  const bool receive = job_.program.operations[operation].kind == Kind::receive;
  ready.push_back({receive ? -1 : rank.time, operation});
  std::push_heap(ready.begin(), ready.end(), std::greater<>());
}

void Host::advance_flow(Rank& rank) {
  Flow& flow = flows_[index_of(rank)];
  rank.state = Rank::State::running;
  if (flow.computing != none) operation_ended(rank, std::exchange(flow.computing, none));
  for (int budget = most_at_once;;) {
    drain(rank);
    if (flow.ready.empty()) break;
    if (--budget == 0) {
      pause(rank);
      return;
    }
    std::pop_heap(flow.ready.begin(), flow.ready.end(), std::greater<>());
    const std::uint32_t operation = flow.ready.back().operation;
    flow.ready.pop_back();
    if (!begin_operation(rank, operation)) return;
  }
  if (flow.left > 0) {
    rank.needs = 1;  // whichever ends first
    rank.state = Rank::State::waiting;
    return;
  }
  rank.state = Rank::State::done;
  rank.end = rank.time;
}

// True where the processor is free again at once.
bool Host::begin_operation(Rank& rank, std::uint32_t number) {
  const Operation& operation = job_.program.operations[number];
  rank.operation = number;
  rank.call_began = rank.time;
  no_longer_missing(rank, number, job_.program.dependencies.on_begin);
  if (operation.kind == Kind::compute) {
    flows_[index_of(rank)].computing = number;
    if (!compute(rank, operation)) return false;
    operation_ended(rank, std::exchange(flows_[index_of(rank)].computing, none));
    return true;
  }
  const bool receiving = operation.kind == Kind::receive;
  if (value(rank, operation.peer) == nobody) {
    operation_ended(rank, number);
    return true;
  }
  const Transfer transfer = transfer_of(rank, operation, receiving);
  if (receiving) {
    post_receive(rank, transfer);
  } else if (post_send(rank, transfer) == finished) {
    operation_ended(rank, number);
  }
  next(rank);
  return true;
}

void Host::operation_ended(Rank& rank, std::uint32_t operation) {
  --flows_[index_of(rank)].left;
  no_longer_missing(rank, operation, job_.program.dependencies.on_end);
}

// Those that waited for an operation's end or beginning, and for nothing else, are ready now.
void Host::no_longer_missing(Rank& rank, std::uint32_t operation, const Dependencies::Lists& lists) {
  Flow& flow = flows_[index_of(rank)];
  for (std::uint32_t i = lists.first[operation]; i < lists.first[operation + 1]; ++i) {
    const std::uint32_t waiting = lists.waiting[i];
    if (--flow.missing[waiting - flow.first] == 0) now_ready(rank, waiting);
  }
}

}  // namespace manyscale::mpi
