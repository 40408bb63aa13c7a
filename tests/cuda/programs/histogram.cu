// SPDX-License-Identifier: Apache-2.0
// Bytes counted by atomics in shared memory, then in global memory.
#include "check.hpp"

__global__ void count(const unsigned char* bytes, int n, unsigned* counts) {
  __shared__ unsigned mine[256];
  for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) mine[bin] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&mine[bytes[i]], 1u);
  }
  __syncthreads();
  for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) {
    if (mine[bin]) atomicAdd(&counts[bin], mine[bin]);
  }
}

int main() {
  const int n = 30'001;
  Random random;
  std::vector<unsigned char> bytes(n);
  std::vector<unsigned> wanted(256);
  for (unsigned char& byte : bytes) {
    byte = (unsigned char)(random.below(256) & random.below(256));  // some are far more frequent than others
    ++wanted[byte];
  }
  unsigned char* data = to_device(bytes);
  unsigned* counts = device_zeros<unsigned>(256);
  count<<<8, 192>>>(data, n, counts);
  expect_same(from_device(counts, 256), wanted);
  return verdict();
}
