// SPDX-License-Identifier: Apache-2.0
// Gathers to a root and scatters from it: `bytes` is each member's part, which may differ from member to
// member.
#include "mpi/collectives/algorithms.hpp"
#include "mpi/collectives/patterns.hpp"

namespace manyscale::mpi::collectives {

namespace {

// The parts of a member's binomial subtree; members are counted from the root.
std::uint64_t subtree_bytes(const Call& call, std::uint32_t position) {
  const std::uint32_t span = position == 0 ? call.size() : position & (~position + 1);
  return call.parts(member_at(call, position), std::min(span, call.size() - position));
}

}  // namespace

Schedule gather_linear(Call& call) {
  if (call.rank() != call.root) {
    co_yield call.send(call.root, call.part(call.rank()));
    co_return;
  }
  for (std::uint32_t i = 0; i < call.size(); ++i)
    if (i != call.root) co_yield call.begin_receive(i, call.part(i));
  co_yield call.wait();
}

Schedule gather_binomial(Call& call) {
  const std::uint32_t position = from_root(call);
  const Tree tree = knomial_tree(call.size(), position, 2);
  for (auto child = tree.children.rbegin(); child != tree.children.rend(); ++child)
    co_yield call.begin_receive(member_at(call, *child), subtree_bytes(call, *child));
  co_yield call.wait();
  if (tree.parent != none) co_yield call.send(member_at(call, tree.parent), subtree_bytes(call, position));
}

Schedule scatter_linear(Call& call) {
  if (call.rank() != call.root) {
    co_yield call.receive(call.root, call.part(call.rank()));
    co_return;
  }
  for (std::uint32_t i = 0; i < call.size(); ++i)
    if (i != call.root) co_yield call.begin_send(i, call.part(i));
  co_yield call.wait();
}

Schedule scatter_binomial(Call& call) {
  const std::uint32_t position = from_root(call);
  const Tree tree = knomial_tree(call.size(), position, 2);
  if (tree.parent != none) co_yield call.receive(member_at(call, tree.parent), subtree_bytes(call, position));
  for (const std::uint32_t child : tree.children)
    co_yield call.begin_send(member_at(call, child), subtree_bytes(call, child));
  co_yield call.wait();
}

namespace {

const RegisteredCollective<gather_linear> gather_linear_registered{
    "gather.linear", "Every member communicates with the root, one after the other."};
const RegisteredCollective<gather_binomial> gather_binomial_registered{"gather.binomial", "Binomial gather."};
const RegisteredCollective<scatter_linear> scatter_linear_registered{
    "scatter.linear", "Every member communicates with the root, one after the other."};
const RegisteredCollective<scatter_binomial> scatter_binomial_registered{"scatter.binomial",
                                                                         "Binomial scatter."};

}  // namespace

}  // namespace manyscale::mpi::collectives
