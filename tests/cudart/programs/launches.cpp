// SPDX-License-Identifier: Apache-2.0
// All ways to launch a kernel give the same.
#include "cuda.hpp"

struct LaunchAttribute {
  unsigned id;
  char padding[4];
  union {
    char bytes[64];
    int cooperative;
  } value;
};

struct Configuration {
  Dim3 grid, block;
  std::size_t shared;
  void* stream;
  LaunchAttribute* attributes;
  unsigned count;
};

int main() {
  void** module = register_program();
  constexpr unsigned n = 100;
  int* values = nullptr;
  MUST(cudaMalloc(&values, n * sizeof(int)));
  MUST(cudaMemset(values, 0, n * sizeof(int)));
  AddArguments arguments(values, n, 3, 1000);
  const Dim3 grid{4, 1, 1}, block{32, 1, 1};
  int total = 0;
  auto has = [&](int more) {
    total += more;
    MUST(cudaGetLastError());
    for (const int value : fetch(values, n)) EXPECT(value == total);
  };

  MUST(cudaLaunchKernel(&add_stub, grid, block, arguments.pointers, 0, nullptr));
  has(1003);

  EXPECT(__cudaPushCallConfiguration(grid, block, 0, nullptr) == 0);
  Dim3 popped_grid, popped_block;
  std::size_t shared = 1;
  void* stream = &shared;
  MUST(__cudaPopCallConfiguration(&popped_grid, &popped_block, &shared, &stream));
  EXPECT(popped_grid.x == 4 && popped_block.x == 32 && shared == 0 && stream == nullptr);
  void* kernel = nullptr;
  MUST(__cudaGetKernel(&kernel, &add_stub));
  MUST(__cudaLaunchKernel(kernel, popped_grid, popped_block, arguments.pointers, shared, stream));
  has(1003);
  GIVES(52, __cudaPopCallConfiguration(&popped_grid, &popped_block, &shared, &stream));
  cudaGetLastError();

  MUST(cudaConfigureCall(grid, block, 0, nullptr));
  MUST(cudaSetupArgument(&arguments.values, 8, 0));
  MUST(cudaSetupArgument(&arguments.n, 4, 8));
  MUST(cudaSetupArgument(&arguments.tiny, 1, 12));
  MUST(cudaSetupArgument(&arguments.more, 8, 16));
  MUST(cudaLaunch(&add_stub));
  has(1003);
  GIVES(52, cudaLaunch(&add_stub));
  cudaGetLastError();

  Configuration configuration{grid, block, 0, nullptr, nullptr, 0};
  MUST(cudaLaunchKernelExC(&configuration, &add_stub, arguments.pointers));
  has(1003);
  LaunchAttribute cooperative{2, {}, {}};
  cooperative.value.cooperative = 1;
  configuration.attributes = &cooperative;
  configuration.count = 1;
  MUST(cudaLaunchKernelExC(&configuration, &add_stub, arguments.pointers));
  has(1003);
  MUST(cudaLaunchCooperativeKernel(&add_stub, grid, block, arguments.pointers, 0, nullptr));
  has(1003);
  MUST(cudaLaunchKernel_ptsz(&add_stub, grid, block, arguments.pointers, 0, nullptr));
  MUST(cudaStreamSynchronize(reinterpret_cast<void*>(2)));
  has(1003);

  void* library = nullptr;
  void* loaded = nullptr;
  MUST(cudaLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  GIVES(500, cudaLibraryGetKernel(&loaded, library, "missing"));
  MUST(cudaLibraryGetKernel(&loaded, library, "add"));
  cudaGetLastError();
  MUST(cudaLaunchKernel(loaded, grid, block, arguments.pointers, 0, nullptr));
  has(1003);
  MUST(cudaLibraryUnload(library));

  GIVES(98, cudaLaunchKernel(&shared, grid, block, arguments.pointers, 0, nullptr));
  EXPECT(cudaPeekAtLastError() == 98 && cudaGetLastError() == 98 && cudaGetLastError() == 0);
  GIVES(9, cudaLaunchKernel(&add_stub, grid, Dim3{2000, 1, 1}, arguments.pointers, 0, nullptr));
  GIVES(9, cudaLaunchKernel(&add_stub, Dim3{0, 1, 1}, block, arguments.pointers, 0, nullptr));
  GIVES(1, cudaLaunchKernel(&add_stub, grid, block, nullptr, 0, nullptr));
  cudaGetLastError();
  int blocks = 0;
  MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &add_stub, 1024, 0));
  EXPECT(blocks == 2);
  MUST(cudaFree(values));
  __cudaUnregisterFatBinary(module);
  std::puts("ok");
  return 0;
}
