// SPDX-License-Identifier: Apache-2.0
// Nodes of a graph that do not depend on each other run at the same time, and those that do, in order.
#include "cuda.hpp"
#include "graph_nodes.hpp"

namespace {

// `late` adds one to a number after a while; `sum` adds up four of them.
const char* kKernels = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry late(.param .u64 value)
{
  .reg .pred %p;
  .reg .b32 %r<4>;
  .reg .b64 %d;
  ld.param.u64 %d, [value];
  ld.global.u32 %r2, [%d];
  mov.u32 %r1, 0;
  mov.u32 %r3, %r2;
again:
  mad.lo.u32 %r3, %r3, 1664525, 1013904223;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p, %r1, 2000;
  @%p bra again;
  add.u32 %r2, %r2, 1;
  setp.eq.u32 %p, %r3, 12345;
  @%p add.u32 %r2, %r2, 1;
  st.global.u32 [%d], %r2;
  ret;
}
.visible .entry sum(.param .u64 values)
{
  .reg .b32 %r<5>;
  .reg .b64 %d;
  ld.param.u64 %d, [values];
  ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d];
  add.u32 %r1, %r1, %r2;
  add.u32 %r3, %r3, %r4;
  add.u32 %r1, %r1, %r3;
  st.global.u32 [%d+16], %r1;
  ret;
}
)";

char late_stub, sum_stub;
constexpr int branches = 4;

// A graph that writes zeros, adds one to four numbers, and adds them up; after each other or in branches.
void* make(int* values, bool after_each_other) {
  void *graph = nullptr, *zeros = nullptr, *sum = nullptr, *execution = nullptr;
  void* late[branches] = {};
  MUST(cudaGraphCreate(&graph, 0));
  const FillNode fill{values, 0, 0, 4, branches + 1, 1};
  MUST(cudaGraphAddMemsetNode(&zeros, graph, nullptr, 0, &fill));
  for (int i = 0; i < branches; ++i) {
    int* value = values + i;
    void* arguments[] = {&value};
    const KernelNode kernel{&late_stub, {}, {}, 0, arguments, nullptr};
    void** before = after_each_other && i != 0 ? &late[i - 1] : &zeros;
    MUST(cudaGraphAddKernelNode(&late[i], graph, before, 1, &kernel));
  }
  void* arguments[] = {&values};
  const KernelNode kernel{&sum_stub, {}, {}, 0, arguments, nullptr};
  MUST(cudaGraphAddKernelNode(&sum, graph, late, branches, &kernel));
  MUST(cudaGraphInstantiateWithFlags(&execution, graph, 0));
  MUST(cudaGraphDestroy(graph));
  return execution;
}

float milliseconds(void* execution, void* stream, const int* values) {
  void *begin = nullptr, *end = nullptr;
  MUST(cudaEventCreate(&begin));
  MUST(cudaEventCreate(&end));
  MUST(cudaEventRecord(begin, stream));
  MUST(cudaGraphLaunch(execution, stream));
  MUST(cudaEventRecord(end, stream));
  MUST(cudaEventSynchronize(end));
  float between = 0;
  MUST(cudaEventElapsedTime(&between, begin, end));
  EXPECT(fetch(values + branches, 1)[0] == branches);
  return between;
}

}  // namespace

int main() {
  Fatbin fatbin(kKernels);
  void** module = __cudaRegisterFatBinary(fatbin.wrapper());
  __cudaRegisterFunction(module, &late_stub, nullptr, "late", -1, nullptr, nullptr, nullptr, nullptr,
                         nullptr);
  __cudaRegisterFunction(module, &sum_stub, nullptr, "sum", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  __cudaRegisterFatBinaryEnd(module);
  int* values = nullptr;
  MUST(cudaMalloc(&values, 4 * (branches + 1)));
  void* stream = nullptr;
  MUST(cudaStreamCreate(&stream));
  void* in_order = make(values, true);
  void* in_branches = make(values, false);
  for (void* where : {static_cast<void*>(nullptr), stream}) {
    for (int round = 0; round < 2; ++round) {
      const float chain = milliseconds(in_order, where, values);
      const float parallel = milliseconds(in_branches, where, values);
      EXPECT(parallel < chain / 2);
    }
  }
  // What makes branches is made again after a reset.
  MUST(cudaDeviceReset());
  MUST(cudaMalloc(&values, 4 * (branches + 1)));
  MUST(cudaGraphExecDestroy(in_branches));
  in_branches = make(values, false);
  milliseconds(in_branches, nullptr, values);
  MUST(cudaGraphExecDestroy(in_order));
  MUST(cudaGraphExecDestroy(in_branches));
  std::puts("ok");
  return 0;
}
