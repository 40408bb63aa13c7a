// SPDX-License-Identifier: Apache-2.0
// Copies of every direction and of awkward sizes and offsets, each seen by the next.
#include <cstring>

#include "check.hpp"

__global__ void increment(unsigned char* bytes, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) ++bytes[i];
}

int main() {
  Random random;
  std::vector<unsigned char> host(70'001), back(70'001);
  for (unsigned char& byte : host) byte = (unsigned char)random.next();
  unsigned char *a, *b;
  must(cudaMalloc(&a, host.size()));
  must(cudaMalloc(&b, host.size()));
  for (size_t bytes : {size_t(1), size_t(3), size_t(64), size_t(4'097), size_t(65'536), host.size()}) {
    const size_t offset = host.size() - bytes;
    must(cudaMemcpy(a + offset, host.data() + offset, bytes, cudaMemcpyHostToDevice));
    must(cudaMemcpy(b, a + offset, bytes, cudaMemcpyDeviceToDevice));
    std::fill(back.begin(), back.end(), 0);
    must(cudaMemcpy(back.data(), b, bytes, cudaMemcpyDefault));
    expect(std::memcmp(back.data(), host.data() + offset, bytes) == 0);
  }
  must(cudaMemset(a, 0xab, 1'001));
  must(cudaMemsetAsync(a + 1, 0xfe, 3, nullptr));
  increment<<<4, 256>>>(a, 1'001);
  must(cudaMemcpyAsync(back.data(), a, 1'001, cudaMemcpyDeviceToHost, nullptr));
  must(cudaStreamSynchronize(nullptr));
  expect(back[0] == 0xac && back[1] == 0xff && back[3] == 0xff && back[4] == 0xac && back[1'000] == 0xac);
  must(cudaMemcpy(back.data() + 10, back.data(), 10, cudaMemcpyHostToHost));
  expect(back[11] == 0xff);

  // A copy from pageable memory has taken its data when the call returns.
  int value = 1;
  must(cudaMemcpyAsync(a, &value, sizeof(value), cudaMemcpyHostToDevice, nullptr));
  value = 2;
  must(cudaDeviceSynchronize());
  must(cudaMemcpy(&value, a, sizeof(value), cudaMemcpyDeviceToHost));
  expect(value == 1);
  must(cudaFree(a));
  must(cudaFree(b));
  return verdict();
}
