// SPDX-License-Identifier: Apache-2.0
// A program of two files whose device code is linked: a function, a variable and a kernel of the other file.
#include "../check.hpp"
#include "shapes.cuh"

static __device__ float area(const Shape& shape) {
  return shape.width + shape.height;
}  // not the other file's

__global__ void weigh(const Shape* shapes, float* weights, float* sums, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  weights[i] = weight(shapes[i]) * factors[i % 4];
  sums[i] = area(shapes[i]);
}

int main() {
  const int n = 100;
  std::vector<Shape> shapes(n);
  for (int i = 0; i < n; ++i) shapes[i] = {float(i), 2.0f};
  Shape* in = to_device(shapes);
  float* weights = device_zeros<float>(n);
  float* sums = device_zeros<float>(n);
  for (float wanted : {2.5f, 5.0f, 20.0f}) {
    if (wanted == 20.0f) must(cudaMemcpyToSymbol(density, &wanted, sizeof(float)));
    weigh<<<2, 64>>>(in, weights, sums, n);
    const std::vector<float> got = from_device(weights, n);
    for (int i = 0; i < n; ++i) expect(got[i] == i * 2.0f * wanted * (1 + i % 4));
    launch_double_density();
  }
  float now = 0;
  must(cudaMemcpyFromSymbol(&now, density, sizeof(now)));
  expect(now == 40.0f);
  expect(from_device(sums, n)[7] == 9.0f);
  return verdict();
}
