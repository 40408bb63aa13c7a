// SPDX-License-Identifier: Apache-2.0
// How ranks take part in collective operations: a schedule of sends and receives is begun and asked for its
// next action whenever the last one is complete.
#include <algorithm>

#include "mpi/collectives/algorithms.hpp"
#include "mpi/host.hpp"

namespace manyscale::mpi {

namespace {

// Whether a column gives ranks different values.
bool differs_by_rank(const Column& column) {
  return !column.plain && (column.rank_step != 0 || column.loop == Column::peer_index ||
                           (column.array >= 0 && column.array_stride != 0));
}

bool has_parts(OperationKind kind) {
  return kind == OperationKind::gather || kind == OperationKind::scatter ||
         kind == OperationKind::allgather || kind == OperationKind::alltoallv ||
         kind == OperationKind::reduce_scatter;
}

}  // namespace

bool Host::collective(Rank& rank, const Operation& operation) {
  const bool blocking = operation.slot < 0;
  std::uint32_t* slot = blocking ? nullptr : &empty_slot(rank, operation);
  const std::uint32_t number = requests_.take();
  Request& request = requests_[number];
  request.began = rank.time;
  request.type = Request::Type::collective;
  request.rank = index_of(rank);
  request.operation = rank.operation;
  request.in_slot = !blocking;
  request.awaited = blocking;
  request.context = context_of(operation.communicator, true);
  if (slot != nullptr) *slot = number;
  if (blocking) rank.needs = 1;

  const std::uint32_t activity_number = activities_.add();
  request.activity = activity_number;
  Activity& activity = activities_[activity_number];
  activity.call = make_call(rank, operation);
  activity.request = number;
  activity.rank = index_of(rank);
  std::uint32_t& begun = numbers_.collectives(index_of(rank))[operation.communicator];
  activity.tag = static_cast<std::int32_t>(begun++ & 0x7fffffff);
  activity.context = context_of(operation.communicator, true);
  activity.schedule =
      begin_collective(activity.call, operation.kind, static_cast<Algorithm>(operation.algorithm));
  ++counts_.collectives;
  if (blocking) return take_part(rank, activity_number);
  run_activity(activity_number, unlimited);
  next(rank);
  return true;
}

// Goes on with a collective that the rank waits for; true where it came to its end at once.
bool Host::take_part(Rank& rank, std::uint32_t activity) {
  if (run_activity(activity, most_at_once)) return block(rank);
  rank.paused = activity;
  return pause(rank);
}

Call Host::make_call(Rank& rank, const Operation& operation) {
  const Communicator& communicator = job_.program.communicators[operation.communicator];
  if (!communicator.contains(rank.world))
    fail(rank, "it is not a member of communicator " + std::to_string(operation.communicator));
  Call call;
  call.group = communicator.group(rank.world);
  call.library = job_.library.get();
  call.segment = static_cast<std::uint64_t>(job_.spec.segment);
  call.program = &job_.program;
  if (operation.peer >= 0) {
    const std::int64_t root = value(rank, operation.peer);
    if (root < 0 || root >= call.group.size)
      fail(rank, "the root " + std::to_string(root) + " is not a rank of the communicator, which has " +
                     std::to_string(call.group.size));
    call.root = static_cast<std::uint32_t>(root);
  }
  if (operation.bytes >= 0) {
    const Column& column = job_.program.columns[static_cast<std::size_t>(operation.bytes)];
    if (differs_by_rank(column) && has_parts(operation.kind)) {
      call.column = operation.bytes;
      if (column.loop >= 0) call.iteration = iterations(rank)[column.loop];
    }
    if (column.loop != Column::peer_index) call.bytes = bytes_of(rank, operation.bytes);
    if (call.bytes > most_bytes / call.group.size)
      fail(rank, "the parts of all ranks together have more than " + std::to_string(most_bytes) + " bytes");
  }
  const AlgorithmInfo* const algorithm =
      find_algorithm(operation.kind, static_cast<Algorithm>(operation.algorithm));
  if (algorithm != nullptr && algorithm->implementation->needs_nodes()) {
    const NodeSplit& split = *job_.node_splits[operation.communicator];
    call.local = split.local.group(rank.world);
    call.leads = split.leaders.contains(rank.world);
    if (call.leads) call.leaders = split.leaders.group(rank.world);
    const std::uint32_t root = call.group.world(call.root);
    call.root_leader = split.leaders.rank(split.local.group(root).world(0));
    if (is_local(root)) call.root_local = split.local.rank(root);
  }
  call.own = std::uint64_t{rank.world} + 1;
  call.value = operation.kind == OperationKind::broadcast && call.rank() != call.root ? 0 : call.own;
  return call;
}

// As far as it goes without waiting; false where it stopped because it did so much.
bool Host::run_activity(std::uint32_t number, int budget) {
  Activity& activity = activities_[number];
  Rank& rank = ranks_[activity.rank];
  if (activity.waiting) {
    activity.waiting = false;
    activity.take_received();
  }
  while (activity.schedule.next()) {
    const Action action = activity.schedule.action();
    Transfer transfer{.tag = activity.tag, .context = activity.context, .activity = number};
    if (action.from != none) {
      ++activity.outstanding;
      transfer.peer = action.from;
      transfer.bytes = action.receive_bytes;
      post_receive(rank, transfer);
    }
    if (action.to != none) {
      transfer.peer = action.to;
      transfer.bytes = action.send_bytes;
      transfer.value = action.value;
      if (post_send(rank, transfer) != finished) ++activity.outstanding;
    }
    if (action.combine_bytes > 0) charge(rank, costs().reduction(action.combine_bytes));
    if (!action.wait) {
      if (--budget == 0) return false;
      continue;
    }
    if (activity.outstanding > 0) {
      activity.waiting = true;
      return true;
    }
    activity.take_received();
  }
  const std::uint32_t request = activity.request;
  if (job_.recording.values)
    noting().completions.push_back(
        {rank.world, requests_[request].operation, rank.world, activity.tag, activity.call.value});
  activities_.remove(number);
  complete(request);
  return true;
}

}  // namespace manyscale::mpi
