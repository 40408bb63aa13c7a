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

}  // namespace manyscale::mpi::collectives
