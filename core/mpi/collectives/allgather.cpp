// SPDX-License-Identifier: Apache-2.0
// Everybody gets everybody's part: `bytes` is each member's part, which may differ from member to member.
#include "mpi/collectives/algorithms.hpp"
#include "mpi/collectives/patterns.hpp"

namespace manyscale::mpi::collectives {

// A gather to the first member and a broadcast of all.
Schedule allgather_linear(Call& call) {
  call.root = 0;
  Schedule gather = gather_linear(call);
  while (gather.next()) co_yield gather.action();
  call.bytes = call.parts(0, call.size());
  call.column = -1;
  Schedule broadcast = broadcast_linear(call);
  while (broadcast.next()) co_yield broadcast.action();
}

// In round i each member hands its first 2^i blocks to the member 2^i before it.
Schedule allgather_bruck(Call& call) {
  const std::uint32_t size = call.size(), rank = call.rank();
  for (std::uint64_t step = 1; step < size; step *= 2) {
    const auto distance = static_cast<std::uint32_t>(step);
    const std::uint32_t count = std::min(distance, size - distance);
    const std::uint32_t to = (rank + size - distance) % size, from = (rank + distance) % size;
    co_yield call.exchange(to, call.parts(rank, count), from, call.parts(from, count));
  }
}

// For powers of two; others use Bruck's, as both libraries do.
Schedule allgather_recursive_doubling(Call& call) {
  const std::uint32_t size = call.size(), rank = call.rank();
  if (!std::has_single_bit(size)) {
    Schedule bruck = allgather_bruck(call);
    while (bruck.next()) co_yield bruck.action();
    co_return;
  }
  for (std::uint32_t distance = 1; distance < size; distance *= 2) {
    const std::uint32_t partner = rank ^ distance;
    co_yield call.exchange(partner, call.parts(rank & ~(distance - 1), distance), partner,
                           call.parts(partner & ~(distance - 1), distance));
  }
}

Schedule allgather_ring(Call& call) {
  const std::uint32_t size = call.size(), rank = call.rank();
  for (std::uint32_t step = 0; step + 1 < size; ++step) {
    const std::uint32_t sent = (rank + size - step) % size, got = (rank + 2 * size - step - 1) % size;
    co_yield call.exchange((rank + 1) % size, call.part(sent), (rank + size - 1) % size, call.part(got));
  }
}

// Pairs exchange with their left and right neighbours in turn, two blocks at a time; odd groups use a ring.
Schedule allgather_neighbor_exchange(Call& call) {
  const std::uint32_t size = call.size(), rank = call.rank();
  if (size % 2 == 1) {
    Schedule ring = allgather_ring(call);
    while (ring.next()) co_yield ring.action();
    co_return;
  }
  const bool even = rank % 2 == 0;
  const std::uint32_t first = even ? rank + 1 : rank - 1;
  co_yield call.exchange(first, call.part(rank), first, call.part(first));
  // In round i come the blocks of the pair (i + 1) / 2 further on, from both sides in turn; they are passed
  // on next.
  const std::uint32_t pairs = size / 2, own = rank / 2;
  std::uint32_t pair = own;
  for (std::uint32_t round = 1; round < pairs; ++round) {
    const std::uint32_t distance = (round + 1) / 2;
    const bool from_below = even == (round % 2 == 1);
    const std::uint32_t got = (from_below ? own + pairs - distance : own + distance) % pairs;
    const std::uint32_t partner = from_below ? (rank + size - 1) % size : (rank + 1) % size;
    co_yield call.exchange(partner, call.parts(2 * pair, 2), partner, call.parts(2 * got, 2));
    pair = got;
  }
}

namespace {

const RegisteredCollective<allgather_linear> allgather_linear_registered{
    "allgather.linear", "A gather to the first member and a broadcast of all."};
const RegisteredCollective<allgather_bruck> allgather_bruck_registered{
    "allgather.bruck", "In round i each member hands its first 2^i blocks to the member 2^i before it."};
const RegisteredCollective<allgather_recursive_doubling> allgather_recursive_doubling_registered{
    "allgather.recursive-doubling",
    "Pairs at doubling distances exchange what they have; for powers of two."};
const RegisteredCollective<allgather_ring> allgather_ring_registered{"allgather.ring", "Ring allgather."};
const RegisteredCollective<allgather_neighbor_exchange> allgather_neighbor_exchange_registered{
    "allgather.neighbor-exchange",
    "Pairs exchange with their left and right neighbours in turn, two blocks at a time."};

}  // namespace

}  // namespace manyscale::mpi::collectives
