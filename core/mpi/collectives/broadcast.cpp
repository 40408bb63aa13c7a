// SPDX-License-Identifier: Apache-2.0
// Broadcasts: `bytes` is the whole message.
#include "mpi/collectives/algorithms.hpp"
#include "mpi/collectives/patterns.hpp"

namespace manyscale::mpi::collectives {

namespace {

constexpr std::uint32_t knomial_radix =
    4;  // Open MPI: coll_tuned_bcast_decision.c, coll_tuned_bcast_knomial_radix

// Down a tree, segment by segment: while one is passed on the next is received.
Schedule broadcast_down(Call& call, Tree tree) {
  const std::uint64_t segment = call.segment == 0 ? std::max<std::uint64_t>(call.bytes, 1) : call.segment;
  const std::uint64_t count = std::max<std::uint64_t>((call.bytes + segment - 1) / segment, 1);
  const auto size_of = [&](std::uint64_t i) { return std::min(segment, call.bytes - i * segment); };
  if (tree.parent != none) {
    co_yield call.receive(member_at(call, tree.parent), size_of(0));
    call.value = call.received;
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    for (const std::uint32_t child : tree.children)
      co_yield call.begin_send(member_at(call, child), size_of(i));
    if (tree.parent != none && i + 1 < count)
      co_yield call.begin_receive(member_at(call, tree.parent), size_of(i + 1));
    co_yield call.wait();
  }
}

// The members of a binomial subtree whose root is this far from the root of all.
std::uint32_t subtree(std::uint32_t size, std::uint32_t position) {
  const std::uint32_t span = position == 0 ? std::bit_ceil(size) : position & (~position + 1);
  return std::min(span, size - position);
}

// The root's message is cut into a block for each member; each gets those of its binomial subtree.
Schedule scatter_blocks(Call& call) {
  const std::uint32_t size = call.size(), position = from_root(call);
  const Tree tree = knomial_tree(size, position, 2);
  if (tree.parent != none) {
    co_yield call.receive(member_at(call, tree.parent),
                          blocks(call.bytes, size, position, position + subtree(size, position)));
    call.value = call.received;
  }
  for (const std::uint32_t child : tree.children)
    co_yield call.send(member_at(call, child), blocks(call.bytes, size, child, child + subtree(size, child)));
}

}  // namespace

Schedule broadcast_linear(Call& call) {
  if (call.rank() != call.root) {
    co_yield call.receive(call.root, call.bytes);
    call.value = call.received;
    co_return;
  }
  for (std::uint32_t i = 0; i < call.size(); ++i)
    if (i != call.root) co_yield call.begin_send(i, call.bytes);
  co_yield call.wait();
}

Schedule broadcast_binomial(Call& call) {
  return broadcast_down(call, knomial_tree(call.size(), from_root(call), 2));
}
Schedule broadcast_knomial(Call& call) {
  return broadcast_down(call, knomial_tree(call.size(), from_root(call), knomial_radix));
}
Schedule broadcast_binary(Call& call) {
  return broadcast_down(call, binary_tree(call.size(), from_root(call)));
}
Schedule broadcast_chain(Call& call) {
  return broadcast_down(call, chain_tree(call.size(), from_root(call), chain_fanout));
}
Schedule broadcast_pipeline(Call& call) {
  return broadcast_down(call, chain_tree(call.size(), from_root(call), 1));
}

// Van de Geijn: scatter, then allgather by recursive doubling; groups that are no power of two use a ring.
Schedule broadcast_scatter_allgather(Call& call) {
  const std::uint32_t size = call.size(), position = from_root(call);
  if (!std::has_single_bit(size)) {
    Schedule ring = broadcast_scatter_ring(call);
    while (ring.next()) co_yield ring.action();
    co_return;
  }
  Schedule scatter = scatter_blocks(call);
  while (scatter.next()) co_yield scatter.action();
  for (std::uint32_t distance = 1; distance < size; distance *= 2) {
    const std::uint32_t partner = position ^ distance;
    const std::uint32_t mine = position & ~(distance - 1), theirs = partner & ~(distance - 1);
    co_yield call.exchange(member_at(call, partner), blocks(call.bytes, size, mine, mine + distance),
                           member_at(call, partner), blocks(call.bytes, size, theirs, theirs + distance));
  }
}

// Scatter, then allgather around a ring.
Schedule broadcast_scatter_ring(Call& call) {
  const std::uint32_t size = call.size(), position = from_root(call);
  Schedule scatter = scatter_blocks(call);
  while (scatter.next()) co_yield scatter.action();
  for (std::uint32_t step = 0; step + 1 < size; ++step) {
    const std::uint32_t sent = (position + size - step) % size, got = (position + 2 * size - step - 1) % size;
    co_yield call.exchange(member_at(call, (position + 1) % size), blocks(call.bytes, size, sent, sent + 1),
                           member_at(call, (position + size - 1) % size),
                           blocks(call.bytes, size, got, got + 1));
  }
}

namespace {

const RegisteredCollective<broadcast_linear> broadcast_linear_registered{
    "broadcast.linear", "Every member communicates with the root, one after the other."};
const RegisteredCollective<broadcast_binomial> broadcast_binomial_registered{"broadcast.binomial",
                                                                             "Binomial broadcast."};
const RegisteredCollective<broadcast_knomial> broadcast_knomial_registered{"broadcast.knomial",
                                                                           "Knomial broadcast."};
const RegisteredCollective<broadcast_binary> broadcast_binary_registered{"broadcast.binary",
                                                                         "Binary broadcast."};
const RegisteredCollective<broadcast_chain> broadcast_chain_registered{"broadcast.chain", "Chain broadcast."};
const RegisteredCollective<broadcast_pipeline> broadcast_pipeline_registered{"broadcast.pipeline",
                                                                             "Pipeline broadcast."};
const RegisteredCollective<broadcast_scatter_allgather> broadcast_scatter_allgather_registered{
    "broadcast.scatter-allgather", "Scatter, then allgather by recursive doubling (van de Geijn)."};
const RegisteredCollective<broadcast_scatter_ring> broadcast_scatter_ring_registered{
    "broadcast.scatter-ring", "Scatter, then allgather around a ring."};

}  // namespace

}  // namespace manyscale::mpi::collectives
