// SPDX-License-Identifier: Apache-2.0
// Sums and maxima by shuffles within warps, shared memory within blocks and atomics between them.
#include "check.hpp"

__device__ float warp_sum(float value) {
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_down_sync(~0u, value, distance);
  return value;
}

__global__ void sum_shuffle(const float* values, int n, float* total) {
  __shared__ float of_warp[32];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += values[i];
  sum = warp_sum(sum);
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  if (lane == 0) of_warp[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    sum = lane < int(blockDim.x / 32) ? of_warp[lane] : 0.0f;
    sum = warp_sum(sum);
    if (lane == 0) atomicAdd(total, sum);
  }
}

__global__ void maximum(const int* values, int n, int* result) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicMax(result, values[i]);
}

// The last block to arrive adds what the others left: a fence and a counter instead of a second launch.
__device__ unsigned arrived = 0;

__global__ void sum_once(const double* values, int n, double* of_block, double* total) {
  __shared__ double sums[128];
  __shared__ bool last;
  double sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += values[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    of_block[blockIdx.x] = sums[0];
    __threadfence();
    last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    double all = 0;
    for (int block = 0; block < int(gridDim.x); ++block)
      all += reinterpret_cast<volatile double*>(of_block)[block];
    *total = all;
  }
}

int main() {
  const int n = 20'000;
  Random random;
  std::vector<float> floats(n);
  std::vector<int> integers(n);
  std::vector<double> doubles(n);
  double wanted = 0;
  int largest = -1'000'000;
  for (int i = 0; i < n; ++i) {
    floats[i] = float(random.below(8));
    wanted += floats[i];
    doubles[i] = floats[i];
    integers[i] = int(random.below(2'000'000)) - 1'000'000;
    largest = std::max(largest, integers[i]);
  }
  float* values = to_device(floats);
  float* total = device_zeros<float>(1);
  sum_shuffle<<<12, 256>>>(values, n, total);
  expect(from_device(total, 1)[0] == float(wanted));  // whole numbers below 2^24 add up exactly in any order

  int* many = to_device(integers);
  int* result = to_device(std::vector<int>{-2'000'000});
  maximum<<<(n + 127) / 128, 128>>>(many, n, result);
  expect(from_device(result, 1)[0] == largest);

  double* precise = to_device(doubles);
  double* of_block = device_zeros<double>(9);
  double* sum = device_zeros<double>(1);
  for (int repeat = 0; repeat < 2; ++repeat) {
    must(cudaMemset(sum, 0, sizeof(double)));
    sum_once<<<9, 128>>>(precise, n, of_block, sum);
    expect(from_device(sum, 1)[0] == wanted);
  }
  return verdict();
}
