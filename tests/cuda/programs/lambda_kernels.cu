// SPDX-License-Identifier: Apache-2.0
// nvcc: --extended-lambda
// Kernels that run lambdas of the host's code, as portability libraries do.
#include "check.hpp"

template <typename Body>
__global__ void run(int n, Body body) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) body(i);
}

template <typename Body>
void for_each(int n, Body body) {
  run<<<(n + 127) / 128, 128>>>(n, body);
  must(cudaGetLastError());
}

template <typename T, typename Map, typename Join>
__global__ void reduce(int n, T start, Map map, Join join, T* result) {
  __shared__ T values[128];
  T value = start;
  for (int i = threadIdx.x; i < n; i += 128) value = join(value, map(i));
  values[threadIdx.x] = value;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) values[threadIdx.x] = join(values[threadIdx.x], values[threadIdx.x + half]);
    __syncthreads();
  }
  if (threadIdx.x == 0) *result = values[0];
}

struct Point {
  double x, y;
};

int main() {
  const int n = 700;
  double* values = device_zeros<double>(n);
  const double scale = 1.5;
  const int offset = 3;
  const Point point{10, 20};
  for_each(n, [=] __device__(int i) { values[i] = scale * i + offset; });
  for_each(n / 2, [=] __device__(int i) { values[2 * i] += point.x + point.y; });
  const std::vector<double> got = from_device(values, n);
  for (int i = 0; i < n; ++i) expect(got[i] == scale * i + offset + (i % 2 ? 0 : 30));

  double* largest = device_zeros<double>(1);
  reduce<<<1, 128>>>(
      n, 0.0, [=] __device__(int i) { return values[i]; },
      [] __device__(double a, double b) { return a > b ? a : b; }, largest);
  expect(from_device(largest, 1)[0] == scale * 698 + offset + 30);
  long long* sum = device_zeros<long long>(1);
  const auto twice = [] __host__ __device__(int i) { return 2ll * i; };
  reduce<<<1, 128>>>(n, 0ll, twice, [] __device__(long long a, long long b) { return a + b; }, sum);
  expect(from_device(sum, 1)[0] == twice(n * (n - 1) / 2));
  return verdict();
}
