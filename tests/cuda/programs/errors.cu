// SPDX-License-Identifier: Apache-2.0
// Calls that are refused: each returns its error, which is then forgotten, and the next call works.
#include <cstring>

#include "check.hpp"

__global__ void nothing() {}
__global__ void set(int* value, int to) {
  *value = to;
}
__global__ void __launch_bounds__(64) at_most_64() {}

int main() {
  nothing<<<1, 2'048>>>();
  expect_error(cudaPeekAtLastError(), cudaErrorInvalidConfiguration);
  expect_error(cudaGetLastError(), cudaErrorInvalidConfiguration);
  expect_error(cudaGetLastError(), cudaSuccess);
  nothing<<<0, 32>>>();
  expect_error(cudaGetLastError(), cudaErrorInvalidConfiguration);
  nothing<<<1, dim3(1, 1, 65)>>>();
  expect_error(cudaGetLastError(), cudaErrorInvalidConfiguration);
  nothing<<<dim3(1, 70'000), 32>>>();
  expect_error(cudaGetLastError(), cudaErrorInvalidConfiguration);
  nothing<<<1, 32, 1 << 20>>>();
  expect_error(cudaGetLastError(), cudaErrorInvalidValue);
  at_most_64<<<1, 128>>>();
  expect_error(cudaGetLastError(),
               cudaErrorLaunchOutOfResources);  // more registers than a block of 64 may use
  at_most_64<<<1, 64>>>();
  expect_error(cudaGetLastError(), cudaSuccess);

  int* value = device_zeros<int>(1);
  int host = 0;
  expect_error(cudaMemcpy(&host, value, sizeof(int), cudaMemcpyKind(99)), cudaErrorInvalidMemcpyDirection);
  expect_error(cudaMemcpy(value, &host, 1 << 30, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  int* huge = nullptr;
  expect_error(cudaMalloc(&huge, 1ull << 50), cudaErrorMemoryAllocation);
  expect_error(cudaGetLastError(), cudaErrorMemoryAllocation);
  expect_error(cudaFree(&host), cudaErrorInvalidValue);
  expect_error(cudaSetDevice(-1), cudaErrorInvalidDevice);
  expect_error(cudaSetDevice(1'000), cudaErrorInvalidDevice);
  expect_error(cudaMalloc(static_cast<int**>(nullptr), 4), cudaErrorInvalidValue);
  expect_error(cudaFree(nullptr), cudaSuccess);
  int* none = value;
  expect_error(cudaMalloc(&none, 0), cudaSuccess);
  expect(none == nullptr);
  expect_error(cudaMemcpy(value, &host, 0, cudaMemcpyHostToDevice), cudaSuccess);
  cudaEvent_t event = nullptr;
  expect_error(cudaEventRecord(event), cudaErrorInvalidResourceHandle);
  expect_error(cudaLaunchKernel(&host, dim3(1), dim3(1), nullptr, 0, nullptr),
               cudaErrorInvalidDeviceFunction);
  (void)cudaGetLastError();

  // An event or stream in use is not ready, which is no error that stays.
  cudaStream_t stream;
  must(cudaStreamCreate(&stream));
  const cudaError_t busy = cudaStreamQuery(stream);
  expect(busy == cudaSuccess || busy == cudaErrorNotReady);
  must(cudaStreamDestroy(stream));

  expect(std::strcmp(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue") == 0);
  expect(std::strcmp(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument") == 0);
  expect(std::strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory") == 0);
  expect(std::strcmp(cudaGetErrorString(cudaSuccess), "no error") == 0);
  expect(std::strcmp(cudaGetErrorString(cudaError_t(12345)), "unrecognized error code") == 0);

  // And all of it did no harm.
  set<<<1, 1>>>(value, 77);
  must(cudaDeviceSynchronize());
  expect(from_device(value, 1)[0] == 77);
  return verdict();
}
