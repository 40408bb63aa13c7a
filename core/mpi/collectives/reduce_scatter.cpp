// SPDX-License-Identifier: Apache-2.0
// Reductions of which each member gets a part: `bytes` is the part, which may differ from member to member.
#include "mpi/collectives/algorithms.hpp"
#include "mpi/collectives/patterns.hpp"

namespace manyscale::mpi::collectives {

// A reduction of all to the first member, then a scatter.
Schedule reduce_scatter_linear(Call& call) {
  call.root = 0;
  Call whole = call;
  whole.bytes = call.parts(0, call.size());
  whole.column = -1;
  Schedule reduce = begin_collective(whole, OperationKind::reduce, Algorithm::automatic);
  while (reduce.next()) {
    co_yield reduce.action();
    whole.received = call.received;
  }
  call.value = whole.value;
  Schedule scatter = scatter_linear(call);
  while (scatter.next()) co_yield scatter.action();
  if (call.rank() != 0) call.value = call.received;
}

Schedule reduce_scatter_recursive_halving(Call& call) {
  const Fold fold(call.size());
  const std::uint32_t rank = call.rank();
  const std::uint64_t whole = call.parts(0, call.size());
  if (fold.folded_away(rank)) {
    co_yield call.send(rank - 1, whole);
    co_yield call.receive(rank - 1, call.part(rank));
    call.value = call.received;
    co_return;
  }
  if (fold.has_guest(rank)) {
    co_yield call.receive(rank + 1, whole);
    co_yield call.combine(whole);
    call.value += call.received;
  }
  const std::uint32_t position = fold.position(rank);
  std::uint32_t begin = 0, end = fold.size;
  for (std::uint32_t distance = fold.size / 2; distance > 0; distance /= 2) {
    const std::uint32_t partner = fold.begin(position ^ distance), middle = begin + distance;
    const std::uint64_t lower = call.parts(fold.begin(begin), fold.begin(middle) - fold.begin(begin));
    const std::uint64_t upper = call.parts(fold.begin(middle), fold.begin(end) - fold.begin(middle));
    const bool low = (position & distance) == 0;
    co_yield call.exchange(partner, low ? upper : lower, partner, low ? lower : upper);
    co_yield call.combine(low ? lower : upper);
    call.value += call.received;
    (low ? end : begin) = middle;
  }
  if (fold.has_guest(rank)) co_yield call.send(rank + 1, call.part(rank + 1));
}

Schedule reduce_scatter_ring(Call& call) {
  const std::uint32_t size = call.size(), rank = call.rank();
  for (std::uint32_t step = 1; step < size; ++step) {
    const std::uint32_t sent = (rank + size - step) % size, got = (rank + 2 * size - step - 1) % size;
    co_yield call.exchange((rank + 1) % size, call.part(sent), (rank + size - 1) % size, call.part(got));
    co_yield call.combine(call.part(got));
    call.value = call.received + call.own;
  }
}

// Each pair exchanges the parts meant for the two.
Schedule reduce_scatter_pairwise(Call& call) {
  const std::uint32_t size = call.size(), rank = call.rank();
  const std::uint64_t mine = call.part(rank);
  std::uint64_t sum = call.own;
  call.value = call.own;  // what is sent is never a sum
  for (std::uint32_t step = 1; step < size; ++step) {
    const std::uint32_t to = (rank + step) % size, from = (rank + size - step) % size;
    co_yield call.exchange(to, call.part(to), from, mine);
    co_yield call.combine(mine);
    sum += call.received;
  }
  call.value = sum;
}

namespace {

const RegisteredCollective<reduce_scatter_linear> reduce_scatter_linear_registered{
    "reduce_scatter.linear", "A reduction of all to the first member, then a scatter."};
const RegisteredCollective<reduce_scatter_recursive_halving> reduce_scatter_recursive_halving_registered{
    "reduce_scatter.recursive-halving", "Recursive-halving reduce scatter."};
const RegisteredCollective<reduce_scatter_ring> reduce_scatter_ring_registered{"reduce_scatter.ring",
                                                                               "Ring reduce scatter."};
const RegisteredCollective<reduce_scatter_pairwise> reduce_scatter_pairwise_registered{
    "reduce_scatter.pairwise", "Each pair of members exchanges the blocks for the two."};

}  // namespace

}  // namespace manyscale::mpi::collectives
