// SPDX-License-Identifier: Apache-2.0
// Functions that call themselves, with arrays on the stack, to depths that differ between threads.
#include "check.hpp"

__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ __noinline__ int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

__device__ void sort(int* values, int low, int high) {
  if (low >= high) return;
  const int pivot = values[(low + high) / 2];
  int i = low, j = high;
  while (i <= j) {
    while (values[i] < pivot) ++i;
    while (values[j] > pivot) --j;
    if (i <= j) {
      const int value = values[i];
      values[i++] = values[j];
      values[j--] = value;
    }
  }
  sort(values, low, j);
  sort(values, i, high);
}

__global__ void numbers(int* out) {
  out[threadIdx.x] = fibonacci(threadIdx.x % 12) * 1000 + ackermann(1, threadIdx.x % 5);
}

__global__ void sort_each(const int* in, int* out, int n) {
  int mine[16];
  for (int k = 0; k < n; ++k) mine[k] = in[threadIdx.x * n + k];
  sort(mine, 0, n - 1);
  for (int k = 0; k < n; ++k) out[threadIdx.x * n + k] = mine[k];
}

int main() {
  must(cudaDeviceSetLimit(cudaLimitStackSize, 8 * 1024));
  int* out = device_zeros<int>(32 * 16);
  numbers<<<1, 32>>>(out);
  const std::vector<int> got = from_device(out, 32);
  const int fibonaccis[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
  for (int i = 0; i < 32; ++i) expect(got[i] == fibonaccis[i % 12] * 1000 + i % 5 + 2);

  Random random;
  std::vector<int> values(32 * 16);
  for (int& value : values) value = int(random.below(100));
  int* in = to_device(values);
  sort_each<<<1, 32>>>(in, out, 16);
  const std::vector<int> sorted = from_device(out, 32 * 16);
  for (int thread = 0; thread < 32; ++thread) {
    int sum = 0;
    for (int k = 0; k < 16; ++k) {
      sum += values[thread * 16 + k] - sorted[thread * 16 + k];
      if (k) expect(sorted[thread * 16 + k - 1] <= sorted[thread * 16 + k]);
    }
    expect(sum == 0);
  }
  return verdict();
}
