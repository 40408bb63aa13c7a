// SPDX-License-Identifier: Apache-2.0
// Kernels that go wrong, each in a process of its own since the error stays with the process.
#include <sys/wait.h>
#include <unistd.h>

#include "check.hpp"

__global__ void trap() {
  __trap();
}

__global__ void write_to(int* address) {
  *address = 1;
}

__global__ void read_misaligned(const char* address, int* out) {
  *out = *reinterpret_cast<const int*>(address + 1);
}

enum class Mistake { kTrap, kNull, kMisaligned, kOutside };

int child(Mistake mistake) {
  int* memory = device_zeros<int>(64);
  cudaError_t wanted = cudaErrorIllegalAddress;
  switch (mistake) {
    case Mistake::kTrap:
      trap<<<1, 32>>>();
      wanted = cudaErrorLaunchFailure;
      break;
    case Mistake::kNull:
      write_to<<<1, 1>>>(nullptr);
      break;
    case Mistake::kMisaligned:
      read_misaligned<<<1, 1>>>(reinterpret_cast<char*>(memory), memory);
      wanted = cudaErrorMisalignedAddress;
      break;
    case Mistake::kOutside:
      write_to<<<1, 1>>>(memory + (1ull << 36));
      break;
  }
  must(cudaGetLastError());
  expect_error(cudaDeviceSynchronize(), wanted);
  expect_error(cudaMemset(memory, 0, 4), wanted);
  expect_error(cudaPeekAtLastError(), wanted);
  return verdict();
}

int main() {
  for (Mistake mistake : {Mistake::kTrap, Mistake::kNull, Mistake::kMisaligned, Mistake::kOutside}) {
    std::fflush(stdout);
    const pid_t process = fork();
    if (process == 0) std::exit(child(mistake));
    int status = 0;
    waitpid(process, &status, 0);
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  return verdict();
}
