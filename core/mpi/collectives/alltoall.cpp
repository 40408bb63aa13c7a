// SPDX-License-Identifier: Apache-2.0
// Everybody has a part for everybody: `bytes` is one part; parts may differ from pair to pair.
#include "mpi/collectives/algorithms.hpp"
#include "mpi/collectives/patterns.hpp"

namespace manyscale::mpi::collectives {

// All at once, each member beginning with its neighbour.
Schedule alltoall_linear(Call& call) {
  const std::uint32_t size = call.size(), rank = call.rank();
  for (std::uint32_t i = 1; i < size; ++i) {
    const std::uint32_t from = (rank + i) % size;
    co_yield call.begin_receive(from, call.part(from, rank));
  }
  for (std::uint32_t i = 1; i < size; ++i) {
    const std::uint32_t to = (rank + size - i) % size;
    co_yield call.begin_send(to, call.part(rank, to));
  }
  co_yield call.wait();
}

// So many at a time.
Schedule alltoall_scattered(Call& call) {
  const std::uint32_t size = call.size(), rank = call.rank();
  for (std::uint32_t begin = 1; begin < size; begin += call.window) {
    const std::uint32_t end = std::min(size, begin + call.window);
    for (std::uint32_t i = begin; i < end; ++i) {
      const std::uint32_t from = (rank + i) % size;
      co_yield call.begin_receive(from, call.part(from, rank));
    }
    for (std::uint32_t i = begin; i < end; ++i) {
      const std::uint32_t to = (rank + size - i) % size;
      co_yield call.begin_send(to, call.part(rank, to));
    }
    co_yield call.wait();
  }
}

Schedule alltoall_pairwise(Call& call) {
  const std::uint32_t size = call.size(), rank = call.rank();
  const bool power = std::has_single_bit(size);
  for (std::uint32_t i = 1; i < size; ++i) {
    const std::uint32_t to = power ? rank ^ i : (rank + i) % size;
    const std::uint32_t from = power ? rank ^ i : (rank + size - i) % size;
    co_yield call.exchange(to, call.part(rank, to), from, call.part(from, rank));
  }
}

// In round i the blocks whose distance still to go has bit i set travel 2^i further. Of equal parts only.
Schedule alltoall_bruck(Call& call) {
  const std::uint32_t size = call.size(), rank = call.rank();
  for (std::uint64_t bit = 1; bit < size; bit *= 2) {
    const auto distance = static_cast<std::uint32_t>(bit);
    // Of the numbers below `size`, those with this bit set.
    const std::uint64_t whole = size / (2 * bit) * bit, rest = size % (2 * bit);
    const std::uint64_t count = whole + (rest > bit ? rest - bit : 0);
    co_yield call.exchange((rank + distance) % size, count * call.bytes, (rank + size - distance) % size,
                           count * call.bytes);
  }
}

namespace {

const RegisteredCollective<alltoall_linear> alltoall_linear_registered{
    "alltoall.linear", "All at once, each member beginning with its neighbour."};
const RegisteredCollective<alltoall_scattered> alltoall_scattered_registered{
    "alltoall.scattered", "All pairs, a window of them at a time."};
const RegisteredCollective<alltoall_pairwise> alltoall_pairwise_registered{"alltoall.pairwise",
                                                                           "Pairwise alltoall."};
const RegisteredCollective<alltoall_bruck> alltoall_bruck_registered{
    "alltoall.bruck", "In round i the blocks whose distance still to go has bit i set travel 2^i further."};
const RegisteredCollective<alltoall_linear> alltoallv_linear_registered{
    "alltoallv.linear", "All at once, each member beginning with its neighbour."};
const RegisteredCollective<alltoall_scattered> alltoallv_scattered_registered{
    "alltoallv.scattered", "All pairs, a window of them at a time."};
const RegisteredCollective<alltoall_pairwise> alltoallv_pairwise_registered{"alltoallv.pairwise",
                                                                            "Pairwise alltoallv."};

}  // namespace

}  // namespace manyscale::mpi::collectives
