// SPDX-License-Identifier: Apache-2.0
// Prefix reductions: `bytes` is each member's operand. An exclusive scan leaves the member's own operand out.
#include "mpi/collectives/algorithms.hpp"
#include "mpi/collectives/patterns.hpp"

namespace manyscale::mpi::collectives {

namespace {

Schedule linear(Call& call, bool exclusive) {
  const std::uint32_t size = call.size(), rank = call.rank();
  std::uint64_t before = 0;
  if (rank > 0) {
    co_yield call.receive(rank - 1, call.bytes);
    before = call.received;
    if (!exclusive || rank + 1 < size) co_yield call.combine(call.bytes);
  }
  call.value = before + call.own;
  if (rank + 1 < size) co_yield call.send(rank + 1, call.bytes);
  if (exclusive) call.value = before;
}

// In round i members exchange sums over 2^i members with the partner that far away.
Schedule recursive_doubling(Call& call, bool exclusive) {
  const std::uint32_t size = call.size(), rank = call.rank();
  std::uint64_t before = 0;
  call.value = call.own;  // the sum over the members that have exchanged so far
  for (std::uint64_t bit = 1; bit < size; bit *= 2) {
    const auto partner = static_cast<std::uint32_t>(rank ^ bit);
    if (partner >= size) continue;
    co_yield call.exchange(partner, call.bytes, partner, call.bytes);
    co_yield call.combine(call.bytes);
    call.value += call.received;
    if (partner < rank) {
      before += call.received;
      if (!exclusive) co_yield call.combine(call.bytes);
    }
  }
  call.value = exclusive ? before : before + call.own;
}

}  // namespace

Schedule scan_linear(Call& call) {
  return linear(call, false);
}
Schedule scan_recursive_doubling(Call& call) {
  return recursive_doubling(call, false);
}
Schedule exscan_linear(Call& call) {
  return linear(call, true);
}
Schedule exscan_recursive_doubling(Call& call) {
  return recursive_doubling(call, true);
}

namespace {

const RegisteredCollective<scan_linear> scan_linear_registered{
    "scan.linear", "Every member communicates with the root, one after the other."};
const RegisteredCollective<scan_recursive_doubling> scan_recursive_doubling_registered{
    "scan.recursive-doubling", "Recursive-doubling scan."};
const RegisteredCollective<exscan_linear> exscan_linear_registered{
    "exscan.linear", "Every member communicates with the root, one after the other."};
const RegisteredCollective<exscan_recursive_doubling> exscan_recursive_doubling_registered{
    "exscan.recursive-doubling", "Recursive-doubling exscan."};

}  // namespace

}  // namespace manyscale::mpi::collectives
