// SPDX-License-Identifier: Apache-2.0
// Errors of kernels stay until the device is reset; a host access to device memory reaches the program's own
// handler.
#include <setjmp.h>

#include <csignal>

#include "cuda.hpp"

namespace {

sigjmp_buf before_access;

void on_fault(int) {
  siglongjmp(before_access, 1);
}

bool can_read(const volatile int* pointer) {
  if (sigsetjmp(before_access, 1) != 0) return false;
  return *pointer == *pointer;
}

// `early`: the program has its handler before CUDA is used, otherwise after.
void host_accesses(bool early) {
  if (early) std::signal(SIGSEGV, on_fault);
  int *device = nullptr, *managed = nullptr, *pinned = nullptr;
  MUST(cudaMalloc(&device, 4096));
  MUST(cudaMallocManaged(&managed, 4096, 1));
  if (!early) std::signal(SIGSEGV, on_fault);
  MUST(cudaHostAlloc(&pinned, 4096, 0));
  EXPECT(can_read(managed) && can_read(pinned) && !can_read(device) && !can_read(nullptr));
  MUST(cudaFreeHost(pinned));
  EXPECT(!can_read(pinned));
  MUST(cudaFree(managed));
  EXPECT(!can_read(managed));
}

}  // namespace

int main(int count, char**) {
  register_program();
  host_accesses(count == 1);
  int* device = nullptr;
  MUST(cudaMalloc(&device, 128));
  MUST(cudaLaunchKernel(&trap_stub, {1, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr));
  GIVES(719, cudaDeviceSynchronize());
  GIVES(719, cudaMemset(device, 0, 4));
  EXPECT(cudaGetLastError() == 719 && cudaGetLastError() == 719);
  MUST(cudaDeviceReset());
  EXPECT(cudaGetLastError() == 0);
  MUST(cudaMalloc(&device, 128));
  void* arguments[] = {&device};
  MUST(cudaLaunchKernel(&fill_stub, {1, 1, 1}, {32, 1, 1}, arguments, 0, nullptr));
  EXPECT(fetch(device, 1)[0] == 7);
  std::puts("ok");
  return 0;
}
