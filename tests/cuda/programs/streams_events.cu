// SPDX-License-Identifier: Apache-2.0
// Kernels and copies of several streams side by side, ordered by events, and the times between events.
#include "check.hpp"

__global__ void scale(float* values, int n, float by) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] *= by;
}

__global__ void work(float* value, int rounds) {
  float x = *value;
  for (int i = 0; i < rounds; ++i) x = x * 0.999f + 0.5f;
  *value = x;
}

int main() {
  const int parts = 4;
  const int n = 4 * 1024;
  float* host = nullptr;
  float* device = nullptr;
  must(cudaMallocHost(&host, n * sizeof(float)));
  must(cudaMalloc(&device, n * sizeof(float)));
  for (int i = 0; i < n; ++i) host[i] = float(i);
  cudaStream_t streams[parts];
  for (cudaStream_t& stream : streams) must(cudaStreamCreate(&stream));
  const int each = n / parts;
  for (int part = 0; part < parts; ++part) {
    float* of_host = host + part * each;
    float* of_device = device + part * each;
    must(cudaMemcpyAsync(of_device, of_host, each * sizeof(float), cudaMemcpyHostToDevice, streams[part]));
    scale<<<each / 256, 256, 0, streams[part]>>>(of_device, each, 2.0f + part);
    must(cudaMemcpyAsync(of_host, of_device, each * sizeof(float), cudaMemcpyDeviceToHost, streams[part]));
  }
  for (cudaStream_t stream : streams) must(cudaStreamSynchronize(stream));
  for (int i = 0; i < n; ++i) expect(host[i] == float(i) * (2.0f + i / each));

  // A stream that waits for an event of another sees what came before it.
  cudaEvent_t scaled;
  must(cudaEventCreateWithFlags(&scaled, cudaEventDisableTiming));
  must(cudaMemsetAsync(device, 0, n * sizeof(float), streams[0]));
  must(cudaMemcpyAsync(device, host, each * sizeof(float), cudaMemcpyHostToDevice, streams[0]));
  scale<<<each / 256, 256, 0, streams[0]>>>(device, each, 10.0f);
  must(cudaEventRecord(scaled, streams[0]));
  must(cudaStreamWaitEvent(streams[1], scaled, 0));
  scale<<<each / 256, 256, 0, streams[1]>>>(device, each, 0.5f);
  must(cudaStreamSynchronize(streams[1]));
  expect_error(cudaEventQuery(scaled), cudaSuccess);
  expect_error(cudaStreamQuery(streams[0]), cudaSuccess);
  expect_near(from_device(device, each)[7], host[7] * 5.0f, 1e-6);

  // The time between two events: more for more work, and none for none.
  cudaEvent_t begin, middle, end;
  must(cudaEventCreate(&begin));
  must(cudaEventCreate(&middle));
  must(cudaEventCreate(&end));
  must(cudaEventRecord(begin, streams[2]));
  work<<<1, 1, 0, streams[2]>>>(device, 20);
  must(cudaEventRecord(middle, streams[2]));
  work<<<1, 1, 0, streams[2]>>>(device, 4'000);
  must(cudaEventRecord(end, streams[2]));
  must(cudaEventSynchronize(end));
  float few = -1, many = -1, all = -1;
  must(cudaEventElapsedTime(&few, begin, middle));
  must(cudaEventElapsedTime(&many, middle, end));
  must(cudaEventElapsedTime(&all, begin, end));
  expect(few >= 0 && many >= few);
  expect(std::fabs(few + many - all) <= 0.01);  // times differ from form to form, and are not of the digest
  float unused = 0;
  expect_error(cudaEventElapsedTime(&unused, scaled, end), cudaErrorInvalidResourceHandle);
  (void)cudaGetLastError();

  cudaStream_t urgent;
  int least = 0, greatest = 0;
  must(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  expect(greatest <= least);
  must(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, greatest));
  scale<<<each / 256, 256, 0, urgent>>>(device, each, 1.0f);
  must(cudaStreamDestroy(urgent));
  for (cudaStream_t stream : streams) must(cudaStreamDestroy(stream));
  must(cudaEventDestroy(begin));
  must(cudaEventDestroy(middle));
  must(cudaEventDestroy(end));
  must(cudaEventDestroy(scaled));
  must(cudaDeviceSynchronize());
  must(cudaFreeHost(host));
  must(cudaFree(device));
  return verdict();
}
