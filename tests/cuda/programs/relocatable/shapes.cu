// SPDX-License-Identifier: Apache-2.0
// The device code that main.cu calls.
#include "shapes.cuh"

__device__ float density = 2.5f;
__constant__ float factors[4] = {1.0f, 2.0f, 3.0f, 4.0f};

static __device__ float area(const Shape& shape) {
  return shape.width * shape.height;
}

__device__ float weight(const Shape& shape) {
  return area(shape) * density;
}

__global__ void double_density() {
  density *= 2;
}

void launch_double_density() {
  double_density<<<1, 1>>>();
}
