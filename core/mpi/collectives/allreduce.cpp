// SPDX-License-Identifier: Apache-2.0
// Reductions whose result everybody gets: `bytes` is each member's operand.
#include "mpi/collectives/algorithms.hpp"
#include "mpi/collectives/patterns.hpp"

namespace manyscale::mpi {

Schedule reduce_to_blocks(Call& call) {
  const Fold fold(call.size());
  const std::uint32_t rank = from_root(call), position = fold.position(rank);
  if (fold.has_guest(rank)) {
    co_yield call.receive(member_at(call, rank + 1), call.bytes);
    co_yield call.combine(call.bytes);
    call.value += call.received;
  }
  std::uint32_t begin = 0, end = fold.size;
  for (std::uint32_t distance = fold.size / 2; distance > 0; distance /= 2) {
    const std::uint32_t partner = member_at(call, fold.begin(position ^ distance)), middle = begin + distance;
    const std::uint64_t lower = blocks(call.bytes, fold.size, begin, middle);
    const std::uint64_t upper = blocks(call.bytes, fold.size, middle, end);
    const bool low = (position & distance) == 0;
    co_yield call.exchange(partner, low ? upper : lower, partner, low ? lower : upper);
    co_yield call.combine(low ? lower : upper);
    call.value += call.received;
    (low ? end : begin) = middle;
  }
}

namespace collectives {

Schedule allreduce_linear(Call& call) {
  call.root = 0;
  Schedule reduce = reduce_linear(call);
  while (reduce.next()) co_yield reduce.action();
  Schedule broadcast = broadcast_linear(call);
  while (broadcast.next()) co_yield broadcast.action();
}

// Each with the algorithm that would be chosen for it alone.
Schedule allreduce_reduce_broadcast(Call& call) {
  call.root = 0;
  Schedule reduce = begin_collective(call, OperationKind::reduce, Algorithm::automatic);
  while (reduce.next()) co_yield reduce.action();
  Schedule broadcast = begin_collective(call, OperationKind::broadcast, Algorithm::automatic);
  while (broadcast.next()) co_yield broadcast.action();
}

Schedule allreduce_recursive_doubling(Call& call) {
  const Fold fold(call.size());
  const std::uint32_t rank = call.rank();
  if (fold.folded_away(rank)) {
    co_yield call.send(rank - 1, call.bytes);
    co_yield call.receive(rank - 1, call.bytes);
    call.value = call.received;
    co_return;
  }
  if (fold.has_guest(rank)) {
    co_yield call.receive(rank + 1, call.bytes);
    co_yield call.combine(call.bytes);
    call.value += call.received;
  }
  for (std::uint32_t distance = 1; distance < fold.size; distance *= 2) {
    const std::uint32_t partner = fold.begin(fold.position(rank) ^ distance);
    co_yield call.exchange(partner, call.bytes, partner, call.bytes);
    co_yield call.combine(call.bytes);
    call.value += call.received;
  }
  if (fold.has_guest(rank)) co_yield call.send(rank + 1, call.bytes);
}

// Reduce-scatter around a ring, then allgather around it; segments of each block follow each other.
Schedule allreduce_segmented_ring(Call& call) {
  const std::uint32_t size = call.size(), rank = call.rank();
  if (size == 1) co_return;
  const std::uint32_t left = (rank + size - 1) % size, right = (rank + 1) % size;
  const std::uint64_t phase = call.segment == 0 ? call.bytes : std::min(call.bytes, call.segment * size);
  for (std::uint64_t done = 0; done < call.bytes || done == 0; done += phase) {
    const std::uint64_t bytes = std::min(phase, call.bytes - done);
    call.value = call.own;
    for (std::uint32_t step = 0; step + 1 < size; ++step) {
      const std::uint32_t sent = (rank + size - step) % size, got = (rank + 2 * size - step - 1) % size;
      co_yield call.exchange(right, blocks(bytes, size, sent, sent + 1), left,
                             blocks(bytes, size, got, got + 1));
      co_yield call.combine(blocks(bytes, size, got, got + 1));
      call.value = call.received + call.own;
    }
    for (std::uint32_t step = 0; step + 1 < size; ++step) {
      const std::uint32_t sent = (rank + 1 + size - step) % size, got = (rank + size - step) % size;
      co_yield call.exchange(right, blocks(bytes, size, sent, sent + 1), left,
                             blocks(bytes, size, got, got + 1));
      call.value = call.received;
    }
    if (phase == 0) co_return;
  }
}

Schedule allreduce_ring(Call& call) {
  call.segment = 0;
  return allreduce_segmented_ring(call);
}

// Reduce-scatter by recursive halving, then allgather by recursive doubling.
Schedule allreduce_rabenseifner(Call& call) {
  call.root = 0;
  const Fold fold(call.size());
  const std::uint32_t rank = call.rank();
  const std::uint64_t bytes = call.bytes;
  if (fold.folded_away(rank)) {
    co_yield call.send(rank - 1, bytes);
    co_yield call.receive(rank - 1, bytes);
    call.value = call.received;
    co_return;
  }
  Schedule halve = reduce_to_blocks(call);
  while (halve.next()) co_yield halve.action();
  const std::uint32_t position = fold.position(rank);
  for (std::uint32_t distance = 1; distance < fold.size; distance *= 2) {
    const std::uint32_t partner = fold.begin(position ^ distance);
    const std::uint32_t mine = position & ~(distance - 1), theirs = mine ^ distance;
    co_yield call.exchange(partner, blocks(bytes, fold.size, mine, mine + distance), partner,
                           blocks(bytes, fold.size, theirs, theirs + distance));
  }
  if (fold.has_guest(rank)) co_yield call.send(rank + 1, bytes);
}

namespace {

const RegisteredCollective<allreduce_linear> allreduce_linear_registered{
    "allreduce.linear", "Every member communicates with the root, one after the other."};
const RegisteredCollective<allreduce_reduce_broadcast> allreduce_reduce_broadcast_registered{
    "allreduce.reduce-broadcast",
    "A reduction and a broadcast, each with the algorithm that the library chooses for it."};
const RegisteredCollective<allreduce_recursive_doubling> allreduce_recursive_doubling_registered{
    "allreduce.recursive-doubling", "Recursive-doubling allreduce."};
const RegisteredCollective<allreduce_ring> allreduce_ring_registered{"allreduce.ring", "Ring allreduce."};
const RegisteredCollective<allreduce_segmented_ring> allreduce_segmented_ring_registered{
    "allreduce.segmented-ring", "Reduce-scatter around a ring, then allgather around it."};
const RegisteredCollective<allreduce_rabenseifner> allreduce_rabenseifner_registered{
    "allreduce.rabenseifner", "Reduce-scatter by recursive halving, then allgather by recursive doubling."};

}  // namespace

}  // namespace collectives

}  // namespace manyscale::mpi
