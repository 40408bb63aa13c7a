// SPDX-License-Identifier: Apache-2.0
// One launch whose blocks wait for each other between the steps of a heat equation.
#include <cooperative_groups.h>

#include "check.hpp"

namespace cg = cooperative_groups;

__global__ void diffuse(float* now, float* next, int n, int steps) {
  const cg::grid_group grid = cg::this_grid();
  const int i = int(grid.thread_rank());
  for (int step = 0; step < steps; ++step) {
    if (i > 0 && i < n - 1) next[i] = now[i] + 0.25f * (now[i - 1] - 2 * now[i] + now[i + 1]);
    grid.sync();
    float* const old = now;
    now = next;
    next = old;
  }
}

int main() {
  int supported = 0;
  must(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, 0));
  expect(supported == 1);
  const int blocks = 8, threads = 64, steps = 9;
  int n = blocks * threads;
  std::vector<float> now(n), next(n);
  for (int i = 0; i < n; ++i) now[i] = next[i] = float(i % 37);
  float* a = to_device(now);
  float* b = to_device(next);
  int count = steps;
  void* arguments[] = {&a, &b, &n, &count};
  must(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(diffuse), dim3(blocks), dim3(threads), arguments,
                                   0, 0));
  must(cudaDeviceSynchronize());
  for (int step = 0; step < steps; ++step) {
    for (int i = 1; i < n - 1; ++i) next[i] = now[i] + 0.25f * (now[i - 1] - 2 * now[i] + now[i + 1]);
    std::swap(now, next);
  }
  const std::vector<float> got = from_device(steps % 2 ? b : a, n);
  for (int i = 0; i < n; ++i) expect_near(got[i], now[i], 1e-5);

  // More blocks than the device can hold at once would wait for ever: refused.
  n = 0;
  expect_error(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(diffuse), dim3(1'000'000), dim3(1'024),
                                           arguments, 0, 0),
               cudaErrorCooperativeLaunchTooLarge);
  return verdict();
}
