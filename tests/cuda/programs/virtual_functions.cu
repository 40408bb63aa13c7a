// SPDX-License-Identifier: Apache-2.0
// Objects made on the device and called through their base, and functions called through pointers.
#include "check.hpp"

struct Figure {
  __device__ virtual float area() const = 0;
  __device__ virtual ~Figure() {}
};

struct Square : Figure {
  __device__ explicit Square(float side) : side(side) {}
  __device__ float area() const override { return side * side; }
  float side;
};

struct Circle : Figure {
  __device__ explicit Circle(float radius) : radius(radius) {}
  __device__ float area() const override { return 3.0f * radius * radius; }
  float radius;
};

struct Ring : Circle {
  __device__ Ring(float outer, float inner) : Circle(outer), inner(inner) {}
  __device__ float area() const override { return Circle::area() - 3.0f * inner * inner; }
  float inner;
};

__global__ void make(Figure** figures, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (i % 3 == 0)
    figures[i] = new Square(float(i));
  else if (i % 3 == 1)
    figures[i] = new Circle(float(i));
  else
    figures[i] = new Ring(float(i), 1.0f);
}

__global__ void measure(Figure* const* figures, float* areas, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) areas[i] = figures[i]->area();
}

__global__ void destroy(Figure** figures, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) delete figures[i];
}

using Function = int (*)(int, int);

__device__ int plus(int a, int b) {
  return a + b;
}
__device__ int times(int a, int b) {
  return a * b;
}
__device__ int minus(int a, int b) {
  return a - b;
}
__device__ Function table[] = {plus, times, minus};
__device__ Function chosen = times;

__global__ void apply(Function given, int* out, int n) {
  const int i = threadIdx.x;
  if (i < n) out[i] = table[i % 3](i, 5) + given(i, i);
}

int main() {
  const int n = 96;
  Figure** figures = device_zeros<Figure*>(n);
  float* areas = device_zeros<float>(n);
  make<<<3, 32>>>(figures, n);
  measure<<<3, 32>>>(figures, areas, n);
  destroy<<<3, 32>>>(figures, n);
  must(cudaDeviceSynchronize());
  const std::vector<float> got = from_device(areas, n);
  for (int i = 0; i < n; ++i) {
    const float square = float(i) * float(i);
    expect(got[i] == (i % 3 == 0 ? square : i % 3 == 1 ? 3 * square : 3 * square - 3));
  }
  Function function = nullptr;
  must(cudaMemcpyFromSymbol(&function, chosen,
                            sizeof(function)));  // an address of the device, for its kernels only
  int* out = device_zeros<int>(32);
  apply<<<1, 32>>>(function, out, 32);
  const std::vector<int> results = from_device(out, 32);
  for (int i = 0; i < 32; ++i) {
    const int first = i % 3 == 0 ? i + 5 : i % 3 == 1 ? i * 5 : i - 5;
    expect(results[i] == first + i * i);
  }
  return verdict();
}
