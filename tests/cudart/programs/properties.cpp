// SPDX-License-Identifier: Apache-2.0
// What the structs of a version of CUDA hold, read at the offsets that a program of that version knows.
#include "cuda.hpp"

#ifndef PROPERTIES
#define PROPERTIES cudaGetDeviceProperties
#endif
extern "C" int PROPERTIES(void*, int);

int main(int, char** arguments) {
  // Size of the struct, and the offsets of: warp size, compute capability, multiprocessors, blocks of an SM.
  std::size_t offsets[5] = {};
  for (int i = 0; i < 5; ++i) offsets[i] = std::strtoul(arguments[i + 1], nullptr, 10);
  std::vector<char> properties(offsets[0] + 64, 'x');
  MUST(PROPERTIES(properties.data(), 0));
  for (std::size_t i = offsets[0]; i < properties.size(); ++i) EXPECT(properties[i] == 'x');
  auto number = [&](std::size_t offset) {
    int value = 0;
    std::memcpy(&value, properties.data() + offset, sizeof value);
    return value;
  };
  int version = 0;
  MUST(cudaRuntimeGetVersion(&version));
  int attribute = 0;
  MUST(cudaDeviceGetAttribute(&attribute, 16, 0));
  EXPECT(attribute == number(offsets[3]));
  std::printf("%d %s: warps of %d, %d.%d, %d SMs with %d blocks\n", version / 1000, properties.data(),
              number(offsets[1]), number(offsets[2]), number(offsets[2] + 4), attribute, number(offsets[4]));
  return 0;
}
