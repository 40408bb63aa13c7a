// SPDX-License-Identifier: Apache-2.0
// Graphs through the driver alone: captured, and made of nodes.
#include "driver.hpp"

FUNCTION(cuInit)
FUNCTION(cuCtxSynchronize)
FUNCTION(cuGraphAddDependencies_v2)
FUNCTION(cuGraphAddEmptyNode)
FUNCTION(cuGraphAddKernelNode_v2)
FUNCTION(cuGraphAddMemcpyNode)
FUNCTION(cuGraphAddMemsetNode)
FUNCTION(cuGraphCreate)
FUNCTION(cuGraphDestroy)
FUNCTION(cuGraphExecDestroy)
FUNCTION(cuGraphExecKernelNodeSetParams_v2)
FUNCTION(cuGraphExecUpdate_v2)
FUNCTION(cuGraphGetEdges)
FUNCTION(cuGraphGetEdges_v2)
FUNCTION(cuGraphGetNodes)
FUNCTION(cuGraphInstantiateWithFlags)
FUNCTION(cuGraphInstantiate_v2)
FUNCTION(cuGraphKernelNodeGetParams_v2)
FUNCTION(cuGraphLaunch)
FUNCTION(cuGraphNodeGetDependencies)
FUNCTION(cuGraphNodeGetType)
FUNCTION(cuLaunchKernel)
FUNCTION(cuMemAlloc_v2)
FUNCTION(cuMemcpyDtoH_v2)
FUNCTION(cuMemsetD32Async)
FUNCTION(cuModuleGetFunction)
FUNCTION(cuModuleLoadData)
FUNCTION(cuStreamBeginCapture_v2)
FUNCTION(cuStreamCreate)
FUNCTION(cuStreamEndCapture)
FUNCTION(cuStreamGetCaptureInfo_v2)
FUNCTION(cuStreamIsCapturing)

namespace {

const char* kPtx = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry add(.param .u64 values, .param .u32 step)
{
  .reg .b32 %r<4>;
  .reg .b64 %d<3>;
  ld.param.u64 %d1, [values];
  ld.param.u32 %r1, [step];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %d2, %r2, 4;
  add.u64 %d1, %d1, %d2;
  ld.global.u32 %r3, [%d1];
  add.u32 %r3, %r3, %r1;
  st.global.u32 [%d1], %r3;
  ret;
}
)";

constexpr unsigned n = 32;

struct KernelNode {
  void* function;
  unsigned grid[3], block[3], shared;
  void **arguments, **extra;
  void *kernel, *context;
};

struct FillNode {
  Address target;
  Size pitch;
  unsigned value, element;
  Size width, height;
};

struct Side3D {
  Size x, y, z, level;
  int type;
  const void* host;
  Address device;
  void *array, *reserved;
  Size pitch, height;
};

struct Copy3D {
  Side3D source, target;
  Size width, height, depth;
};

void expect(Address values, unsigned wanted) {
  unsigned got[n] = {};
  MUST(cuMemcpyDtoH_v2(got, values, Size{n * 4}));
  for (const unsigned value : got) EXPECT(value == wanted);
}

