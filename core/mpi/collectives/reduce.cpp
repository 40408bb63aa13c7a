// SPDX-License-Identifier: Apache-2.0
// Reductions to a root: `bytes` is each member's operand.
#include "mpi/collectives/algorithms.hpp"
#include "mpi/collectives/patterns.hpp"

namespace manyscale::mpi::collectives {

namespace {

// Up a tree, segment by segment; a member combines what its children send, one after another.
Schedule reduce_up(Call& call, Tree tree) {
  const std::uint64_t segment = call.segment == 0 ? std::max<std::uint64_t>(call.bytes, 1) : call.segment;
  const std::uint64_t count = std::max<std::uint64_t>((call.bytes + segment - 1) / segment, 1);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t size = std::min(segment, call.bytes - i * segment);
    call.value = call.own;
    // The smallest subtrees are ready first.
    for (auto child = tree.children.rbegin(); child != tree.children.rend(); ++child) {
      co_yield call.receive(member_at(call, *child), size);
      co_yield call.combine(size);
      call.value += call.received;
    }
    if (tree.parent != none) co_yield call.begin_send(member_at(call, tree.parent), size);
  }
  co_yield call.wait();
}

}  // namespace

Schedule reduce_linear(Call& call) {
  if (call.rank() != call.root) {
    co_yield call.send(call.root, call.bytes);
    co_return;
  }
  for (std::uint32_t i = call.size(); i-- > 0;) {
    if (i == call.root) continue;
    co_yield call.receive(i, call.bytes);
    co_yield call.combine(call.bytes);
    call.value += call.received;
  }
}

Schedule reduce_binomial(Call& call) {
  return reduce_up(call, knomial_tree(call.size(), from_root(call), 2));
}
Schedule reduce_binary(Call& call) {
  return reduce_up(call, binary_tree(call.size(), from_root(call)));
}
Schedule reduce_chain(Call& call) {
  return reduce_up(call, chain_tree(call.size(), from_root(call), chain_fanout));
}
Schedule reduce_pipeline(Call& call) {
  return reduce_up(call, chain_tree(call.size(), from_root(call), 1));
}

// Reduce-scatter by recursive halving, then a gather up the same tree.
Schedule reduce_rabenseifner(Call& call) {
  const std::uint32_t rank = from_root(call);
  const Fold fold(call.size());
  const std::uint64_t bytes = call.bytes;
  if (fold.folded_away(rank)) {
    co_yield call.send(member_at(call, rank - 1), bytes);
    co_return;
  }
  Schedule halve = reduce_to_blocks(call);
  while (halve.next()) co_yield halve.action();
  const std::uint32_t position = fold.position(rank);
  for (std::uint32_t distance = 1; distance < fold.size; distance *= 2) {
    const std::uint32_t partner = member_at(call, fold.begin(position ^ distance));
    const std::uint32_t mine = position & ~(distance - 1), theirs = mine ^ distance;
    if ((position & distance) != 0) {
      co_yield call.send(partner, blocks(bytes, fold.size, mine, mine + distance));
      co_return;
    }
    co_yield call.receive(partner, blocks(bytes, fold.size, theirs, theirs + distance));
  }
}

namespace {

const RegisteredCollective<reduce_linear> reduce_linear_registered{
    "reduce.linear", "Every member communicates with the root, one after the other."};
const RegisteredCollective<reduce_binomial> reduce_binomial_registered{"reduce.binomial", "Binomial reduce."};
const RegisteredCollective<reduce_binary> reduce_binary_registered{"reduce.binary", "Binary reduce."};
const RegisteredCollective<reduce_chain> reduce_chain_registered{"reduce.chain", "Chain reduce."};
const RegisteredCollective<reduce_pipeline> reduce_pipeline_registered{"reduce.pipeline", "Pipeline reduce."};
const RegisteredCollective<reduce_rabenseifner> reduce_rabenseifner_registered{
    "reduce.rabenseifner", "Reduce-scatter by recursive halving, then a gather up the same tree."};

}  // namespace

}  // namespace manyscale::mpi::collectives
