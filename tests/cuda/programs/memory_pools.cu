// SPDX-License-Identifier: Apache-2.0
// Memory allocated and freed in the order of a stream, from the device's pool and from one of our own.
#include "check.hpp"

__global__ void fill(int* values, int n, int with) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] = with + i;
}

int main() {
  const int n = 2'048;
  cudaStream_t stream;
  must(cudaStreamCreate(&stream));
  std::vector<int> host(n);
  for (int round = 0; round < 5; ++round) {
    int* values = nullptr;
    must(cudaMallocAsync(&values, n * sizeof(int), stream));
    fill<<<n / 256, 256, 0, stream>>>(values, n, round);
    must(cudaMemcpyAsync(host.data(), values, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
    must(cudaFreeAsync(values, stream));
    must(cudaStreamSynchronize(stream));
    for (int i = 0; i < n; ++i) expect(host[i] == round + i);
  }
  cudaMemPool_t pool = nullptr;
  must(cudaDeviceGetDefaultMemPool(&pool, 0));
  unsigned long long threshold = ~0ull;
  must(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  unsigned long long back = 0;
  must(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &back));
  expect(back == threshold);

  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  cudaMemPool_t own = nullptr;
  must(cudaMemPoolCreate(&own, &properties));
  int* values = nullptr;
  must(cudaMallocFromPoolAsync(&values, n * sizeof(int), own, stream));
  fill<<<n / 256, 256, 0, stream>>>(values, n, -7);
  must(cudaStreamSynchronize(stream));
  expect(from_device(values, n)[n - 1] == n - 8);
  must(cudaFreeAsync(values, stream));
  must(cudaStreamSynchronize(stream));
  must(cudaMemPoolTrimTo(own, 0));
  must(cudaMemPoolDestroy(own));
  must(cudaStreamDestroy(stream));
  return verdict();
}
