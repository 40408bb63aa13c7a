// SPDX-License-Identifier: Apache-2.0
// Functions of the driver as libraries find them through the runtime, and what they leave of its errors.
#include "cuda.hpp"

extern "C" {
int cudaGetDriverEntryPoint(const char*, void**, unsigned long long, int*);
int cudaGetDriverEntryPointByVersion(const char*, void**, unsigned, unsigned long long, int*);
int cudaGetExportTable(const void**, const void*);
int cudaDeviceGetLimit(std::size_t*, unsigned);
int cuCtxGetCurrent(void*);
}

namespace {

// What NVIDIA's libraries ask for to know which context a thread has, as a number.
const unsigned char kContexts[] = {0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47,
                                   0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec, 0xdc};
const unsigned char kNumbers[] = {0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48,
                                  0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8, 0xf2};
// By which NVIDIA's runtime wants its driver to prove itself.
const unsigned char kProof[] = {0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b,
                                0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1, 0xf2};

void entry_points() {
  void* function = nullptr;
  int status = -1;
  MUST(cudaGetDriverEntryPointByVersion("cuDeviceGetCount", &function, 12000, 0, &status));
  EXPECT(function != nullptr && status == 0);
  int count = 0;
  MUST(reinterpret_cast<int (*)(int*)>(function)(&count));
  EXPECT(count == 2);
  MUST(cudaGetDriverEntryPoint("cuDeviceGetCount", &function, 0, &status));
  EXPECT(function != nullptr && status == 0);
  MUST(cudaGetDriverEntryPointByVersion("cuInventedByNobody", &function, 13000, 0, &status));
  EXPECT(function == nullptr && status == 1);
  MUST(cudaGetDriverEntryPointByVersion("cuLogsCurrent", &function, 12000, 0, &status));
  EXPECT(function == nullptr && status == 2);  // since CUDA 12.9
  GIVES(1, cudaGetDriverEntryPointByVersion(nullptr, &function, 13000, 0, &status));
  EXPECT(cudaGetLastError() == 1);
}

void errors_stay_apart() {
  void* function = nullptr;
  MUST(cudaGetDriverEntryPointByVersion("cuDeviceGetAttribute", &function, 12000, 0, nullptr));
  EXPECT(reinterpret_cast<int (*)(int*, int, int)>(function)(nullptr, 10, 77) != 0);
  EXPECT(cudaGetLastError() == 0);
  GIVES(1, cudaDeviceGetLimit(nullptr, 0));
  EXPECT(reinterpret_cast<int (*)(int*, int, int)>(function)(nullptr, 10, 77) != 0);
  EXPECT(cudaGetLastError() == 1);
}

void tables() {
  const void* table = nullptr;
  MUST(cudaGetExportTable(&table, kContexts));
  void *context = nullptr, *same = nullptr;
  MUST(static_cast<int (*const*)(void*)>(table)[2](&context));
  MUST(cuCtxGetCurrent(&same));
  EXPECT(context != nullptr && context == same);
  MUST(cudaGetExportTable(&table, kNumbers));
  std::uint64_t first = 0, second = 0;
  MUST(static_cast<int (*const*)(void*, std::uint64_t*)>(table)[4](context, &first));
  MUST(cudaSetDevice(1));
  MUST(cuCtxGetCurrent(&same));
  MUST(static_cast<int (*const*)(void*, std::uint64_t*)>(table)[4](same, &second));
  EXPECT(first != second);
  GIVES(801, cudaGetExportTable(&table, kProof));
  EXPECT(table == nullptr && cudaGetLastError() == 801);
}

void limits() {
  std::size_t value = 77;
  MUST(cudaDeviceGetLimit(&value, 8));  // whether it is a context of graphics
  EXPECT(value == 0);
  MUST(cudaDeviceGetLimit(&value, 7));
  EXPECT(value == 96 * 1024);
  GIVES(215, cudaDeviceGetLimit(&value, 70));
  EXPECT(cudaGetLastError() == 215);
}

}  // namespace

int main() {
  entry_points();
  errors_stay_apart();
  tables();
  limits();
  std::puts("ok");
  return 0;
}
