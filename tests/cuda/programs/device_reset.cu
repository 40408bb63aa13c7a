// SPDX-License-Identifier: Apache-2.0
// A device that is reset in the middle: memory and variables are initialised again, kernels can still be launched.
#include "check.hpp"

__device__ int calls = 3;

__global__ void call(int* out) {
  *out = ++calls;
}

int main() {
  for (int round = 0; round < 2; ++round) {
    int* out = device_zeros<int>(1);
    call<<<1, 1>>>(out);
    call<<<1, 1>>>(out);
    expect(from_device(out, 1)[0] == 5);
    must(cudaDeviceReset());
  }
  return verdict();
}
