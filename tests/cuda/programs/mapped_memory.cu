// SPDX-License-Identifier: Apache-2.0
// Memory of the host that kernels reach without a copy.
#include "check.hpp"

__global__ void square(const int* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * in[i];
}

int main() {
  int can_map = 0;
  must(cudaDeviceGetAttribute(&can_map, cudaDevAttrCanMapHostMemory, 0));
  expect(can_map == 1);
  const int n = 3'000;
  int *in, *out, *device_in, *device_out;
  must(cudaHostAlloc(&in, n * sizeof(int), cudaHostAllocMapped | cudaHostAllocWriteCombined));
  must(cudaHostAlloc(&out, n * sizeof(int), cudaHostAllocMapped));
  must(cudaHostGetDevicePointer(&device_in, in, 0));
  must(cudaHostGetDevicePointer(&device_out, out, 0));
  unsigned flags = 0;
  must(cudaHostGetFlags(&flags, in));
  expect(flags & cudaHostAllocMapped);
  for (int round = 1; round < 4; ++round) {
    for (int i = 0; i < n; ++i) in[i] = i * round;
    square<<<(n + 255) / 256, 256>>>(device_in, device_out, n);
    must(cudaDeviceSynchronize());
    for (int i = 0; i < n; ++i) expect(out[i] == i * round * i * round);
  }
  cudaPointerAttributes attributes{};
  must(cudaPointerGetAttributes(&attributes, in));
  expect(attributes.type == cudaMemoryTypeHost);
  expect(attributes.devicePointer == device_in);
  must(cudaFreeHost(in));
  must(cudaFreeHost(out));
  return verdict();
}
