// SPDX-License-Identifier: Apache-2.0
// Variables of the device: initial values, addresses, sizes, copies to, from and between them.
#include "check.hpp"

__device__ int counter = 17;
__device__ double matrix[4][8];
__device__ const char* message = nullptr;
static __device__ unsigned long long big = 0x1122334455667788ull;
namespace inner {
__device__ float3 vector = {1.0f, 2.0f, 3.0f};
}
template <typename T>
__device__ T typed = T(3);

__global__ void step(int* out) {
  atomicAdd(&counter, int(threadIdx.x));
  if (threadIdx.x == 0) {
    *out = int(big >> 56) + int(inner::vector.z) + int(typed<double>) + typed<int>;
    matrix[2][5] *= 2;
    typed<int> = 11;
  }
}

int main() {
  int* out = device_zeros<int>(1);
  double host[4][8];
  for (int i = 0; i < 32; ++i) host[i / 8][i % 8] = i;
  must(cudaMemcpyToSymbol(matrix, host, sizeof(host)));
  step<<<1, 10>>>(out);
  int value = 0;
  must(cudaMemcpyFromSymbol(&value, counter, sizeof(value)));
  expect(value == 17 + 45);
  expect(from_device(out, 1)[0] == 0x11 + 3 + 3 + 3);
  must(cudaMemcpyFromSymbol(&value, typed<int>, sizeof(value)));
  expect(value == 11);
  double one = 0;
  must(cudaMemcpyFromSymbol(&one, matrix, sizeof(one), (2 * 8 + 5) * sizeof(double)));
  expect(one == 2 * 21);

  double* address = nullptr;
  size_t bytes = 0;
  must(cudaGetSymbolAddress(reinterpret_cast<void**>(&address), matrix));
  must(cudaGetSymbolSize(&bytes, matrix));
  expect(bytes == sizeof(host));
  expect_same(from_device(address + 8, 2), std::vector<double>{8, 9});
  must(cudaMemcpyToSymbol(matrix, address, 8 * sizeof(double), 8 * sizeof(double), cudaMemcpyDeviceToDevice));
  expect(from_device(address + 8, 1)[0] == 0);

  cudaStream_t stream;
  must(cudaStreamCreate(&stream));
  const int next = -5;
  must(cudaMemcpyToSymbolAsync(counter, &next, sizeof(next), 0, cudaMemcpyHostToDevice, stream));
  must(cudaMemcpyFromSymbolAsync(&value, counter, sizeof(value), 0, cudaMemcpyDeviceToHost, stream));
  must(cudaStreamSynchronize(stream));
  expect(value == -5);
  expect_error(cudaMemcpyToSymbol(counter, host, sizeof(host)), cudaErrorInvalidValue);  // more than fits
  int unknown = 0;
  expect_error(cudaMemcpyToSymbol(&unknown, host, 4), cudaErrorInvalidSymbol);
  return verdict();
}
