// SPDX-License-Identifier: Apache-2.0
// Files are read into managed memory and written from it, while its pages are with the device.
#include <fcntl.h>
#include <unistd.h>

#include "cuda.hpp"

int main() {
  register_program();
  constexpr unsigned n = 300'000;
  std::vector<int> numbers(n);
  for (unsigned i = 0; i < n; ++i) numbers[i] = static_cast<int>(i);
  std::FILE* file = std::tmpfile();
  EXPECT(std::fwrite(numbers.data(), 4, n, file) == n);
  std::rewind(file);
  int* values = nullptr;
  MUST(cudaMallocManaged(&values, n * 4, 1));
  EXPECT(std::fread(values, 4, n, file) == n);
  AddArguments arguments(values, n, 1, 0);
  MUST(cudaLaunchKernel(&add_stub, {(n + 255) / 256, 1, 1}, {256, 1, 1}, arguments.pointers, 0, nullptr));
  MUST(cudaDeviceSynchronize());
  const int descriptor = fileno(file);
  EXPECT(pwrite(descriptor, values, n * 4, 0) == n * 4);
  MUST(cudaMemset(values, 0, n * 4));
  MUST(cudaDeviceSynchronize());
  EXPECT(pread(descriptor, values + 1, (n - 1) * 4, 4) == (n - 1) * 4);
  EXPECT(values[0] == 0);
  for (unsigned i = 1; i < n; ++i) EXPECT(values[i] == static_cast<int>(i) + 1);
  MUST(cudaFree(values));
  std::puts("ok");
  return 0;
}
