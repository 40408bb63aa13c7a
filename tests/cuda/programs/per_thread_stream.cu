// SPDX-License-Identifier: Apache-2.0
// nvcc: --default-stream per-thread
// Each host thread has a default stream of its own: what one waits for is its own work.
#include <atomic>
#include <thread>

#include "check.hpp"

__global__ void fill(int* values, int n, int with) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] = with * i;
}

std::atomic<int> wrong = 0;

void work(int number) {
  const int n = 300;
  int* values = nullptr;
  must(cudaMalloc(&values, n * sizeof(int)));
  std::vector<int> got(n);
  for (int round = 1; round < 4; ++round) {
    fill<<<2, 256>>>(values, n, number * round);
    must(cudaMemcpyAsync(got.data(), values, n * sizeof(int), cudaMemcpyDeviceToHost, cudaStreamPerThread));
    must(cudaStreamSynchronize(cudaStreamPerThread));
    for (int i = 0; i < n; ++i) wrong += got[i] != number * round * i;
    must(cudaMemset(values, 0, n * sizeof(int)));
    must(cudaMemcpy(got.data(), values, n * sizeof(int), cudaMemcpyDeviceToHost));
    wrong += got[n - 1] != 0;
  }
  must(cudaFree(values));
}

int main() {
  std::vector<std::thread> threads;
  for (int number = 1; number < 5; ++number) threads.emplace_back(work, number);
  for (std::thread& thread : threads) thread.join();
  expect(wrong == 0);
  cudaEvent_t event;
  must(cudaEventCreate(&event));
  must(cudaEventRecord(event));
  must(cudaEventSynchronize(event));
  return verdict();
}
