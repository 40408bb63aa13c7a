// SPDX-License-Identifier: Apache-2.0
// A child made before the first call has devices of its own; one made later is told that it has none.
#include <sys/wait.h>
#include <unistd.h>

#include "cuda.hpp"

namespace {

template <class Work>
int in_child(Work work) {
  const pid_t child = fork();
  if (child == 0) std::_Exit(work());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int use() {
  int* values = nullptr;
  MUST(cudaMalloc(&values, 128));
  void* arguments[] = {&values};
  MUST(cudaLaunchKernel(&fill_stub, {1, 1, 1}, {32, 1, 1}, arguments, 0, nullptr));
  EXPECT(fetch(values, 32)[0] == 7);
  return 0;
}

}  // namespace

int main() {
  register_program();
  EXPECT(in_child(use) == 0);
  EXPECT(in_child(use) == 0);
  use();
  EXPECT(in_child([] {
           int count = 5;
           return cudaGetDeviceCount(&count) == 3 && cudaFree(nullptr) == 3 ? 0 : 1;
         }) == 0);
  use();
  std::puts("ok");
  return 0;
}
