// SPDX-License-Identifier: Apache-2.0
// Prefix sums over many blocks in three launches: of blocks, of their totals, and both together.
#include "check.hpp"

constexpr int kBlock = 256;

__global__ void scan_blocks(const unsigned* values, unsigned* sums, unsigned* totals, int n) {
  __shared__ unsigned of_warp[kBlock / 32];
  const int i = blockIdx.x * kBlock + threadIdx.x;
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  unsigned value = i < n ? values[i] : 0;
  for (int distance = 1; distance < 32; distance *= 2) {
    const unsigned other = __shfl_up_sync(0xffffffff, value, distance);
    if (lane >= distance) value += other;
  }
  if (lane == 31) of_warp[warp] = value;
  __syncthreads();
  unsigned before = 0;
  for (int w = 0; w < warp; ++w) before += of_warp[w];
  value += before;
  if (i < n) sums[i] = value;
  if (totals && threadIdx.x == kBlock - 1) totals[blockIdx.x] = value;
}

__global__ void add_before(unsigned* sums, const unsigned* totals, int n) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (blockIdx.x > 0 && i < n) sums[i] += totals[blockIdx.x - 1];
}

int main() {
  const int n = 50 * kBlock + 77;
  const int blocks = (n + kBlock - 1) / kBlock;
  Random random;
  std::vector<unsigned> values(n), wanted(n);
  unsigned sum = 0;
  for (int i = 0; i < n; ++i) {
    values[i] = random.next();
    wanted[i] = sum += values[i];
  }
  unsigned* in = to_device(values);
  unsigned* out = device_zeros<unsigned>(n);
  unsigned* totals = device_zeros<unsigned>(blocks);
  scan_blocks<<<blocks, kBlock>>>(in, out, totals, n);
  scan_blocks<<<1, kBlock>>>(totals, totals, nullptr, blocks);
  add_before<<<blocks, kBlock>>>(out, totals, n);
  must(cudaDeviceSynchronize());
  expect_same(from_device(out, n), wanted);
  return verdict();
}
