// SPDX-License-Identifier: Apache-2.0
// A program that uses the driver's interface and no runtime: it loads PTX at run time and launches its
// kernel.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

extern "C" {
int cuInit(unsigned);
int cuDeviceGet(int*, int);
int cuDeviceComputeCapability(int*, int*, int);
int cuDeviceTotalMem_v2(std::size_t*, int);
int cuCtxCreate_v2(void*, unsigned, int);
int cuCtxDestroy_v2(void*);
int cuCtxSynchronize();
int cuMemAlloc_v2(std::uint64_t*, std::size_t);
int cuMemFree_v2(std::uint64_t);
int cuMemcpyHtoD_v2(std::uint64_t, const void*, std::size_t);
int cuMemcpyDtoH_v2(void*, std::uint64_t, std::size_t);
int cuMemsetD32_v2(std::uint64_t, unsigned, std::size_t);
int cuModuleLoadData(void*, const void*);
int cuModuleGetFunction(void*, void*, const char*);
int cuModuleGetGlobal_v2(std::uint64_t*, std::size_t*, void*, const char*);
int cuModuleUnload(void*);
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                   void**);
int cuStreamCreate(void*, unsigned);
int cuStreamSynchronize(void*);
int cuStreamDestroy_v2(void*);
int cuEventCreate(void*, unsigned);
int cuEventRecord(void*, void*);
int cuEventSynchronize(void*);
int cuEventElapsedTime(float*, void*, void*);
}

#define EXPECT(condition)                                                                 \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                       \
    }                                                                                     \
  } while (false)
#define MUST(call) EXPECT((call) == 0)

namespace {

const char* kPtx = R"(.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 more = 3;
.visible .entry add(.param .u64 values, .param .u32 step)
{
  .reg .b32 %r<5>;
  .reg .b64 %d<3>;
  ld.param.u64 %d1, [values];
  ld.param.u32 %r1, [step];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %d2, %r2, 4;
  add.u64 %d1, %d1, %d2;
  ld.global.u32 %r3, [more];
  ld.global.u32 %r4, [%d1];
  add.u32 %r4, %r4, %r1;
  add.u32 %r4, %r4, %r3;
  st.global.u32 [%d1], %r4;
  ret;
}
)";

constexpr unsigned n = 32;

}  // namespace

int main() {
  int device = -1, major = 0, minor = -1;
  void *context = nullptr, *module = nullptr, *function = nullptr;
  MUST(cuInit(0));
  MUST(cuDeviceGet(&device, 0));
  MUST(cuDeviceComputeCapability(&major, &minor, device));
  EXPECT(major == 7 && minor == 0);
  std::size_t total = 0;
  MUST(cuDeviceTotalMem_v2(&total, device));
  EXPECT(total > 0);
  MUST(cuCtxCreate_v2(&context, 0, device));
  MUST(cuModuleLoadData(&module, kPtx));
  MUST(cuModuleGetFunction(&function, module, "add"));
  EXPECT(cuModuleGetFunction(&function, module, "missing") == 500);  // CUDA_ERROR_NOT_FOUND
  MUST(cuModuleGetFunction(&function, module, "add"));
  std::uint64_t values = 0, more = 0;
  std::size_t bytes = 0;
  MUST(cuModuleGetGlobal_v2(&more, &bytes, module, "more"));
  EXPECT(bytes == 4);
  MUST(cuMemAlloc_v2(&values, n * 4));
  MUST(cuMemsetD32_v2(values, 100, n));
  void *stream = nullptr, *begin = nullptr, *end = nullptr;
  MUST(cuStreamCreate(&stream, 0));
  MUST(cuEventCreate(&begin, 0));
  MUST(cuEventCreate(&end, 0));
  MUST(cuEventRecord(begin, stream));
  unsigned step = 20;
  void* arguments[] = {&values, &step};
  MUST(cuLaunchKernel(function, 1, 1, 1, n, 1, 1, 0, stream, arguments, nullptr));
  MUST(cuEventRecord(end, stream));
  MUST(cuEventSynchronize(end));
  float milliseconds = 0;
  MUST(cuEventElapsedTime(&milliseconds, begin, end));
  const unsigned other = 1000;
  MUST(cuMemcpyHtoD_v2(more, &other, 4));
  // Parameters in one piece.
  struct {
    std::uint64_t values;
    unsigned step;
  } packed{values, 7};
  std::size_t size = sizeof packed;
  void* extra[] = {reinterpret_cast<void*>(1), &packed, reinterpret_cast<void*>(2), &size, nullptr};
  MUST(cuLaunchKernel(function, 1, 1, 1, n, 1, 1, 0, stream, nullptr, extra));
  MUST(cuStreamSynchronize(stream));
  std::vector<unsigned> got(n);
  MUST(cuMemcpyDtoH_v2(got.data(), values, n * 4));
  for (const unsigned value : got) EXPECT(value == 100 + 20 + 3 + 7 + 1000);
  MUST(cuCtxSynchronize());
  MUST(cuStreamDestroy_v2(stream));
  MUST(cuMemFree_v2(values));
  MUST(cuModuleUnload(module));
  MUST(cuCtxDestroy_v2(context));
  std::puts("ok");
  return 0;
}
