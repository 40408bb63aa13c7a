// SPDX-License-Identifier: Apache-2.0
// Barriers: messages without data that tell everybody that everybody is there.
#include "mpi/collectives/algorithms.hpp"
#include "mpi/collectives/patterns.hpp"

namespace manyscale::mpi::collectives {

// All report to the first, which answers all.
Schedule barrier_linear(Call& call) {
  if (call.rank() != 0) {
    co_yield call.send(0, 0);
    co_yield call.receive(0, 0);
    co_return;
  }
  for (std::uint32_t i = 1; i < call.size(); ++i) co_yield call.begin_receive(i, 0);
  co_yield call.wait();
  for (std::uint32_t i = 1; i < call.size(); ++i) co_yield call.begin_send(i, 0);
  co_yield call.wait();
}

// A token goes around twice.
Schedule barrier_double_ring(Call& call) {
  const std::uint32_t size = call.size(), rank = call.rank();
  if (size == 1) co_return;
  const std::uint32_t left = (rank + size - 1) % size, right = (rank + 1) % size;
  for (int round = 0; round < 2; ++round) {
    if (rank > 0) co_yield call.receive(left, 0);
    co_yield call.send(right, 0);
    if (rank == 0) co_yield call.receive(left, 0);
  }
}

Schedule barrier_recursive_doubling(Call& call) {
  const Fold fold(call.size());
  const std::uint32_t rank = call.rank();
  if (fold.folded_away(rank)) {
    co_yield call.send(rank - 1, 0);
    co_yield call.receive(rank - 1, 0);
    co_return;
  }
  if (fold.has_guest(rank)) co_yield call.receive(rank + 1, 0);
  for (std::uint32_t distance = 1; distance < fold.size; distance *= 2) {
    const std::uint32_t partner = fold.begin(fold.position(rank) ^ distance);
    co_yield call.exchange(partner, 0, partner, 0);
  }
  if (fold.has_guest(rank)) co_yield call.send(rank + 1, 0);
}

// In round i everybody tells the member 2^i further on (also called Bruck's barrier).
Schedule barrier_dissemination(Call& call) {
  const std::uint32_t size = call.size(), rank = call.rank();
  for (std::uint64_t distance = 1; distance < size; distance *= 2) {
    const auto step = static_cast<std::uint32_t>(distance);
    co_yield call.exchange((rank + step) % size, 0, (rank + size - step) % size, 0);
  }
}

// Up and down a binomial tree.
Schedule barrier_tree(Call& call) {
  const Tree tree = knomial_tree(call.size(), call.rank(), 2);
  for (const std::uint32_t child : tree.children) co_yield call.begin_receive(child, 0);
  co_yield call.wait();
  if (tree.parent != none) {
    co_yield call.send(tree.parent, 0);
    co_yield call.receive(tree.parent, 0);
  }
  for (const std::uint32_t child : tree.children) co_yield call.begin_send(child, 0);
  co_yield call.wait();
}

namespace {

const RegisteredCollective<barrier_linear> barrier_linear_registered{
    "barrier.linear", "All report to the first, which answers all."};
const RegisteredCollective<barrier_double_ring> barrier_double_ring_registered{"barrier.double-ring",
                                                                               "A token goes around twice."};
const RegisteredCollective<barrier_recursive_doubling> barrier_recursive_doubling_registered{
    "barrier.recursive-doubling", "Recursive-doubling barrier."};
const RegisteredCollective<barrier_dissemination> barrier_dissemination_registered{
    "barrier.dissemination",
    "In round i everybody tells the member 2^i further on (also called Bruck's barrier)."};
const RegisteredCollective<barrier_tree> barrier_tree_registered{"barrier.tree",
                                                                 "Up and down a binomial tree."};

}  // namespace

}  // namespace manyscale::mpi::collectives
