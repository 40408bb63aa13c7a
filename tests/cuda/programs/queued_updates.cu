// SPDX-License-Identifier: Apache-2.0
// Values that change between kernels which are queued and have not begun: each kernel sees those of its own turn.
// Each result has its own address, and the host waits only at the end of each part.
#include "check.hpp"

constexpr int kThreads = 64, kRounds = 6;

__constant__ int numbers[kThreads];
__constant__ int one_number;
__device__ int counter;
__managed__ int shared_number;

__global__ void read_constants(int* out) {
  // The first is at an address that the program computes, the second is a word of the bank.
  out[threadIdx.x] = numbers[threadIdx.x] + 1000 * one_number;
}
__global__ void fill(int* out, int value) { out[threadIdx.x] = value + int(threadIdx.x); }
__global__ void copy(const int* from, int* to) { to[threadIdx.x] = from[threadIdx.x]; }
__global__ void count(int* out) {
  if (threadIdx.x == 0) *out = counter;
}
__global__ void read_texture(cudaTextureObject_t texture, int* out) {
  out[threadIdx.x] = tex2D<int>(texture, threadIdx.x % 8 + 0.5f, threadIdx.x / 8 + 0.5f);
}
__global__ void fill_late(int* out, unsigned rounds) {
  unsigned x = threadIdx.x;
  for (unsigned i = 0; i < rounds; ++i) x = x * 1664525 + 1013904223;
  out[threadIdx.x] = int(x != 0 ? threadIdx.x : x);
}
__global__ void read_shared_number(int* out) { *out = shared_number; }

int constant_of(int round, int i) { return 7 * round + i; }

void expect_constants(const int* results) {
  const std::vector<int> got = from_device(results, kRounds * kThreads);
  for (int round = 0; round < kRounds; ++round)
    for (int i = 0; i < kThreads; ++i)
      expect(got[round * kThreads + i] == constant_of(round, i) + 1000 * (round + 1));
}

int* pinned_numbers() {  // those of all rounds, then the single ones
  int* host = nullptr;
  must(cudaMallocHost(&host, kRounds * (kThreads + 1) * sizeof(int)));
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kThreads; ++i) host[round * kThreads + i] = constant_of(round, i);
    host[kRounds * kThreads + round] = round + 1;
  }
  return host;
}

void update(const int* host, int round, cudaStream_t stream) {
  must(cudaMemcpyToSymbolAsync(numbers, host + round * kThreads, sizeof(numbers), 0, cudaMemcpyHostToDevice, stream));
  must(cudaMemcpyToSymbolAsync(one_number, host + kRounds * kThreads + round, sizeof(int), 0, cudaMemcpyHostToDevice,
                               stream));
}

void constants_in_one_stream(const int* host, int* out) {
  cudaStream_t stream;
  must(cudaStreamCreate(&stream));
  for (int round = 0; round < kRounds; ++round) {
    update(host, round, stream);
    read_constants<<<1, kThreads, 0, stream>>>(out + round * kThreads);
  }
  must(cudaStreamSynchronize(stream));
  expect_constants(out);
  must(cudaStreamDestroy(stream));
}

