// SPDX-License-Identifier: Apache-2.0
// Contexts, libraries, kernels and their launches through the driver alone.
#include "driver.hpp"

FUNCTION(cuInit)
FUNCTION(cuCtxCreate_v4)
FUNCTION(cuCtxGetApiVersion)
FUNCTION(cuCtxGetDevice_v2)
FUNCTION(cuCtxGetLimit)
FUNCTION(cuCtxGetStreamPriorityRange)
FUNCTION(cuCtxSynchronize_v2)
FUNCTION(cuDeviceGetAttribute)
FUNCTION(cuDeviceGetPCIBusId)
FUNCTION(cuDeviceGetByPCIBusId)
FUNCTION(cuDeviceGetProperties)
FUNCTION(cuDeviceGetUuid_v2)
FUNCTION(cuDevicePrimaryCtxGetState)
FUNCTION(cuLibraryLoadData)
FUNCTION(cuLibraryGetKernel)
FUNCTION(cuLibraryGetModule)
FUNCTION(cuLibraryGetGlobal)
FUNCTION(cuLibraryUnload)
FUNCTION(cuKernelGetFunction)
FUNCTION(cuKernelGetAttribute)
FUNCTION(cuKernelGetName)
FUNCTION(cuFuncGetAttribute)
FUNCTION(cuFuncSetAttribute)
FUNCTION(cuFuncGetParamInfo)
FUNCTION(cuFuncLoad)
FUNCTION(cuModuleGetFunction)
FUNCTION(cuLaunchKernel)
FUNCTION(cuLaunchKernel_ptsz)
FUNCTION(cuLaunchKernelEx)
FUNCTION(cuLaunchCooperativeKernel)
FUNCTION(cuLaunchHostFunc)
FUNCTION(cuMemAlloc_v2)
FUNCTION(cuMemsetD32_v2)
FUNCTION(cuMemcpyDtoH_v2)
FUNCTION(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
FUNCTION(cuOccupancyMaxPotentialBlockSize)
FUNCTION(cuStreamCreateWithPriority)
FUNCTION(cuStreamGetPriority)
FUNCTION(cuStreamGetFlags)
FUNCTION(cuStreamSynchronize_ptsz)

namespace {

const char* kPtx = R"(.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 more = 3;
.visible .entry add(.param .u64 values, .param .u32 step)
{
  .reg .b32 %r<6>;
  .reg .b64 %d<3>;
  ld.param.u64 %d1, [values];
  ld.param.u32 %r1, [step];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mad.lo.u32 %r2, %r3, %r4, %r2;
  mul.wide.u32 %d2, %r2, 4;
  add.u64 %d1, %d1, %d2;
  ld.global.u32 %r5, [%d1];
  add.u32 %r5, %r5, %r1;
  st.global.u32 [%d1], %r5;
  ret;
}
)";

constexpr unsigned kBlock = 64, kGrid = 4;

struct Attribute {
  unsigned id;
  char padding[4];
  union {
    char bytes[64];
    int cooperative;
  } value;
};

struct Launch {
  unsigned grid[3], block[3], shared;
  void* stream;
  Attribute* attributes;
  unsigned count;
};

void check_devices() {
  unsigned version = 0, flags = 1;
  int device = -1, active = 0, threads = 0, properties[16] = {};
  char bus[32] = {}, uuid[16] = {};
  MUST(cuCtxGetApiVersion(nullptr, &version));
  EXPECT(version >= 3020);
  MUST(cuCtxGetDevice_v2(&device, nullptr));
  EXPECT(device == 0);
  MUST(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT(active == 1);
  MUST(cuDeviceGetPCIBusId(bus, 32, 0));
  device = -1;
  MUST(cuDeviceGetByPCIBusId(&device, bus));
  EXPECT(device == 0);
  MUST(cuDeviceGetUuid_v2(uuid, 0));
  MUST(cuDeviceGetAttribute(&threads, 1, 0));
  MUST(cuDeviceGetProperties(properties, 0));
  EXPECT(properties[0] == threads && threads == 1024 && properties[9] == 32);
  Size limit = 0;
  MUST(cuCtxGetLimit(&limit, 0));
  EXPECT(limit > 0);
}

void check_occupancy(void* function) {
  int blocks = 0, threads = 0, resident = 0;
  MUST(cuOccupancyMaxPotentialBlockSize(&blocks, &threads, function, nullptr, Size{0}, 0));
  EXPECT(threads == 1024 && blocks == 2 * 80);
  MUST(cuOccupancyMaxPotentialBlockSize(&blocks, &threads, function, nullptr, Size{0}, 100));
  EXPECT(threads == 96 || threads == 64);
  MUST(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&resident, function, 1024, Size{0}, 0));
  EXPECT(resident == 2);
}

void check_attributes(void* function, void* kernel) {
  int value = -1;
  MUST(cuFuncGetAttribute(&value, 0, function));
  EXPECT(value == 1024);
  MUST(cuFuncSetAttribute(function, 8, 65536));
  MUST(cuFuncGetAttribute(&value, 8, function));
  EXPECT(value == 65536);
  MUST(cuKernelGetAttribute(&value, 4, kernel, 0));
  EXPECT(value > 0);
  GIVES(1, cuFuncGetAttribute(&value, 99, function));
  const char* name = nullptr;
  MUST(cuKernelGetName(&name, kernel));
  EXPECT(std::strcmp(name, "add") == 0);
  Size offset = 0, bytes = 0;
  MUST(cuFuncGetParamInfo(function, Size{1}, &offset, &bytes));
  EXPECT(offset == 8 && bytes == 4);
}

void called(void* count) {
  ++*static_cast<int*>(count);
}

}  // namespace

