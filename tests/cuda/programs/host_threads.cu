// SPDX-License-Identifier: Apache-2.0
// Many threads of the host, each with its own stream, memory and last error.
#include <atomic>
#include <thread>

#include "check.hpp"

__global__ void multiply(int* values, int n, int by) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] *= by;
}

__global__ void nothing() {}

std::atomic<int> wrong = 0;
std::atomic<int*> shared_between = nullptr;

void work(int number) {
  const int n = 500 + 10 * number;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i;
  cudaStream_t stream;
  must(cudaStreamCreate(&stream));
  int* values = nullptr;
  must(cudaMalloc(&values, n * sizeof(int)));
  for (int round = 0; round < 4; ++round) {
    must(cudaMemcpyAsync(values, host.data(), n * sizeof(int), cudaMemcpyHostToDevice, stream));
    multiply<<<(n + 127) / 128, 128, 0, stream>>>(values, n, number + round);
    std::vector<int> got(n);
    must(cudaMemcpyAsync(got.data(), values, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
    must(cudaStreamSynchronize(stream));
    for (int i = 0; i < n; ++i) wrong += got[i] != i * (number + round);
  }
  if (number % 2) {
    nothing<<<1, 5'000>>>();
    wrong += cudaGetLastError() != cudaErrorInvalidConfiguration;
  } else {
    wrong += cudaGetLastError() != cudaSuccess;  // not the error of another thread
  }
  must(cudaFree(values));
  must(cudaStreamDestroy(stream));
}

int main() {
  std::vector<std::thread> threads;
  for (int number = 0; number < 12; ++number) threads.emplace_back(work, number);
  for (std::thread& thread : threads) thread.join();
  expect(wrong == 0);

  // Memory of one thread used and freed by another.
  std::thread first([] { shared_between = to_device(std::vector<int>{3, 4}); });
  first.join();
  multiply<<<1, 32>>>(shared_between, 2, 5);
  expect_same(from_device(shared_between.load(), 2), std::vector<int>{15, 20});
  std::thread last([] { must(cudaFree(shared_between)); });
  last.join();
  return verdict();
}
