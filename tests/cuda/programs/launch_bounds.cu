// SPDX-License-Identifier: Apache-2.0
// Bounds on blocks that kernels declare, and what the runtime says of them.
#include "check.hpp"

__global__ void __launch_bounds__(128, 4) bounded(float* out, const float* in, int n) {
  float values[8];
  for (int k = 0; k < 8; ++k) values[k] = in[(threadIdx.x * 8 + k) % n];
  float sum = 0;
  for (int round = 0; round < 4; ++round)
    for (int k = 0; k < 8; ++k) sum += values[k] * values[(k + round) % 8];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void unbounded(float* out) {
  out[threadIdx.x] = 1;
}

int main() {
  cudaFuncAttributes attributes{};
  must(cudaFuncGetAttributes(&attributes, bounded));
  expect(attributes.maxThreadsPerBlock == 128);
  expect(attributes.numRegs > 0 && attributes.numRegs <= 128);  // four blocks of 128 threads share 65536
  must(cudaFuncGetAttributes(&attributes, unbounded));
  expect(attributes.maxThreadsPerBlock == 1024);
  int blocks = 0;
  must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 128, 0));
  expect(blocks >= 4);

  const int n = 333;
  std::vector<float> in(n);
  for (int i = 0; i < n; ++i) in[i] = float(i % 5);
  float* values = to_device(in);
  float* out = device_zeros<float>(256);
  bounded<<<2, 128>>>(out, values, n);
  const std::vector<float> got = from_device(out, 256);
  for (int thread = 0; thread < 128; ++thread) {
    float sum = 0;
    for (int round = 0; round < 4; ++round)
      for (int k = 0; k < 8; ++k) sum += in[(thread * 8 + k) % n] * in[(thread * 8 + (k + round) % 8) % n];
    expect(got[thread] == sum && got[128 + thread] == sum);
  }
  return verdict();
}
