// SPDX-License-Identifier: Apache-2.0
// Functions of the host called in the order of a stream.
#include "check.hpp"

__global__ void increment(int* value) {
  ++*value;
}

struct Seen {
  int* value;
  std::vector<int> values;
};

void note(void* data) {
  auto* seen = static_cast<Seen*>(data);
  seen->values.push_back(*seen->value);
}

void CUDART_CB note_status(cudaStream_t, cudaError_t status, void* data) {
  auto* seen = static_cast<Seen*>(data);
  seen->values.push_back(status == cudaSuccess ? 1000 + *seen->value : -1);
}

int main() {
  cudaStream_t stream;
  must(cudaStreamCreate(&stream));
  int* host = nullptr;
  must(cudaHostAlloc(&host, sizeof(int), cudaHostAllocDefault));
  *host = -1;
  int* value = device_zeros<int>(1);
  Seen seen{host, {}};
  for (int i = 0; i < 3; ++i) {
    increment<<<1, 1, 0, stream>>>(value);
    must(cudaMemcpyAsync(host, value, sizeof(int), cudaMemcpyDeviceToHost, stream));
    must(cudaLaunchHostFunc(stream, note, &seen));
  }
  must(cudaStreamAddCallback(stream, note_status, &seen, 0));
  must(cudaStreamSynchronize(stream));
  expect_same(seen.values, std::vector<int>{1, 2, 3, 1003});
  must(cudaStreamDestroy(stream));
  return verdict();
}
