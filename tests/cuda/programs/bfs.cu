// SPDX-License-Identifier: Apache-2.0
// Breadth-first search by frontiers; the host reads after each level whether there is another.
#include <queue>

#include "check.hpp"

__global__ void expand(const int* starts, const int* edges, int* levels, const int* frontier, int size,
                       int* next, int* next_size, int level) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= size) return;
  const int node = frontier[i];
  for (int k = starts[node]; k < starts[node + 1]; ++k) {
    if (atomicCAS(&levels[edges[k]], -1, level + 1) == -1) next[atomicAdd(next_size, 1)] = edges[k];
  }
}

int main() {
  const int n = 1'500;
  Random random;
  std::vector<int> starts{0}, edges;
  for (int node = 0; node < n; ++node) {
    const int degree = int(random.below(5));
    for (int k = 0; k < degree; ++k) edges.push_back(int(random.below(n)));
    starts.push_back(int(edges.size()));
  }
  std::vector<int> wanted(n, -1);
  std::queue<int> queue;
  wanted[0] = 0;
  queue.push(0);
  while (!queue.empty()) {
    const int node = queue.front();
    queue.pop();
    for (int k = starts[node]; k < starts[node + 1]; ++k) {
      if (wanted[edges[k]] < 0) wanted[edges[k]] = wanted[node] + 1, queue.push(edges[k]);
    }
  }
  std::vector<int> levels(n, -1);
  levels[0] = 0;
  int* ds = to_device(starts);
  int* de = to_device(edges);
  int* dl = to_device(levels);
  int* frontier = device_zeros<int>(n);
  int* next = device_zeros<int>(n);
  int* count = device_zeros<int>(1);
  int size = 1;
  for (int level = 0; size > 0; ++level) {
    must(cudaMemset(count, 0, sizeof(int)));
    expand<<<(size + 127) / 128, 128>>>(ds, de, dl, frontier, size, next, count, level);
    must(cudaMemcpy(&size, count, sizeof(int), cudaMemcpyDeviceToHost));
    std::swap(frontier, next);
  }
  expect_same(from_device(dl, n), wanted);
  return verdict();
}
