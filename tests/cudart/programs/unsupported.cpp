// SPDX-License-Identifier: Apache-2.0
#include "cuda.hpp"

int main() {
  for (int i = 0; i < 3; ++i) GIVES(801, cudaGLSetGLDevice(0));
  GIVES(801, cudaIpcGetEventHandle(nullptr, nullptr));
  EXPECT(cudaGetLastError() == 801);
  std::puts("ok");
  return 0;
}