int main() {
  MUST(cuInit(0));
  void *context = nullptr, *library = nullptr, *kernel = nullptr, *function = nullptr, *module = nullptr;
  MUST(cuCtxCreate_v4(&context, nullptr, 0, 0));
  check_devices();
  MUST(cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  GIVES(500, cuLibraryGetKernel(&kernel, library, "missing"));
  MUST(cuLibraryGetKernel(&kernel, library, "add"));
  MUST(cuKernelGetFunction(&function, kernel));
  MUST(cuLibraryGetModule(&module, library));
  MUST(cuModuleGetFunction(&function, module, "add"));
  MUST(cuFuncLoad(function));
  Address more = 0, values = 0;
  Size bytes = 0;
  MUST(cuLibraryGetGlobal(&more, &bytes, library, "more"));
  EXPECT(more != 0 && bytes == 4);
  check_attributes(function, kernel);
  check_occupancy(function);

  void* stream = nullptr;
  int least = 1, greatest = 1, priority = 1;
  unsigned flags = 0;
  MUST(cuCtxGetStreamPriorityRange(&least, &greatest));
  EXPECT(greatest <= least);
  MUST(cuStreamCreateWithPriority(&stream, 1, greatest));
  MUST(cuStreamGetPriority(stream, &priority));
  MUST(cuStreamGetFlags(stream, &flags));
  EXPECT(priority == greatest && flags == 1);

  MUST(cuMemAlloc_v2(&values, Size{kGrid * kBlock * 4}));
  MUST(cuMemsetD32_v2(values, 100, Size{kGrid * kBlock}));
  unsigned step = 1;
  void* arguments[] = {&values, &step};
  Attribute attributes[1] = {};
  attributes[0].id = 2;
  attributes[0].value.cooperative = 1;
  const Launch launch{{kGrid, 1, 1}, {kBlock, 1, 1}, 0, nullptr, attributes, 1};
  MUST(cuLaunchKernelEx(&launch, function, arguments, nullptr));
  step = 10;
  MUST(cuLaunchCooperativeKernel(function, kGrid, 1, 1, kBlock, 1, 1, 0, nullptr, arguments));
  step = 1000;
  MUST(cuLaunchKernel(kernel, kGrid, 1, 1, kBlock, 1, 1, 0, nullptr, arguments, nullptr));
  MUST(cuCtxSynchronize_v2(nullptr));
  step = 10000;
  MUST(cuLaunchKernel_ptsz(function, kGrid, 1, 1, kBlock, 1, 1, 0, nullptr, arguments, nullptr));
  int calls = 0;
  MUST(cuLaunchHostFunc(stream, &called, &calls));
  MUST(cuStreamSynchronize_ptsz(nullptr));
  MUST(cuCtxSynchronize_v2(context));
  EXPECT(calls == 1);
  GIVES(1, cuLaunchKernel(function, kGrid, 1, 1, 4096, 1, 1, 0, nullptr, arguments, nullptr));
  GIVES(400, cuLaunchKernel(&calls, kGrid, 1, 1, kBlock, 1, 1, 0, nullptr, arguments, nullptr));
  std::vector<unsigned> got(kGrid * kBlock);
  MUST(cuMemcpyDtoH_v2(got.data(), values, Size{kGrid * kBlock * 4}));
  for (const unsigned value : got) EXPECT(value == 100 + 1 + 10 + 1000 + 10000);
  MUST(cuLibraryUnload(library));
  std::puts("ok");
  return 0;
}
