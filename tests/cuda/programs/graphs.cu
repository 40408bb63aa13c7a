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

// Streams that were destroyed before the capture ends, one of them joined before.
void check_streams_destroyed_in_capture() {
  const int n = 256;
  float* a = device_zeros<float>(n);
  for (const bool joined : {true, false}) {
    cudaStream_t stream, other;
    cudaEvent_t event;
    must(cudaStreamCreate(&stream));
    must(cudaStreamCreate(&other));
    must(cudaEventCreate(&event));
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    must(cudaEventRecord(event, stream));
    must(cudaStreamWaitEvent(other, event, 0));
    add<<<2, 128, 0, other>>>(a, n, 1.0f);
    must(cudaEventRecord(event, other));
    if (joined) must(cudaStreamWaitEvent(stream, event, 0));
    must(cudaStreamDestroy(other));
    must(cudaEventDestroy(event));
    cudaStream_t another;  // may take the room of the one that is gone
    must(cudaStreamCreate(&another));
    cudaGraph_t graph;
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    expect(ended == (joined ? cudaSuccess : cudaErrorStreamCaptureUnjoined));
    cudaGetLastError();
    if (joined) {
      cudaGraphExec_t executable;
      must(cudaGraphInstantiate(&executable, graph, 0));
      must(cudaGraphLaunch(executable, stream));
      must(cudaStreamSynchronize(stream));
      expect(from_device(a, n)[n - 1] == 1);
    }
    must(cudaStreamDestroy(stream));
    must(cudaStreamDestroy(another));
  }
}

// Memory that a graph allocates and the program frees: it is there again with the next launch, and stays when
// the graph is gone.
void check_memory_freed_outside() {
  const int n = 256;
  cudaStream_t stream;
  must(cudaStreamCreate(&stream));
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  float* a;
  must(cudaMallocAsync(&a, n * sizeof(float), stream));
  must(cudaMemsetAsync(a, 0, n * sizeof(float), stream));
  add<<<2, 128, 0, stream>>>(a, n, 3.0f);
  cudaGraph_t graph;
  must(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable;
  must(cudaGraphInstantiate(&executable, graph, 0));
  for (int round = 0; round < 2; ++round) {
    must(cudaGraphLaunch(executable, stream));
    add<<<2, 128, 0, stream>>>(a, n, 1.0f);
    must(cudaStreamSynchronize(stream));
    expect(from_device(a, n)[n - 1] == 4);
    must(cudaFreeAsync(a, stream));
  }
  must(cudaGraphLaunch(executable, stream));
  must(cudaGraphExecDestroy(executable));
  must(cudaGraphDestroy(graph));
  add<<<2, 128, 0, stream>>>(a, n, 2.0f);
  must(cudaStreamSynchronize(stream));
  expect(from_device(a, n)[0] == 5);
  must(cudaFree(a));
  expect(cudaFree(a) == cudaErrorInvalidValue);
  cudaGetLastError();
  must(cudaStreamDestroy(stream));
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
  check_streams_destroyed_in_capture();
  check_memory_freed_outside();
  check_nodes();
  return verdict();
}
