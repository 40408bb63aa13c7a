// SPDX-License-Identifier: Apache-2.0
// Prints the error of a few calls, for a program that has no devices or loses them.
#include "cuda.hpp"

int main() {
  register_program();
  int count = 7;
  std::printf("%s", cudaGetErrorName(cudaGetDeviceCount(&count)));
  void* pointer = nullptr;
  std::printf(" %d %s", count, cudaGetErrorName(cudaMalloc(&pointer, 16)));
  std::printf(" %s", cudaGetErrorName(cudaLaunchKernel(&nothing_stub, {}, {}, nullptr, 0, nullptr)));
  std::printf(" %s\n", cudaGetErrorName(cudaGetLastError()));
  return 0;
}
