// SPDX-License-Identifier: Apache-2.0
// Coefficients in constant memory, set by the host before each launch.
#include "check.hpp"

struct Settings {
  float offset;
  int stride;
};

__constant__ float coefficients[16];
__constant__ Settings settings = {0.5f, 2};

__global__ void polynomial(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int k = 15; k >= 0; --k) sum = sum * x[i] + coefficients[k];
  y[i * settings.stride] = sum + settings.offset;
}

int main() {
  const int n = 500;
  std::vector<float> x(n);
  for (int i = 0; i < n; ++i) x[i] = -1.0f + 2.0f * i / n;
  float* dx = to_device(x);
  float* dy = device_zeros<float>(4 * n);
  for (int round = 0; round < 3; ++round) {
    float host[16];
    for (int k = 0; k < 16; ++k) host[k] = float((k * 7 + round) % 5) - 2;
    must(cudaMemcpyToSymbol(coefficients, host, sizeof(host)));
    Settings chosen{0.5f, 2};
    if (round > 0) {
      chosen = {float(round), 3};
      must(cudaMemcpyToSymbol(settings, &chosen, sizeof(chosen)));
    }
    if (round == 2) {
      host[3] = 9;
      must(cudaMemcpyToSymbol(coefficients, &host[3], sizeof(float), 3 * sizeof(float)));
    }
    polynomial<<<(n + 63) / 64, 64>>>(dx, dy, n);
    const std::vector<float> y = from_device(dy, 4 * n);
    for (int i = 0; i < n; ++i) {
      double wanted = 0;
      for (int k = 15; k >= 0; --k) wanted = wanted * x[i] + host[k];
      expect_near(y[i * chosen.stride], wanted + chosen.offset, 1e-4);
    }
  }
  return verdict();
}
