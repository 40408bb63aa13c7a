// SPDX-License-Identifier: Apache-2.0
// Keys with values sorted four bits at a time: counts of each block, their prefix sums, and a stable scatter.
#include <algorithm>
#include <numeric>

#include "check.hpp"

constexpr int kBlock = 128;
constexpr int kDigits = 16;

__device__ unsigned digit_of(unsigned key, int shift) {
  return (key >> shift) & (kDigits - 1);
}

__global__ void count_digits(const unsigned* keys, int n, int shift, unsigned* counts) {
  __shared__ unsigned mine[kDigits];
  if (threadIdx.x < kDigits) mine[threadIdx.x] = 0;
  __syncthreads();
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i < n) atomicAdd(&mine[digit_of(keys[i], shift)], 1u);
  __syncthreads();
  // Digit first: the prefix sums then give the first index of a digit of a block.
  if (threadIdx.x < kDigits) counts[threadIdx.x * gridDim.x + blockIdx.x] = mine[threadIdx.x];
}

__global__ void exclusive_scan(unsigned* values, int n) {
  __shared__ unsigned carry;
  __shared__ unsigned sums[2][1024];
  if (threadIdx.x == 0) carry = 0;
  __syncthreads();
  for (int first = 0; first < n; first += blockDim.x) {
    const int i = first + threadIdx.x;
    const unsigned value = i < n ? values[i] : 0;
    int from = 0;
    sums[0][threadIdx.x] = value;
    __syncthreads();
    for (int distance = 1; distance < int(blockDim.x); distance *= 2) {
      const unsigned other = threadIdx.x >= distance ? sums[from][threadIdx.x - distance] : 0;
      sums[1 - from][threadIdx.x] = sums[from][threadIdx.x] + other;
      from = 1 - from;
      __syncthreads();
    }
    const unsigned before = carry + sums[from][threadIdx.x] - value;
    __syncthreads();
    if (threadIdx.x == blockDim.x - 1) carry = before + value;
    if (i < n) values[i] = before;
    __syncthreads();
  }
}

__global__ void scatter(const unsigned* keys, const int* values, unsigned* keys_out, int* values_out, int n,
                        int shift, const unsigned* starts) {
  __shared__ unsigned in_warp[kBlock / 32][kDigits];
  const int i = blockIdx.x * kBlock + threadIdx.x;
  const int warp = threadIdx.x / 32;
  const unsigned below = (1u << (threadIdx.x % 32)) - 1;
  const bool inside = i < n;
  const unsigned key = inside ? keys[i] : 0;
  const unsigned digit = digit_of(key, shift);
  for (int d = threadIdx.x; d < kDigits * (kBlock / 32); d += kBlock) in_warp[d / kDigits][d % kDigits] = 0;
  __syncthreads();
  const unsigned there = __ballot_sync(~0u, inside);
  unsigned rank = 0;
  if (inside) {
    unsigned same = there;
    for (int bit = 0; bit < 4; ++bit) {
      const unsigned ones = __ballot_sync(there, (digit >> bit) & 1);
      same &= (digit >> bit) & 1 ? ones : ~ones;
    }
    rank = __popc(same & below);
    if (rank == 0) in_warp[warp][digit] = __popc(same);
  }
  __syncthreads();
  if (inside) {
    for (int w = 0; w < warp; ++w) rank += in_warp[w][digit];
    const unsigned index = starts[digit * gridDim.x + blockIdx.x] + rank;
    keys_out[index] = key;
    values_out[index] = values[i];
  }
}

int main() {
  const int n = 3'000;
  const int blocks = (n + kBlock - 1) / kBlock;
  Random random;
  std::vector<unsigned> keys(n);
  std::vector<int> indices(n);
  for (unsigned& key : keys) key = random.next() % 5 ? random.next() : 12345u;  // with equal ones
  std::iota(indices.begin(), indices.end(), 0);
  std::vector<int> wanted = indices;
  std::stable_sort(wanted.begin(), wanted.end(), [&](int a, int b) { return keys[a] < keys[b]; });

  unsigned* in = to_device(keys);
  unsigned* out = device_zeros<unsigned>(n);
  int* values_in = to_device(indices);
  int* values_out = device_zeros<int>(n);
  unsigned* counts = device_zeros<unsigned>(kDigits * blocks);
  for (int shift = 0; shift < 32; shift += 4) {
    count_digits<<<blocks, kBlock>>>(in, n, shift, counts);
    exclusive_scan<<<1, 256>>>(counts, kDigits * blocks);
    scatter<<<blocks, kBlock>>>(in, values_in, out, values_out, n, shift, counts);
    std::swap(in, out);
    std::swap(values_in, values_out);
  }
  must(cudaDeviceSynchronize());
  expect_same(from_device(values_in, n), wanted);
  std::sort(keys.begin(), keys.end());
  expect_same(from_device(in, n), keys);
  return verdict();
}
