// SPDX-License-Identifier: Apache-2.0
// Work recorded once and launched often: captured from streams, and put together node by node.
#include "check.hpp"

__global__ void add(float* values, int n, float what) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] += what;
}

__global__ void multiply(float* values, const float* by, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] *= by[i];
}

void check_capture() {
  const int n = 256;
  float* a = device_zeros<float>(n);
  float* b = device_zeros<float>(n);
  std::vector<float> host(n);
  cudaStream_t stream, other;
  cudaEvent_t fork, join;
  must(cudaStreamCreate(&stream));
  must(cudaStreamCreate(&other));
  must(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  must(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  must(cudaEventRecord(fork, stream));
  must(cudaStreamWaitEvent(other, fork, 0));
  add<<<2, 128, 0, stream>>>(a, n, 1.0f);
  must(cudaMemsetAsync(b, 0, n * sizeof(float), other));
  add<<<2, 128, 0, other>>>(b, n, 2.0f);
  must(cudaEventRecord(join, other));
  must(cudaStreamWaitEvent(stream, join, 0));
  multiply<<<2, 128, 0, stream>>>(a, b, n);
  must(cudaMemcpyAsync(host.data(), a, n * sizeof(float), cudaMemcpyDeviceToHost, stream));
  cudaGraph_t graph;
  must(cudaStreamEndCapture(stream, &graph));
  expect(from_device(a, n)[0] == 0);  // recorded, not done
  size_t count = 0;
  must(cudaGraphGetNodes(graph, nullptr, &count));
  expect(count == 5);
  cudaGraphExec_t executable;
  must(cudaGraphInstantiate(&executable, graph, 0));
  float wanted = 0;
  for (int round = 0; round < 3; ++round) {
    must(cudaGraphLaunch(executable, stream));
    must(cudaStreamSynchronize(stream));
    wanted = (wanted + 1) * 2;
    expect(host[0] == wanted && host[n - 1] == wanted);
  }
  must(cudaGraphExecDestroy(executable));
  must(cudaGraphDestroy(graph));
}

void check_nodes() {
  int n = 128;
  float* values = device_zeros<float>(n);
  cudaGraph_t graph;
  must(cudaGraphCreate(&graph, 0));
  cudaMemsetParams fill{};
  fill.dst = values;
  fill.value = 0;
  fill.elementSize = 1;
  fill.width = n * sizeof(float);
  fill.height = 1;
  cudaGraphNode_t filled, added;
  must(cudaGraphAddMemsetNode(&filled, graph, nullptr, 0, &fill));
  float what = 4.5f;
  void* arguments[] = {&values, &n, &what};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(add);
  kernel.gridDim = dim3(1);
  kernel.blockDim = dim3(128);
  kernel.kernelParams = arguments;
  must(cudaGraphAddKernelNode(&added, graph, &filled, 1, &kernel));
  cudaGraphExec_t executable;
  must(cudaGraphInstantiate(&executable, graph, 0));
  what = 1000;  // arguments were taken when the node was made
  must(cudaGraphLaunch(executable, nullptr));
  must(cudaDeviceSynchronize());
  expect(from_device(values, n)[5] == 4.5f);
  must(cudaGraphExecDestroy(executable));
  must(cudaGraphDestroy(graph));
}

int main() {
  check_capture();
  check_nodes();
  return verdict();
}
