// SPDX-License-Identifier: Apache-2.0
// What the device says of itself, asked in two ways that must agree.
#include <cstring>

#include "check.hpp"

int attribute(cudaDeviceAttr which) {
  int value = -1;
  must(cudaDeviceGetAttribute(&value, which, 0));
  return value;
}

int main() {
  int count = 0;
  must(cudaGetDeviceCount(&count));
  expect(count >= 1);
  cudaDeviceProp properties{};
  must(cudaGetDeviceProperties(&properties, 0));
  std::printf("%s, compute capability %d.%d, %d multiprocessors\n", properties.name, properties.major,
              properties.minor, properties.multiProcessorCount);
  expect(std::strlen(properties.name) > 0);
  expect(properties.warpSize == 32);
  expect(properties.maxThreadsPerBlock == 1024);
  expect(properties.maxGridSize[0] == 2147483647 && properties.maxGridSize[1] == 65535);
  expect(properties.maxThreadsDim[0] == 1024 && properties.maxThreadsDim[2] == 64);
  expect(properties.sharedMemPerBlock == 48 * 1024);
  expect(properties.totalGlobalMem > (64u << 20));
  expect(properties.unifiedAddressing == 1);
  expect(attribute(cudaDevAttrMultiProcessorCount) == properties.multiProcessorCount);
  expect(attribute(cudaDevAttrComputeCapabilityMajor) == properties.major);
  expect(attribute(cudaDevAttrComputeCapabilityMinor) == properties.minor);
  expect(attribute(cudaDevAttrWarpSize) == 32);
  expect(attribute(cudaDevAttrMaxThreadsPerBlock) == properties.maxThreadsPerBlock);
  expect(attribute(cudaDevAttrMaxThreadsPerMultiProcessor) == properties.maxThreadsPerMultiProcessor);
  expect(attribute(cudaDevAttrMaxSharedMemoryPerBlock) == int(properties.sharedMemPerBlock));
  expect(attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) ==
         int(properties.sharedMemPerMultiprocessor));
  expect(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) == int(properties.sharedMemPerBlockOptin));
  expect(attribute(cudaDevAttrL2CacheSize) == properties.l2CacheSize);
  expect(attribute(cudaDevAttrMaxRegistersPerBlock) == properties.regsPerBlock);
  expect(attribute(cudaDevAttrClockRate) > 0);
  expect(attribute(cudaDevAttrMemoryClockRate) > 0);
  expect(attribute(cudaDevAttrGlobalMemoryBusWidth) == properties.memoryBusWidth);
  expect(attribute(cudaDevAttrManagedMemory) == properties.managedMemory);
  expect(attribute(cudaDevAttrConcurrentManagedAccess) == properties.concurrentManagedAccess);

  int runtime = 0, driver = 0;
  must(cudaRuntimeGetVersion(&runtime));
  must(cudaDriverGetVersion(&driver));
  expect(runtime >= 11'000 && driver >= runtime);

  size_t free_before = 0, free_after = 0, total = 0;
  must(cudaMemGetInfo(&free_before, &total));
  expect(total > 0 && total <= properties.totalGlobalMem && free_before <= total);
  void* memory = nullptr;
  must(cudaMalloc(&memory, 16 << 20));
  must(cudaMemGetInfo(&free_after, &total));
  expect(free_before - free_after >= (16u << 20));
  must(cudaFree(memory));
  must(cudaMemGetInfo(&free_after, &total));
  expect(free_after == free_before);

  size_t stack = 0;
  must(cudaDeviceGetLimit(&stack, cudaLimitStackSize));
  expect(stack >= 1'024);
  must(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 << 20));
  size_t heap = 0;
  must(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
  expect(heap >= (32u << 20));

  int chosen = -1;
  must(cudaChooseDevice(&chosen, &properties));
  expect(chosen >= 0 && chosen < count);
  char bus[32] = "";
  must(cudaDeviceGetPCIBusId(bus, sizeof(bus), 0));
  int by_bus = -1;
  must(cudaDeviceGetByPCIBusId(&by_bus, bus));
  expect(by_bus == 0);
  return verdict();
}
