// SPDX-License-Identifier: Apache-2.0
// An image whose pixels need very different numbers of steps; drawn as text.
#include "check.hpp"

struct View {
  double left, top, step;
};

__host__ __device__ int steps_of(double a, double b, int most) {
  double x = 0, y = 0;
  int steps = 0;
  while (steps < most && x * x + y * y < 4) {
    const double next = x * x - y * y + a;
    y = 2 * x * y + b;
    x = next;
    ++steps;
  }
  return steps;
}

__global__ void draw(unsigned char* image, int width, int height, View view, int most) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  image[y * width + x] = (unsigned char)steps_of(view.left + x * view.step, view.top - y * view.step, most);
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
      different += steps != steps_of(view.left + x * view.step, view.top - y * view.step, most);
      if (y % 4 == 0) std::putchar(steps == most ? '#' : steps > 8 ? '+' : ' ');
    }
    if (y % 4 == 0) std::putchar('\n');
  }
  expect(different <= 5);  // the device contracts x * x + y * y: a pixel at the edge may differ by a step
  return verdict();
}
