// SPDX-License-Identifier: Apache-2.0
// Memory that the host and the device use by the same pointer: written here, read there, and back.
#include "check.hpp"

__managed__ int turns = 5;
__managed__ float table[64];

__global__ void fill(double* values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] = 3.0 * i + values[i];
  if (i == 0) turns *= 2;
  if (i < 64) table[i] += 0.25f;
}

struct Node {
  int value;
  Node* next;
};

// Follows pointers that the host made.
__global__ void sum_list(const Node* node, int* sum) {
  *sum = 0;
  for (; node; node = node->next) *sum += node->value;
}

int main() {
  const int n = 20'000;
  double* values = nullptr;
  must(cudaMallocManaged(&values, n * sizeof(double)));
  for (int i = 0; i < n; ++i) values[i] = i % 7;
  for (int i = 0; i < 64; ++i) table[i] = float(i);
  fill<<<(n + 255) / 256, 256>>>(values, n);
  must(cudaDeviceSynchronize());
  for (int i = 0; i < n; ++i) expect(values[i] == 3.0 * i + i % 7);
  expect(turns == 10);
  for (int i = 0; i < 64; ++i) expect(table[i] == i + 0.25f);

  // Back and forth, with hints where it should be.
  int device = 0;
  must(cudaGetDevice(&device));
  const cudaMemLocation here{cudaMemLocationTypeHost, 0};
  const cudaMemLocation there{cudaMemLocationTypeDevice, device};
  must(cudaMemAdvise(values, n * sizeof(double), cudaMemAdviseSetPreferredLocation, there));
  must(cudaMemAdvise(values, n * sizeof(double), cudaMemAdviseSetAccessedBy, here));
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < n; i += 100) values[i] = 1.0;
    must(cudaMemPrefetchAsync(values, n * sizeof(double), there, 0, nullptr));
    fill<<<(n + 255) / 256, 256>>>(values, n);
    must(cudaMemPrefetchAsync(values, n * sizeof(double), here, 0, nullptr));
    must(cudaDeviceSynchronize());
    for (int i = 0; i < n; i += 100) expect(values[i] == 3.0 * i + 1.0);
  }
  expect(turns == 40);
  must(cudaMemAdvise(values, n * sizeof(double), cudaMemAdviseSetReadMostly, there));

  cudaPointerAttributes attributes{};
  must(cudaPointerGetAttributes(&attributes, values));
  expect(attributes.type == cudaMemoryTypeManaged);

  Node* nodes = nullptr;
  int* sum = nullptr;
  must(cudaMallocManaged(&nodes, 100 * sizeof(Node)));
  must(cudaMallocManaged(&sum, sizeof(int)));
  for (int i = 0; i < 100; ++i) nodes[i] = {i, i < 99 ? &nodes[i + 1] : nullptr};
  sum_list<<<1, 1>>>(nodes, sum);
  must(cudaDeviceSynchronize());
  expect(*sum == 4950);

  // Copies by the runtime, both ways.
  std::vector<double> copy(n);
  must(cudaMemcpy(copy.data(), values, n * sizeof(double), cudaMemcpyDefault));
  expect(copy[200] == values[200]);
  copy[200] = -1.5;
  must(cudaMemcpy(values, copy.data(), n * sizeof(double), cudaMemcpyDefault));
  expect(values[200] == -1.5);
  must(cudaMemset(values, 0, n * sizeof(double)));
  must(cudaDeviceSynchronize());
  expect(values[0] == 0.0 && values[n - 1] == 0.0);
  must(cudaFree(values));
  must(cudaFree(nodes));
  must(cudaFree(sum));
  return verdict();
}
