// SPDX-License-Identifier: Apache-2.0
// A seven-point stencil over a box, with a halo in shared memory, for several steps.
#include "check.hpp"

constexpr int kX = 16, kY = 8;

__global__ void step(const float* in, float* out, int width, int height, int depth) {
  __shared__ float tile[kY + 2][kX + 2];
  const int x = blockIdx.x * kX + threadIdx.x;
  const int y = blockIdx.y * kY + threadIdx.y;
  const bool inside = x < width && y < height;
  const int slice = width * height;
  const int at = y * width + x;
  float behind = 0, here = inside ? in[at] : 0, ahead = inside && depth > 1 ? in[at + slice] : 0;
  for (int z = 0; z < depth; ++z) {
    const int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    tile[ty][tx] = here;
    if (threadIdx.x == 0) tile[ty][0] = inside && x > 0 ? in[z * slice + at - 1] : 0;
    if (threadIdx.x == kX - 1) tile[ty][kX + 1] = inside && x + 1 < width ? in[z * slice + at + 1] : 0;
    if (threadIdx.y == 0) tile[0][tx] = inside && y > 0 ? in[z * slice + at - width] : 0;
    if (threadIdx.y == kY - 1) tile[kY + 1][tx] = inside && y + 1 < height ? in[z * slice + at + width] : 0;
    __syncthreads();
    if (inside) {
      const float sum =
          tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] + tile[ty + 1][tx] + behind + ahead;
      out[z * slice + at] = 0.4f * here + 0.1f * sum;
    }
    __syncthreads();
    behind = here;
    here = ahead;
    ahead = inside && z + 2 < depth ? in[(z + 2) * slice + at] : 0;
  }
}

int main() {
  const int width = 30, height = 20, depth = 6;
  const int n = width * height * depth;
  Random random;
  std::vector<float> now(n), next(n);
  for (float& value : now) value = random.unit();
  float* a = to_device(now);
  float* b = device_zeros<float>(n);
  const dim3 grid((width + kX - 1) / kX, (height + kY - 1) / kY);
  const auto at = [&](int x, int y, int z) {
    const bool inside = x >= 0 && x < width && y >= 0 && y < height && z >= 0 && z < depth;
    return inside ? now[(z * height + y) * width + x] : 0.0f;
  };
  for (int repeat = 0; repeat < 3; ++repeat) {
    step<<<grid, dim3(kX, kY)>>>(a, b, width, height, depth);
    std::swap(a, b);
    for (int z = 0; z < depth; ++z)
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
          const float sum = at(x - 1, y, z) + at(x + 1, y, z) + at(x, y - 1, z) + at(x, y + 1, z) +
                            at(x, y, z - 1) + at(x, y, z + 1);
          next[(z * height + y) * width + x] = 0.4f * at(x, y, z) + 0.1f * sum;
        }
    std::swap(now, next);
  }
  must(cudaDeviceSynchronize());
  const std::vector<float> got = from_device(a, n);
  for (int i = 0; i < n; ++i) expect_near(got[i], now[i], 1e-5);
  return verdict();
}
