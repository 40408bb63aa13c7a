// SPDX-License-Identifier: Apache-2.0
// Algorithms of the toolkit's own libraries: Thrust and CUB.
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <algorithm>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_reduce.cuh>
#include <numeric>

#include "check.hpp"

struct Square {
  __host__ __device__ int operator()(int x) const { return x * x; }
};

__global__ void scan_block(const int* in, int* out) {
  using Scan = cub::BlockScan<int, 128>;
  __shared__ typename Scan::TempStorage storage;
  int sum = 0;
  Scan(storage).InclusiveSum(in[threadIdx.x], sum);
  out[threadIdx.x] = sum;
}

int main() {
  const int n = 3'000;
  Random random;
  std::vector<int> host(n);
  for (int& value : host) value = int(random.below(1'000)) - 500;

  thrust::device_vector<int> values(host.begin(), host.end());
  expect(thrust::reduce(values.begin(), values.end()) == std::accumulate(host.begin(), host.end(), 0));

  thrust::device_vector<int> squares(n);
  thrust::transform(values.begin(), values.end(), squares.begin(), Square{});
  for (int i = 0; i < n; i += 501) expect(squares[i] == host[i] * host[i]);

  thrust::device_vector<int> sums(n);
  thrust::inclusive_scan(values.begin(), values.end(), sums.begin());
  std::vector<int> wanted(n), got(n);
  std::partial_sum(host.begin(), host.end(), wanted.begin());
  thrust::copy(sums.begin(), sums.end(), got.begin());
  expect_same(got, wanted);

  thrust::sort(values.begin(), values.end());
  std::sort(host.begin(), host.end());
  thrust::copy(values.begin(), values.end(), got.begin());
  expect_same(got, host);

  int* largest = device_zeros<int>(1);
  size_t bytes = 0;
  void* storage = nullptr;
  const int* data = thrust::raw_pointer_cast(values.data());
  must(cub::DeviceReduce::Max(storage, bytes, data, largest, n));
  must(cudaMalloc(&storage, bytes));
  must(cub::DeviceReduce::Max(storage, bytes, data, largest, n));
  expect(from_device(largest, 1)[0] == host.back());

  int* out = device_zeros<int>(128);
  scan_block<<<1, 128>>>(data, out);
  std::vector<int> first(128);
  std::partial_sum(host.begin(), host.begin() + 128, first.begin());
  expect_same(from_device(out, 128), first);
  return verdict();
}
