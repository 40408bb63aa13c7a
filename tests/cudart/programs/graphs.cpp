// SPDX-License-Identifier: Apache-2.0
// Graphs made by hand and captured from streams do what the streams would do, each time they are launched.
#include "cuda.hpp"
#include "graph_nodes.hpp"

struct HostNode {
  void (*function)(void*);
  void* data;
};

namespace {

constexpr unsigned n = 64;
int calls = 0;

void count(void* data) {
  ++*static_cast<int*>(data);
}

void by_hand(int* values) {
  void* graph = nullptr;
  void* nodes[4] = {};
  MUST(cudaGraphCreate(&graph, 0));
  const FillNode fill{values, 0, 5, 4, n, 1};
  MUST(cudaGraphAddMemsetNode(&nodes[0], graph, nullptr, 0, &fill));
  AddArguments arguments(values, n, 10, 0);
  KernelNode kernel{&add_stub, {2, 1, 1}, {32, 1, 1}, 0, arguments.pointers, nullptr};
  MUST(cudaGraphAddKernelNode(&nodes[1], graph, &nodes[0], 1, &kernel));
  const HostNode host{count, &calls};
  MUST(cudaGraphAddHostNode(&nodes[2], graph, &nodes[1], 1, &host));
  std::vector<int> result(n);
  MUST(cudaGraphAddMemcpyNode1D(&nodes[3], graph, &nodes[1], 1, result.data(), values, n * 4, to_host));
  std::size_t found = 0;
  MUST(cudaGraphGetNodes(graph, nullptr, &found));
  EXPECT(found == 4);
  void* execution = nullptr;
  MUST(cudaGraphInstantiateWithFlags(&execution, graph, 0));
  for (int i = 1; i <= 3; ++i) {
    MUST(cudaGraphLaunch(execution, nullptr));
    MUST(cudaDeviceSynchronize());
    EXPECT(result[0] == 15 && result[n - 1] == 15 && calls == i);
  }
  AddArguments others(values, n / 2, 20, 0);
  kernel.arguments = others.pointers;
  MUST(cudaGraphExecKernelNodeSetParams(execution, nodes[1], &kernel));
  MUST(cudaGraphNodeSetEnabled(execution, nodes[2], 0));
  MUST(cudaGraphLaunch(execution, nullptr));
  MUST(cudaDeviceSynchronize());
  EXPECT(result[0] == 25 && result[n - 1] == 5 && calls == 3);
  MUST(cudaGraphDestroy(graph));
  MUST(cudaGraphLaunch(execution, nullptr));
  MUST(cudaGraphExecDestroy(execution));
  GIVES(1, cudaGraphLaunch(execution, nullptr));
  cudaGetLastError();
}

void captured(int* values) {
  void *first = nullptr, *second = nullptr, *forked = nullptr, *joined = nullptr;
  MUST(cudaStreamCreate(&first));
  MUST(cudaStreamCreate(&second));
  MUST(cudaEventCreate(&forked));
  MUST(cudaEventCreate(&joined));
  MUST(cudaMemset(values, 0, n * 4));
  AddArguments low(values, n / 2, 1, 0);
  AddArguments high(values + n / 2, n / 2, 2, 0);
  MUST(cudaStreamBeginCapture(first, 0));
  MUST(cudaLaunchKernel(&add_stub, {1, 1, 1}, {32, 1, 1}, low.pointers, 0, first));
  MUST(cudaEventRecord(forked, first));
  MUST(cudaStreamWaitEvent(second, forked, 0));
  MUST(cudaLaunchKernel(&add_stub, {1, 1, 1}, {32, 1, 1}, high.pointers, 0, second));
  MUST(cudaEventRecord(joined, second));
  MUST(cudaLaunchKernel(&add_stub, {1, 1, 1}, {32, 1, 1}, low.pointers, 0, first));
  MUST(cudaStreamWaitEvent(first, joined, 0));
  void* graph = nullptr;
  MUST(cudaStreamEndCapture(first, &graph));
  EXPECT(fetch(values, 1)[0] == 0);  // nothing has run yet
  void* execution = nullptr;
  MUST(cudaGraphInstantiateWithFlags(&execution, graph, 0));
  for (int i = 0; i < 5; ++i) MUST(cudaGraphLaunch(execution, first));
  MUST(cudaStreamSynchronize(first));
  const auto got = fetch(values, n);
  EXPECT(got[0] == 10 && got[n / 2 - 1] == 10 && got[n / 2] == 10 && got[n - 1] == 10);
  MUST(cudaGraphExecDestroy(execution));
  MUST(cudaGraphDestroy(graph));

  // A stream that was not joined, and a call that cannot be captured.
  MUST(cudaStreamBeginCapture(first, 0));
  MUST(cudaEventRecord(forked, first));
  MUST(cudaStreamWaitEvent(second, forked, 0));
  MUST(cudaLaunchKernel(&add_stub, {1, 1, 1}, {32, 1, 1}, high.pointers, 0, second));
  GIVES(904, cudaStreamEndCapture(first, &graph));
  MUST(cudaStreamBeginCapture(first, 0));
  GIVES(900, cudaStreamSynchronize(first));
  GIVES(901, cudaStreamEndCapture(first, &graph));
  EXPECT(graph == nullptr && cudaGetLastError() == 901);
  MUST(cudaLaunchKernel(&add_stub, {1, 1, 1}, {32, 1, 1}, low.pointers, 0, first));
  MUST(cudaStreamSynchronize(first));
}

}  // namespace

int main() {
  register_program();
  int* values = nullptr;
  MUST(cudaMalloc(&values, n * 4));
  by_hand(values);
  captured(values);
  MUST(cudaFree(values));
  std::puts("ok");
  return 0;
}