void constants_from_the_default_stream(const int* host, int* out) {
  cudaStream_t stream;
  must(cudaStreamCreate(&stream));
  for (int round = 0; round < kRounds; ++round) {
    must(cudaMemcpyToSymbol(numbers, host + round * kThreads, sizeof(numbers)));
    const int one = round + 1;
    must(cudaMemcpyToSymbol(one_number, &one, sizeof(int)));
    read_constants<<<1, kThreads, 0, stream>>>(out + round * kThreads);
  }
  must(cudaStreamSynchronize(stream));
  expect_constants(out);
  fill_late<<<1, kThreads, 0, stream>>>(out, 20'000);
  must(cudaStreamDestroy(stream));  // what is in it goes on, and the default stream waits for it
  const std::vector<int> got = from_device(out, kThreads);
  for (int i = 0; i < kThreads; ++i) expect(got[i] == i);
}

void constants_in_two_streams(const int* host, int* out) {
  cudaStream_t writer, reader;
  cudaEvent_t written, read;
  must(cudaStreamCreateWithFlags(&writer, cudaStreamNonBlocking));
  must(cudaStreamCreateWithFlags(&reader, cudaStreamNonBlocking));
  must(cudaEventCreateWithFlags(&written, cudaEventDisableTiming));
  must(cudaEventCreateWithFlags(&read, cudaEventDisableTiming));
  for (int round = 0; round < kRounds; ++round) {
    update(host, round, writer);
    must(cudaEventRecord(written, writer));
    must(cudaStreamWaitEvent(reader, written, 0));
    read_constants<<<1, kThreads, 0, reader>>>(out + round * kThreads);
    must(cudaEventRecord(read, reader));
    must(cudaStreamWaitEvent(writer, read, 0));
  }
  must(cudaDeviceSynchronize());
  expect_constants(out);
  must(cudaEventDestroy(written));
  must(cudaEventDestroy(read));
  must(cudaStreamDestroy(writer));
  must(cudaStreamDestroy(reader));
}

// Kernels make the constants of later kernels, through the address of the symbol and by copies on the device.
void constants_made_by_kernels(const int* host, int* out, int* scratch) {
  int* address = nullptr;
  must(cudaGetSymbolAddress(reinterpret_cast<void**>(&address), numbers));
  cudaStream_t stream;
  must(cudaStreamCreate(&stream));
  for (int round = 0; round < kRounds; ++round) {
    if (round % 2 == 0) {
      fill<<<1, kThreads, 0, stream>>>(address, 7 * round);
    } else {
      fill<<<1, kThreads, 0, stream>>>(scratch, 7 * round);
      must(cudaMemcpyToSymbolAsync(numbers, scratch, sizeof(numbers), 0, cudaMemcpyDeviceToDevice, stream));
    }
    must(cudaMemcpyToSymbolAsync(one_number, host + kRounds * kThreads + round, sizeof(int), 0,
                                 cudaMemcpyHostToDevice, stream));
    read_constants<<<1, kThreads, 0, stream>>>(out + round * kThreads);
  }
  must(cudaStreamSynchronize(stream));
  expect_constants(out);
  must(cudaStreamDestroy(stream));
}

// A graph whose nodes get other parameters after each launch.
void constants_in_graphs(const int* host, int* out) {
  cudaStream_t stream;
  must(cudaStreamCreate(&stream));
  cudaGraph_t graph;
  must(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t of_numbers, of_one, of_kernel;
  const int* one = host + kRounds * kThreads;
  must(cudaGraphAddMemcpyNodeToSymbol(&of_numbers, graph, nullptr, 0, numbers, host, sizeof(numbers), 0,
                                      cudaMemcpyHostToDevice));
  must(cudaGraphAddMemcpyNodeToSymbol(&of_one, graph, &of_numbers, 1, one_number, one, sizeof(int), 0,
                                      cudaMemcpyHostToDevice));
  int* target = out;
  void* arguments[] = {&target};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(read_constants);
  kernel.gridDim = dim3(1);
  kernel.blockDim = dim3(kThreads);
  kernel.kernelParams = arguments;
  must(cudaGraphAddKernelNode(&of_kernel, graph, &of_one, 1, &kernel));
  cudaGraphExec_t execution;
  must(cudaGraphInstantiateWithFlags(&execution, graph, 0));
  for (int round = 0; round < kRounds; ++round) {
    if (round > 0) {
      target = out + round * kThreads;
      must(cudaGraphExecMemcpyNodeSetParamsToSymbol(execution, of_numbers, numbers, host + round * kThreads,
                                                    sizeof(numbers), 0, cudaMemcpyHostToDevice));
      must(cudaGraphExecMemcpyNodeSetParamsToSymbol(execution, of_one, one_number, one + round, sizeof(int), 0,
                                                    cudaMemcpyHostToDevice));
      must(cudaGraphExecKernelNodeSetParams(execution, of_kernel, &kernel));
    }
    must(cudaGraphLaunch(execution, stream));
  }
  must(cudaGraphExecDestroy(execution));
  must(cudaStreamSynchronize(stream));
  expect_constants(out);
  must(cudaGraphDestroy(graph));
  must(cudaStreamDestroy(stream));
}

// Texels are written between kernels, and a texture is destroyed as soon as its last kernel is queued: the next
// one, of another array, may have its handle.
void textures(const int* host, int* out) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
  cudaArray_t arrays[2];
  for (cudaArray_t& array : arrays) must(cudaMallocArray(&array, &format, 8, 8));
  cudaStream_t stream;
  must(cudaStreamCreate(&stream));
  for (int round = 0; round < kRounds; ++round) {
    must(cudaMemcpy2DToArrayAsync(arrays[round % 2], 0, 0, host + round * kThreads, 8 * sizeof(int), 8 * sizeof(int), 8,
                                  cudaMemcpyHostToDevice, stream));
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = arrays[round % 2];
    cudaTextureDesc description{};
    description.readMode = cudaReadModeElementType;
    cudaTextureObject_t texture = 0;
    must(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
    read_texture<<<1, kThreads, 0, stream>>>(texture, out + round * kThreads);
    must(cudaDestroyTextureObject(texture));
  }
  must(cudaStreamSynchronize(stream));
  const std::vector<int> got = from_device(out, kRounds * kThreads);
  for (int round = 0; round < kRounds; ++round)
    for (int i = 0; i < kThreads; ++i) expect(got[round * kThreads + i] == constant_of(round, i));
  for (cudaArray_t array : arrays) must(cudaFreeArray(array));
  must(cudaStreamDestroy(stream));
}

// Variables, memory that the host shares, and memory that is freed in the order of a stream.
void other_memory(const int* host, int* out) {
  cudaStream_t stream;
  must(cudaStreamCreate(&stream));
  int *mapped = nullptr, *on_device = nullptr;
  must(cudaHostAlloc(&mapped, kThreads * sizeof(int), cudaHostAllocMapped));
  must(cudaHostGetDevicePointer(reinterpret_cast<void**>(&on_device), mapped, 0));
  for (int round = 0; round < kRounds; ++round) {
    int* mine = out + round * kThreads;
    must(cudaMemcpyToSymbolAsync(counter, host + kRounds * kThreads + round, sizeof(int), 0, cudaMemcpyHostToDevice,
                                 stream));
    count<<<1, 1, 0, stream>>>(mine);
    // A kernel writes to the host's memory, and the copy after it takes what is there then.
    fill<<<1, kThreads, 0, stream>>>(on_device, 100 * round);
    int* passing = nullptr;
    must(cudaMallocAsync(reinterpret_cast<void**>(&passing), kThreads * sizeof(int), stream));
    must(cudaMemcpyAsync(passing, mapped, kThreads * sizeof(int), cudaMemcpyHostToDevice, stream));
    copy<<<1, kThreads - 1, 0, stream>>>(passing + 1, mine + 1);
    must(cudaFreeAsync(passing, stream));
  }
  must(cudaStreamSynchronize(stream));
  const std::vector<int> got = from_device(out, kRounds * kThreads);
  for (int round = 0; round < kRounds; ++round)
    for (int i = 0; i < kThreads; ++i)
      expect(got[round * kThreads + i] == (i == 0 ? round + 1 : 100 * round + i));
  for (int round = 0; round < kRounds; ++round) {
    shared_number = round;
    read_shared_number<<<1, 1, 0, stream>>>(out + round);
    must(cudaStreamSynchronize(stream));
  }
  const std::vector<int> shared = from_device(out, kRounds);
  for (int round = 0; round < kRounds; ++round) expect(shared[round] == round);
  must(cudaFreeHost(mapped));
  must(cudaStreamDestroy(stream));
}

int main() {
  int* host = pinned_numbers();
  int* out = device_zeros<int>(kRounds * kThreads);
  int* scratch = device_zeros<int>(kThreads);
  constants_in_one_stream(host, out);
  constants_from_the_default_stream(host, out);
  constants_in_two_streams(host, out);
  constants_made_by_kernels(host, out, scratch);
  constants_in_graphs(host, out);
  textures(host, out);
  other_memory(host, out);
  return verdict();
}
