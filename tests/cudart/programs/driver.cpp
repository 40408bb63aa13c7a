// SPDX-License-Identifier: Apache-2.0
// Functions of the driver beside those of the runtime: both speak of the same devices.
#include "cuda.hpp"

extern "C" {
int cuInit(unsigned);
int cuCtxGetDevice(int*);
int cuCtxPushCurrent_v2(void*);
int cuCtxPopCurrent_v2(void*);
int cuStreamGetCtx(void*, void*);
int cuDeviceGetAttribute(int*, int, int);
int cuDeviceGetName(char*, int, int);
int cuMemGetInfo_v2(std::size_t*, std::size_t*);
int cuGetErrorName(int, const char**);
}

int main() {
  MUST(cuInit(0));
  int device = -1;
  MUST(cudaSetDevice(1));
  MUST(cuCtxGetDevice(&device));
  EXPECT(device == 1);
  void *stream = nullptr, *context = nullptr, *popped = nullptr;
  MUST(cudaStreamCreate(&stream));
  MUST(cuStreamGetCtx(stream, &context));
  MUST(cudaSetDevice(0));
  MUST(cuCtxPushCurrent_v2(context));
  MUST(cudaGetDevice(&device));
  EXPECT(device == 1);
  MUST(cuCtxPopCurrent_v2(&popped));
  MUST(cudaGetDevice(&device));
  EXPECT(device == 0 && popped == context);
  GIVES(201, cuCtxPopCurrent_v2(&popped));
  int warp = 0;
  MUST(cuDeviceGetAttribute(&warp, 10, 0));
  EXPECT(warp == 32);
  char name[100] = {};
  MUST(cuDeviceGetName(name, sizeof name, 0));
  EXPECT(std::strstr(name, "v100") != nullptr);
  std::size_t free = 0, total = 0;
  MUST(cuMemGetInfo_v2(&free, &total));
  EXPECT(free <= total && total != 0);
  const char* text = nullptr;
  MUST(cuGetErrorName(1, &text));
  EXPECT(std::strcmp(text, "cudaErrorInvalidValue") == 0);
  std::puts("ok");
  return 0;
}
