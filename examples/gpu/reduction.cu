// SPDX-License-Identifier: Apache-2.0
// The sum of an array: a loop, shuffles within a warp, shared memory between warps, an atomic addition between blocks.

extern "C" __global__ void sum(const float *values, float *total, int n) {
  __shared__ float of_warp[32];
  float mine = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += values[i];

  for (int distance = 16; distance > 0; distance /= 2) mine += __shfl_down_sync(0xffffffff, mine, distance);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x >= 32) return;

  mine = threadIdx.x < blockDim.x / 32 ? of_warp[threadIdx.x] : 0.0f;
  for (int distance = 16; distance > 0; distance /= 2) mine += __shfl_down_sync(0xffffffff, mine, distance);
  if (threadIdx.x == 0) atomicAdd(total, mine);
}
