// SPDX-License-Identifier: Apache-2.0
// An image whose pixels need very different numbers of steps; drawn as text.
#include "check.hpp"

struct View {
  double left, top, step;
};

__host__ __device__ int steps_of(double a, double b, int most) {
  double x = 0, y = 0;
  int steps = 0;
  // With the roundings said, compilers for hosts and for devices have no choice.
  while (steps < most && fma(x, x, y * y) < 4) {
    const double next = fma(x, x, fma(-y, y, a));
    y = fma(2 * x, y, b);
    x = next;
    ++steps;
  }
  return steps;
}

__host__ __device__ int steps_at(int x, int y, View view, int most) {
  return steps_of(fma((double)x, view.step, view.left), fma(-(double)y, view.step, view.top), most);
}

__global__ void draw(unsigned char* image, int width, int height, View view, int most) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  image[y * width + x] = (unsigned char)steps_at(x, y, view, most);
}

int main() {
  const int width = 64, height = 48, most = 100;
  const View view{-2.0, 1.2, 0.05};
  unsigned char* image = device_zeros<unsigned char>(width * height);
  draw<<<dim3(width / 16, height / 8), dim3(16, 8)>>>(image, width, height, view, most);
  const std::vector<unsigned char> got = from_device(image, width * height);
  int different = 0;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const int steps = got[y * width + x];
      different += steps != steps_at(x, y, view, most);
      if (y % 4 == 0) std::putchar(steps == most ? '#' : steps > 8 ? '+' : ' ');
    }
    if (y % 4 == 0) std::putchar('\n');
  }
  expect(different == 0);
  return verdict();
}
