// SPDX-License-Identifier: Apache-2.0
// Two arrays added, with a length that is no multiple of the block.
#include "check.hpp"

__global__ void add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

int main() {
  const int n = 10'000;
  std::vector<float> a(n), b(n), c(n);
  for (int i = 0; i < n; ++i) {
    a[i] = 0.5f * i;
    b[i] = 1.0f - i;
  }
  float *da, *db, *dc;
  must(cudaMalloc(&da, n * sizeof(float)));
  must(cudaMalloc(&db, n * sizeof(float)));
  must(cudaMalloc(&dc, n * sizeof(float)));
  must(cudaMemcpy(da, a.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  must(cudaMemcpy(db, b.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
  must(cudaGetLastError());
  must(cudaMemcpy(c.data(), dc, n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) expect(c[i] == a[i] + b[i]);
  must(cudaFree(da));
  must(cudaFree(db));
  must(cudaFree(dc));
  return verdict();
}
