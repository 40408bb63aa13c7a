// SPDX-License-Identifier: Apache-2.0
// Many threads use the device at once; each has its own last error and its own default stream.
#include <atomic>
#include <thread>

#include "cuda.hpp"

int main() {
  register_program();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 12; ++t) {
    threads.emplace_back([&, t] {
      constexpr unsigned n = 500;
      int* values = nullptr;
      if (cudaMalloc(&values, n * 4) != 0) ++wrong;
      if (cudaMemset(values, 0, n * 4) != 0) ++wrong;
      for (int i = 0; i < 10; ++i) {
        AddArguments arguments(values, n, static_cast<unsigned char>(t), 0);
        if (cudaLaunchKernel_ptsz(&add_stub, {4, 1, 1}, {128, 1, 1}, arguments.pointers, 0, nullptr) != 0)
          ++wrong;
      }
      for (const int value : fetch(values, n))
        if (value != 10 * t) ++wrong;
      if (t % 2 == 0 && (cudaSetDevice(99) != 101 || cudaPeekAtLastError() != 101)) ++wrong;
      if (t % 2 == 1 && cudaGetLastError() != 0) ++wrong;
      if (cudaFree(values) != 0) ++wrong;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT(wrong == 0);
  EXPECT(cudaGetLastError() == 0);
  std::puts("ok");
  return 0;
}
