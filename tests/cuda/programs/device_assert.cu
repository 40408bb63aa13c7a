// SPDX-License-Identifier: Apache-2.0
// An assertion that fails on the device: the error stays, whatever is called next.
#include <cassert>

#include "check.hpp"

__global__ void check(const int* values, int n) {
  const int i = threadIdx.x;
  if (i < n) assert(values[i] < 100);
}

int main() {
  int* good = to_device(std::vector<int>{1, 2, 99});
  int* bad = to_device(std::vector<int>{1, 2, 100});
  check<<<1, 32>>>(good, 3);
  must(cudaDeviceSynchronize());
  check<<<1, 32>>>(bad, 3);
  must(cudaGetLastError());  // the launch itself is fine
  expect_error(cudaDeviceSynchronize(), cudaErrorAssert);
  expect_error(cudaGetLastError(), cudaErrorAssert);
  expect_error(cudaFree(good), cudaErrorAssert);
  int* more = nullptr;
  expect_error(cudaMalloc(&more, 16), cudaErrorAssert);
  return verdict();
}
