// SPDX-License-Identifier: Apache-2.0
// exits: 7
// A program that ends while kernels run, another thread calls the runtime and nothing has been freed.
#include <thread>

#include "check.hpp"

__global__ void spin(int* value, int rounds) {
  for (int i = 0; i < rounds; ++i) atomicAdd(value, 1);
}

int main() {
  int* value = device_zeros<int>(2);
  cudaStream_t stream;
  must(cudaStreamCreate(&stream));
  spin<<<4, 32, 0, stream>>>(value, 200);
  std::thread([value] {
    for (;;) {
      spin<<<1, 32>>>(value + 1, 10);
      if (cudaDeviceSynchronize() != cudaSuccess) return;
    }
  }).detach();
  must(cudaMallocHost(&value, 100));
  std::exit(7);
}
