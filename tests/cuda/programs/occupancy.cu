// SPDX-License-Identifier: Apache-2.0
// How many blocks fit on a multiprocessor: the runtime's answer against the device's own limits.
#include "check.hpp"

__global__ void light(float* x) {
  x[threadIdx.x] += 1;
}

__global__ void shared_heavy(float* x) {
  extern __shared__ float memory[];
  memory[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = memory[blockDim.x - 1 - threadIdx.x];
}

int main() {
  cudaDeviceProp properties{};
  must(cudaGetDeviceProperties(&properties, 0));
  for (int threads : {32, 64, 128, 256, 512, 1024}) {
    int blocks = 0;
    must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, light, threads, 0));
    const int by_threads = properties.maxThreadsPerMultiProcessor / threads;
    const int limit = std::min(by_threads, properties.maxBlocksPerMultiProcessor);
    expect(blocks == limit);  // few registers, no shared memory: nothing else limits it
  }
  // Shared memory: as many as fit into what the multiprocessor has.
  int few = 0, fewer = 0;
  must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&few, shared_heavy, 64, 8 * 1024));
  must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fewer, shared_heavy, 64, 40 * 1024));
  const int room = int(properties.sharedMemPerMultiprocessor);
  expect(few >= 1 && few <= room / (8 * 1024));
  expect(fewer >= 1 && fewer <= room / (40 * 1024));
  expect(fewer < few);

  int grid = 0, block = 0;
  must(cudaOccupancyMaxPotentialBlockSize(&grid, &block, light, 0, 0));
  expect(block >= 32 && block <= properties.maxThreadsPerBlock && block % 32 == 0);
  int blocks = 0;
  must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, light, block, 0));
  expect(grid == blocks * properties.multiProcessorCount);
  expect(blocks * block == properties.maxThreadsPerMultiProcessor);

  size_t free_bytes = 0;
  must(cudaOccupancyAvailableDynamicSMemPerBlock(&free_bytes, light, 1, 128));
  expect(free_bytes >= properties.sharedMemPerBlock);

  cudaFuncAttributes attributes{};
  must(cudaFuncGetAttributes(&attributes, light));
  expect(attributes.numRegs > 0 && attributes.numRegs < 64);
  expect(attributes.maxThreadsPerBlock == 1024);
  expect(attributes.ptxVersion == 75);
  return verdict();
}
