// SPDX-License-Identifier: Apache-2.0
// What kernels print arrives in the program's own output, after what the program printed before.
#include <unistd.h>
#include <cstring>
#include <string>

#include "check.hpp"

__global__ void report(int n, double factor) {
  if (threadIdx.x < n) {
    printf("thread %d of block %u holds %.2f %s %c %5d|%-4x|%lld\n", threadIdx.x, blockIdx.x,
           factor * threadIdx.x, threadIdx.x % 2 ? "odd" : "even", 'a' + int(threadIdx.x), -int(threadIdx.x),
           10 + threadIdx.x, 1ll << (32 + threadIdx.x));
  }
}

__global__ void shout() {
  printf("done: 100%%\n");
}

int main() {
  // Standard output goes to a file for a while.
  std::fflush(stdout);
  const int terminal = dup(STDOUT_FILENO);
  std::FILE* file = std::tmpfile();
  if (!file || terminal < 0) return 1;
  dup2(fileno(file), STDOUT_FILENO);
  std::printf("before\n");
  report<<<1, 32>>>(3, 0.5);
  shout<<<1, 1>>>();
  const cudaError_t error = cudaDeviceSynchronize();
  std::printf("after\n");
  std::fflush(stdout);
  dup2(terminal, STDOUT_FILENO);
  must(error);

  std::string text;
  char line[256];
  std::rewind(file);
  while (std::fgets(line, sizeof(line), file)) text += line;
  const std::string wanted =
      "before\n"
      "thread 0 of block 0 holds 0.00 even a     0|a   |4294967296\n"
      "thread 1 of block 0 holds 0.50 odd b    -1|b   |8589934592\n"
      "thread 2 of block 0 holds 1.00 even c    -2|c   |17179869184\n"
      "done: 100%\n"
      "after\n";
  expect(text == wanted);
  if (text != wanted) std::printf("got:\n%s", text.c_str());
  return verdict();
}
