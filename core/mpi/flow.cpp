// SPDX-License-Identifier: Apache-2.0
// How a rank runs operations that have no order: its processor begins whatever is ready, the longest ready
// first, and while one message is awaited it goes on with everything that does not depend on it.
#include <utility>

#include "mpi/host.hpp"

namespace manyscale::mpi {

void Host::advance_flow(Rank& rank) {
  ReadyOperations& flow = flows_[index_of(rank)];
  rank.state = Rank::State::running;
  if (flow.computing != none) operation_ended(rank, std::exchange(flow.computing, none));
  for (int budget = most_at_once;;) {
    drain(rank);
    if (flow.empty()) break;
    if (--budget == 0) {
      pause(rank);
      return;
    }
    if (!begin_operation(rank, flow.take())) return;
  }
  if (!flow.all_ended()) {
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
  count_begun(operation);
  ReadyOperations& flow = flows_[index_of(rank)];
  flow.begun(job_.program, number, rank.time);
  if (operation.kind == OperationKind::compute) {
    flow.computing = number;
    if (!compute(rank, operation)) return false;
    operation_ended(rank, std::exchange(flow.computing, none));
    return true;
  }
  const bool receiving = operation.kind == OperationKind::receive;
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

}  // namespace manyscale::mpi
