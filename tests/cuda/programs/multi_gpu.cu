// SPDX-License-Identifier: Apache-2.0
// devices: 2
// Two devices: each with its own memory and variables, copies between them, and one that reads the other's
// memory.
#include "check.hpp"

__device__ int offset = 1;

__global__ void add_offset(int* values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] += offset;
}

__global__ void gather(const int* theirs, int* mine, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) mine[i] = theirs[n - 1 - i];
}

int main() {
  int count = 0;
  must(cudaGetDeviceCount(&count));
  expect(count == 2);
  if (count < 2) return verdict();
  const int n = 2'000;
  const int blocks = (n + 255) / 256;
  int* values[2];
  cudaStream_t streams[2];
  for (int device = 0; device < 2; ++device) {
    must(cudaSetDevice(device));
    must(cudaMalloc(&values[device], n * sizeof(int)));
    must(cudaMemset(values[device], 0, n * sizeof(int)));
    must(cudaStreamCreate(&streams[device]));
    const int mine = 10 * (device + 1);
    must(cudaMemcpyToSymbol(offset, &mine, sizeof(mine)));
    add_offset<<<blocks, 256, 0, streams[device]>>>(values[device], n);
    must(cudaGetLastError());
  }
  for (int device = 0; device < 2; ++device) {
    must(cudaSetDevice(device));
    must(cudaDeviceSynchronize());
    expect_same(from_device(values[device], n), std::vector<int>(n, 10 * (device + 1)));
    int now = -1;
    must(cudaGetDevice(&now));
    expect(now == device);
  }

  std::vector<int> numbers(n), reversed(n);
  for (int i = 0; i < n; ++i) reversed[n - 1 - i] = numbers[i] = 3 * i;
  must(cudaSetDevice(0));
  must(cudaMemcpy(values[0], numbers.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  must(cudaMemcpyPeer(values[1], 1, values[0], 0, n * sizeof(int)));
  must(cudaSetDevice(1));
  expect_same(from_device(values[1], n), numbers);

  int can = 0;
  must(cudaDeviceCanAccessPeer(&can, 1, 0));
  if (can) {
    must(cudaDeviceEnablePeerAccess(0, 0));
    expect_error(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessAlreadyEnabled);
    (void)cudaGetLastError();
    gather<<<blocks, 256, 0, streams[1]>>>(values[0], values[1], n);
    must(cudaStreamSynchronize(streams[1]));
    expect_same(from_device(values[1], n), reversed);
    must(cudaDeviceDisablePeerAccess(0));
  }
  must(cudaMemcpyAsync(values[0], values[1], n * sizeof(int), cudaMemcpyDefault, streams[1]));
  must(cudaStreamSynchronize(streams[1]));
  must(cudaSetDevice(0));
  expect_same(from_device(values[0], n), can ? reversed : numbers);
  cudaPointerAttributes attributes{};
  must(cudaPointerGetAttributes(&attributes, values[1]));
  expect(attributes.device == 1 && attributes.type == cudaMemoryTypeDevice);
  expect_error(cudaSetDevice(2), cudaErrorInvalidDevice);
  (void)cudaGetLastError();
  return verdict();
}
