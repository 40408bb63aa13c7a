// SPDX-License-Identifier: Apache-2.0
// Memory of the program's own, registered with the runtime for copies.
#include "check.hpp"

__global__ void negate(int* values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] = -values[i];
}

int main() {
  const int n = 4'096;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i;
  must(cudaHostRegister(host.data(), n * sizeof(int), cudaHostRegisterDefault));
  int* device = nullptr;
  must(cudaMalloc(&device, n * sizeof(int)));
  cudaStream_t stream;
  must(cudaStreamCreate(&stream));
  must(cudaMemcpyAsync(device, host.data(), n * sizeof(int), cudaMemcpyHostToDevice, stream));
  negate<<<n / 256, 256, 0, stream>>>(device, n);
  must(cudaMemcpyAsync(host.data(), device, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
  must(cudaStreamSynchronize(stream));
  for (int i = 0; i < n; ++i) expect(host[i] == -i);
  must(cudaHostUnregister(host.data()));
  expect_error(cudaHostUnregister(host.data()), cudaErrorHostMemoryNotRegistered);
  (void)cudaGetLastError();
  must(cudaFree(device));
  must(cudaStreamDestroy(stream));
  return verdict();
}
