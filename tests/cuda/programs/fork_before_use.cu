// SPDX-License-Identifier: Apache-2.0
// Processes made by fork before the first call: each is a program of its own on the device.
#include <sys/wait.h>
#include <unistd.h>

#include "check.hpp"

__device__ int total = 0;

__global__ void add(const int* values, int n) {
  if (threadIdx.x < n) atomicAdd(&total, values[threadIdx.x]);
}

int use_device(int number) {
  int* values = to_device(std::vector<int>{number, 10 * number, 100 * number});
  add<<<1, 32>>>(values, 3);
  int sum = 0;
  must(cudaMemcpyFromSymbol(&sum, total, sizeof(sum)));
  expect(sum == 111 * number);  // nothing of the other processes
  must(cudaFree(values));
  return verdict();
}

int main() {
  pid_t children[3];
  for (int i = 0; i < 3; ++i) {
    children[i] = fork();
    if (children[i] == 0) std::exit(use_device(i + 1));
  }
  use_device(7);
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  return failures ? 1 : 0;
}