// A fill, a kernel and a copy; what the copy brings changes with the step.
void* check_nodes(void* add, Address values, void* stream, void*& other) {
  unsigned step = 5;
  void* arguments[] = {&values, &step};
  Size count = 0;
  void *made = nullptr, *fill = nullptr, *kernel = nullptr, *copy = nullptr, *last = nullptr;
  unsigned result[n] = {};
  MUST(cuGraphCreate(&made, 0));
  const FillNode zero{values, 0, 9, 4, n, 1};
  MUST(cuGraphAddMemsetNode(&fill, made, nullptr, Size{0}, &zero, nullptr));
  const KernelNode launch{nullptr, {1, 1, 1}, {n, 1, 1}, 0, arguments, nullptr, add, nullptr};
  MUST(cuGraphAddKernelNode_v2(&kernel, made, &fill, Size{1}, &launch));
  const Copy3D out{{0, 0, 0, 0, 2, nullptr, values, nullptr, nullptr, n * 4, 1},
                   {0, 0, 0, 0, 1, result, 0, nullptr, nullptr, n * 4, 1},
                   n * 4,
                   1,
                   1};
  MUST(cuGraphAddMemcpyNode(&copy, made, &kernel, Size{1}, &out, nullptr));
  MUST(cuGraphAddEmptyNode(&last, made, nullptr, Size{0}));
  MUST(cuGraphAddDependencies_v2(made, &copy, &last, nullptr, Size{1}));
  int type = -1;
  MUST(cuGraphNodeGetType(copy, &type));
  EXPECT(type == 1);
  MUST(cuGraphGetNodes(made, nullptr, &count));
  EXPECT(count == 4);
  MUST(cuGraphGetEdges(made, nullptr, nullptr, &count));
  EXPECT(count == 3);
  void* before[4] = {};
  MUST(cuGraphNodeGetDependencies(copy, before, &count));
  EXPECT(count == 1 && before[0] == kernel);
  KernelNode told{};
  MUST(cuGraphKernelNodeGetParams_v2(kernel, &told));
  EXPECT(told.function == add && told.block[0] == n);
  MUST(cuGraphInstantiateWithFlags(&other, made, 0ULL));
  MUST(cuGraphLaunch(other, stream));
  MUST(cuCtxSynchronize());
  for (const unsigned value : result) EXPECT(value == 14);
  step = 100;
  MUST(cuGraphExecKernelNodeSetParams_v2(other, kernel, &launch));
  MUST(cuGraphLaunch(other, stream));
  MUST(cuCtxSynchronize());
  for (const unsigned value : result) EXPECT(value == 109);
  return made;
}

}  // namespace

int main() {
  MUST(cuInit(0));
  void *module = nullptr, *add = nullptr, *stream = nullptr, *graph = nullptr, *execution = nullptr;
  Address values = 0;
  MUST(cuModuleLoadData(&module, kPtx));
  MUST(cuModuleGetFunction(&add, module, "add"));
  MUST(cuMemAlloc_v2(&values, Size{n * 4}));
  MUST(cuStreamCreate(&stream, 1));

  unsigned step = 5;
  void* arguments[] = {&values, &step};
  int status = 0;
  unsigned long long number = 0;
  void* into = nullptr;
  void** nodes = nullptr;
  Size count = 0;
  MUST(cuStreamBeginCapture_v2(stream, 0));
  MUST(cuMemsetD32Async(values, 70000, Size{n}, stream));
  MUST(cuLaunchKernel(add, 1, 1, 1, n, 1, 1, 0, stream, arguments, nullptr));
  MUST(cuStreamIsCapturing(stream, &status));
  EXPECT(status == 1);
  MUST(cuStreamGetCaptureInfo_v2(stream, &status, &number, &into, &nodes, &count));
  EXPECT(status == 1 && into != nullptr && count == 1);
  MUST(cuStreamEndCapture(stream, &graph));
  MUST(cuGraphInstantiate_v2(&execution, graph, nullptr, nullptr, Size{0}));
  for (int i = 0; i < 2; ++i) MUST(cuGraphLaunch(execution, stream));
  MUST(cuCtxSynchronize());
  expect(values, 70005);

  void* other = nullptr;
  void* made = check_nodes(add, values, stream, other);
  struct {
    int result;
    void *wrong, *wrong_from;
  } info{};
  MUST(cuGraphExecUpdate_v2(other, made, &info));
  EXPECT(info.result == 0);
  GIVES(910, cuGraphExecUpdate_v2(other, graph, &info));
  EXPECT(info.result != 0);
  MUST(cuGraphExecDestroy(other));
  MUST(cuGraphExecDestroy(execution));
  MUST(cuGraphDestroy(made));
  MUST(cuGraphDestroy(graph));
  std::puts("ok");
  return 0;
}
