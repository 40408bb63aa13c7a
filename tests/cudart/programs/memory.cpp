// SPDX-License-Identifier: Apache-2.0
// Memory that the host and the device share, and what is known of pointers.
#include "cuda.hpp"

namespace {

void add_to(void* values, unsigned n, unsigned char more) {
  AddArguments arguments(values, n, more, 0);
  MUST(cudaLaunchKernel(&add_stub, {(n + 255) / 256, 1, 1}, {256, 1, 1}, arguments.pointers, 0, nullptr));
}

int type_of(const void* pointer) {
  Attributes attributes{};
  MUST(cudaPointerGetAttributes(&attributes, pointer));
  return attributes.type;
}

void pinned() {
  int* values = nullptr;
  MUST(cudaHostAlloc(&values, 1000 * sizeof(int), 2));
  for (int i = 0; i < 1000; ++i) values[i] = i;
  void* device = nullptr;
  MUST(cudaHostGetDevicePointer(&device, values, 0));
  add_to(device, 1000, 5);
  MUST(cudaDeviceSynchronize());
  for (int i = 0; i < 1000; ++i) EXPECT(values[i] == i + 5);
  EXPECT(type_of(values) == 1 && type_of(values + 999) == 1);
  GIVES(1, cudaFree(values));
  MUST(cudaFreeHost(values));
  GIVES(1, cudaFreeHost(values));
  cudaGetLastError();
}

void registered() {
  std::vector<int> values(10'000);
  for (int i = 0; i < 10'000; ++i) values[static_cast<std::size_t>(i)] = i;
  int* part = values.data() + 100;
  MUST(cudaHostRegister(part, 9'000 * sizeof(int), 2));
  GIVES(712, cudaHostRegister(part, 4, 0));
  EXPECT(cudaGetLastError() == 712);
  void* device = nullptr;
  MUST(cudaHostGetDevicePointer(&device, part, 0));
  add_to(device, 9'000, 1);
  MUST(cudaDeviceSynchronize());
  for (int i = 0; i < 10'000; ++i)
    EXPECT(values[static_cast<std::size_t>(i)] == i + (i >= 100 && i < 9'100 ? 1 : 0));
  EXPECT(type_of(part) == 1);
  int* copy = nullptr;
  MUST(cudaMalloc(&copy, 9'000 * sizeof(int)));
  MUST(cudaMemcpyAsync(copy, part, 9'000 * sizeof(int), to_device, nullptr));
  EXPECT(fetch(copy, 9'000)[8'999] == 9'100);
  MUST(cudaMemset(copy, 0, 9'000 * sizeof(int)));
  MUST(cudaMemcpyAsync(part, copy, 9'000 * sizeof(int), to_host, nullptr));
  MUST(cudaDeviceSynchronize());
  EXPECT(part[0] == 0 && part[8'999] == 0 && values[99] == 99 && values[9'100] == 9'100);
  MUST(cudaHostUnregister(part));
  GIVES(713, cudaHostUnregister(part));
  EXPECT(cudaGetLastError() == 713);
  part[0] = 42;
  EXPECT(values[100] == 42 && type_of(part) == 0);
  MUST(cudaFree(copy));
}

void managed() {
  int* values = nullptr;
  MUST(cudaMallocManaged(&values, 3'000'000, 1));
  for (int i = 0; i < 750'000; ++i) values[i] = i;
  add_to(values, 750'000, 9);
  MUST(cudaDeviceSynchronize());
  for (int i = 0; i < 750'000; ++i) EXPECT(values[i] == i + 9);
  add_to(values, 10, 1);
  MUST(cudaDeviceSynchronize());
  EXPECT(values[0] == 10 && values[10] == 19);
  EXPECT(type_of(values) == 3);
  std::vector<int> copy(100);
  MUST(cudaMemcpy(copy.data(), values, 400, any_direction));
  EXPECT(copy[99] == 108);
  MUST(cudaMemcpy(values, copy.data() + 1, 4, any_direction));
  EXPECT(values[0] == 11);
  MUST(cudaFree(values));
}

void pools() {
  void* stream = nullptr;
  MUST(cudaStreamCreate(&stream));
  int* values = nullptr;
  MUST(cudaMallocAsync(&values, 4096, stream));
  MUST(cudaMemset(values, 0, 4096));
  add_to(values, 1024, 2);
  EXPECT(fetch(values, 1024)[1023] == 2);
  MUST(cudaFreeAsync(values, stream));
  GIVES(1, cudaFreeAsync(values, stream));
  cudaGetLastError();
  MUST(cudaStreamDestroy(stream));
  GIVES(400, cudaStreamSynchronize(stream));
  cudaGetLastError();
}

void device_memory() {
  std::size_t before = 0, total = 0, after = 0;
  MUST(cudaMemGetInfo(&before, &total));
  void* values = nullptr;
  MUST(cudaMalloc(&values, 64 << 20));
  MUST(cudaMemGetInfo(&after, &total));
  EXPECT(after + (64 << 20) <= before && before <= total);
  EXPECT(type_of(values) == 2);
  EXPECT(type_of(&before) == 0);
  GIVES(1, cudaFree(static_cast<char*>(values) + 256));
  MUST(cudaFree(values));
  GIVES(1, cudaFree(values));
  GIVES(2, cudaMalloc(&values, std::size_t{1} << 50));
  EXPECT(cudaGetLastError() == 2);
  MUST(cudaMalloc(&values, 0));
  EXPECT(values == nullptr);
  MUST(cudaFree(nullptr));
}

}  // namespace

int main() {
  register_program();
  device_memory();
  pinned();
  registered();
  managed();
  pools();
  std::puts("ok");
  return 0;
}
