// SPDX-License-Identifier: Apache-2.0
// Groups of threads: tiles of a warp, threads that agree, a reduction and a scan of a tile.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "check.hpp"

namespace cg = cooperative_groups;

template <int kSize>
__global__ void tiles(const int* in, int* sums, int* before, int* largest) {
  const cg::thread_block block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<kSize>(block);
  const int i = blockIdx.x * blockDim.x + block.thread_rank();
  const int value = in[i];
  sums[i] = cg::reduce(tile, value, cg::plus<int>());
  before[i] = cg::exclusive_scan(tile, value);
  int most = value;
  for (int distance = kSize / 2; distance > 0; distance /= 2) most = max(most, tile.shfl_xor(most, distance));
  largest[i] = most;
  block.sync();
}

// One atomic for all threads that come here together.
__global__ void compact(const int* in, int n, int* out, int* count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] > 0) {
    const auto active = cg::coalesced_threads();
    int start = 0;
    if (active.thread_rank() == 0) start = atomicAdd(count, int(active.size()));
    out[active.shfl(start, 0) + active.thread_rank()] = in[i];
  }
}

template <int kSize>
void check_tiles(const std::vector<int>& values) {
  const int n = int(values.size());
  int* in = to_device(values);
  int* sums = device_zeros<int>(n);
  int* before = device_zeros<int>(n);
  int* largest = device_zeros<int>(n);
  tiles<kSize><<<n / 128, 128>>>(in, sums, before, largest);
  std::vector<int> wanted_sums(n), wanted_before(n), wanted_largest(n);
  for (int first = 0; first < n; first += kSize) {
    int sum = 0, most = values[first];
    for (int i = first; i < first + kSize; ++i) {
      wanted_before[i] = sum;
      sum += values[i];
      most = std::max(most, values[i]);
    }
    for (int i = first; i < first + kSize; ++i) {
      wanted_sums[i] = sum;
      wanted_largest[i] = most;
    }
  }
  expect_same(from_device(sums, n), wanted_sums);
  expect_same(from_device(before, n), wanted_before);
  expect_same(from_device(largest, n), wanted_largest);
}

int main() {
  Random random;
  std::vector<int> values(512);
  int positive = 0;
  long long total = 0;
  for (int& value : values) {
    value = int(random.below(200)) - 100;
    if (value > 0) ++positive, total += value;
  }
  check_tiles<4>(values);
  check_tiles<16>(values);
  check_tiles<32>(values);

  int* in = to_device(values);
  int* out = device_zeros<int>(512);
  int* count = device_zeros<int>(1);
  compact<<<4, 128>>>(in, 512, out, count);
  expect(from_device(count, 1)[0] == positive);
  for (int value : sorted_from_device(out, positive)) total -= value;
  expect(total == 0);
  return verdict();
}
