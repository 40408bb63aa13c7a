// SPDX-License-Identifier: Apache-2.0
// Shared memory whose size the launch gives, below and above what a block gets without asking.
#include "check.hpp"

__global__ void reverse(int* values, int n) {
  extern __shared__ int shared[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) shared[i] = values[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] = shared[n - 1 - i];
}

// Two arrays of different types in one piece, beside static shared memory.
__global__ void split(const int* in, double* out, int n) {
  __shared__ int offset;
  extern __shared__ double pieces[];
  double* doubles = pieces;
  int* integers = reinterpret_cast<int*>(pieces + n);
  if (threadIdx.x == 0) offset = in[0] + 100;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    integers[i] = in[i];
    doubles[i] = 0.5 * i;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    out[i] = doubles[n - 1 - i] + integers[(i + 1) % n] + offset;
}

void check_reverse(int n) {
  std::vector<int> values(n), wanted(n);
  for (int i = 0; i < n; ++i) {
    values[i] = i * i;
    wanted[n - 1 - i] = i * i;
  }
  int* device = to_device(values);
  reverse<<<1, 256, n * sizeof(int)>>>(device, n);
  must(cudaGetLastError());
  expect_same(from_device(device, n), wanted);
  must(cudaFree(device));
}

int main() {
  check_reverse(1'000);
  check_reverse(12'288);  // all of the 48 KiB

  const int large = 15'000;
  int* device = device_zeros<int>(large);
  reverse<<<1, 256, large * sizeof(int)>>>(device, large);
  expect_error(cudaGetLastError(), cudaErrorInvalidValue);  // not without asking for it
  must(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024));
  check_reverse(large);
  cudaFuncAttributes attributes{};
  must(cudaFuncGetAttributes(&attributes, reverse));
  expect(attributes.maxDynamicSharedSizeBytes == 64 * 1024);
  must(cudaFuncGetAttributes(&attributes, split));
  expect(attributes.sharedSizeBytes >= sizeof(int));

  const int n = 100;
  std::vector<int> in(n);
  for (int i = 0; i < n; ++i) in[i] = 7 * i;
  int* integers = to_device(in);
  double* out = device_zeros<double>(n);
  split<<<1, 32, n * (sizeof(double) + sizeof(int))>>>(integers, out, n);
  const std::vector<double> got = from_device(out, n);
  for (int i = 0; i < n; ++i) expect(got[i] == 0.5 * (n - 1 - i) + in[(i + 1) % n] + 100);
  return verdict();
}
