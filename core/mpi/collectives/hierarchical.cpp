// SPDX-License-Identifier: Apache-2.0
// Collectives in two levels: within nodes, and between the first members (leaders) of all nodes.
#include "mpi/collectives/algorithms.hpp"
#include "mpi/collectives/patterns.hpp"

namespace manyscale::mpi::collectives {

namespace {

// A schedule for a part of the group; what the whole call receives is the part's.
Schedule for_part(const Call& call, Call& part, Schedule schedule) {
  while (schedule.next()) {
    co_yield schedule.action();
    part.received = call.received;
  }
}

// The leaders' part, which starts from and ends in what the members of the node have; others do nothing.
Schedule between_leaders(const Call& call, Call& local, OperationKind collective, std::uint32_t root) {
  if (!call.leads) co_return;
  Call leaders = call.within(call.leaders, root);
  leaders.own = leaders.value = local.value;
  Schedule across = for_part(call, leaders, begin_collective(leaders, collective, Algorithm::automatic));
  while (across.next()) co_yield across.action();
  local.value = leaders.value;
}

}  // namespace

Schedule barrier_hierarchical(Call& call) {
  Call local = call.within(call.local, 0);
  local.bytes = 0;
  Schedule up = reduce_binomial(local);
  while (up.next()) co_yield up.action();
  Schedule across = between_leaders(call, local, OperationKind::barrier, 0);
  while (across.next()) co_yield across.action();
  Schedule down = broadcast_binomial(local);
  while (down.next()) co_yield down.action();
}

// The root's leader first, if that is another; then all leaders; then all others.
Schedule broadcast_hierarchical(Call& call) {
  Call local = call.within(call.local, 0);
  if (call.root_local != none && call.root_local != 0) {
    if (local.rank() == call.root_local) co_yield local.send(0, call.bytes);
    if (local.rank() == 0) {
      co_yield local.receive(call.root_local, call.bytes);
      local.value = call.received;
    }
  }
  Schedule across = between_leaders(call, local, OperationKind::broadcast, call.root_leader);
  while (across.next()) co_yield across.action();
  Schedule down = for_part(call, local, broadcast_binomial(local));
  while (down.next()) co_yield down.action();
  call.value = local.value;
}

Schedule reduce_hierarchical(Call& call) {
  Call local = call.within(call.local, 0);
  Schedule up = for_part(call, local, reduce_binomial(local));
  while (up.next()) co_yield up.action();
  Schedule across = between_leaders(call, local, OperationKind::reduce, call.root_leader);
  while (across.next()) co_yield across.action();
  if (call.root_local != none && call.root_local != 0) {
    if (local.rank() == 0) co_yield local.send(call.root_local, call.bytes);
    if (local.rank() == call.root_local) {
      co_yield local.receive(0, call.bytes);
      local.value = call.received;
    }
  }
  call.value = local.value;
}

Schedule allreduce_hierarchical(Call& call) {
  Call local = call.within(call.local, 0);
  Schedule up = for_part(call, local, reduce_binomial(local));
  while (up.next()) co_yield up.action();
  Schedule across = between_leaders(call, local, OperationKind::allreduce, 0);
  while (across.next()) co_yield across.action();
  Schedule down = for_part(call, local, broadcast_binomial(local));
  while (down.next()) co_yield down.action();
  call.value = local.value;
}

namespace {

const RegisteredCollective<barrier_hierarchical, by_node> barrier_hierarchical_registered{
    "barrier.hierarchical", "Hierarchical barrier."};
const RegisteredCollective<broadcast_hierarchical, by_node> broadcast_hierarchical_registered{
    "broadcast.hierarchical", "Among the leaders of the nodes, then within each node."};
const RegisteredCollective<reduce_hierarchical, by_node> reduce_hierarchical_registered{
    "reduce.hierarchical", "Hierarchical reduce."};
const RegisteredCollective<allreduce_hierarchical, by_node> allreduce_hierarchical_registered{
    "allreduce.hierarchical", "Hierarchical allreduce."};

}  // namespace

}  // namespace manyscale::mpi::collectives
