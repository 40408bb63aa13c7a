// SPDX-License-Identifier: Apache-2.0
// A sparse matrix times a vector, a warp for each row, and conjugate gradients built on it.
#include "check.hpp"

__global__ void multiply(const int* starts, const int* columns, const double* values, const double* x,
                         double* y, int rows) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  double sum = 0;
  for (int k = starts[row] + lane; k < starts[row + 1]; k += 32) sum += values[k] * x[columns[k]];
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
  if (lane == 0) y[row] = sum;
}

__global__ void dot(const double* a, const double* b, int n, double* result) {
  __shared__ double sums[256];
  double sum = 0;
  for (int i = threadIdx.x; i < n; i += 256) sum += a[i] * b[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) *result = sums[0];
}

__global__ void add_scaled(double* y, const double* x, double a, double b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = b * y[i] + a * x[i];
}

int main() {
  // The Laplacian of a square grid.
  const int side = 12, n = side * side;
  std::vector<int> starts{0}, columns;
  std::vector<double> values;
  for (int i = 0; i < n; ++i) {
    const auto put = [&](bool there, int column, double value) {
      if (there) columns.push_back(column), values.push_back(value);
    };
    put(i >= side, i - side, -1);
    put(i % side > 0, i - 1, -1);
    put(true, i, 4);
    put(i % side < side - 1, i + 1, -1);
    put(i < n - side, i + side, -1);
    starts.push_back(int(columns.size()));
  }
  const int* ds = to_device(starts);
  const int* dc = to_device(columns);
  const double* dv = to_device(values);
  std::vector<double> right(n, 1.0);
  double* x = device_zeros<double>(n);
  double* residual = to_device(right);
  double* direction = to_device(right);
  double* product = device_zeros<double>(n);
  double* scalar = device_zeros<double>(1);
  const auto inner = [&](const double* a, const double* b) {
    dot<<<1, 256>>>(a, b, n, scalar);
    return from_device(scalar, 1)[0];
  };
  const int blocks = (n + 127) / 128;
  double squared = inner(residual, residual);
  int steps = 0;
  for (; steps < 60 && squared > 1e-16; ++steps) {
    multiply<<<(n * 32 + 127) / 128, 128>>>(ds, dc, dv, direction, product, n);
    const double length = squared / inner(direction, product);
    add_scaled<<<blocks, 128>>>(x, direction, length, 1, n);
    add_scaled<<<blocks, 128>>>(residual, product, -length, 1, n);
    const double next = inner(residual, residual);
    add_scaled<<<blocks, 128>>>(direction, residual, 1, next / squared, n);
    squared = next;
  }
  expect(steps < 60);
  const std::vector<double> solution = from_device(x, n);
  for (int i = 0; i < n; ++i) {
    double sum = 0;
    for (int k = starts[i]; k < starts[i + 1]; ++k) sum += values[k] * solution[columns[k]];
    expect_near(sum, 1.0, 1e-7);
  }
  return verdict();
}
