// SPDX-License-Identifier: Apache-2.0
// Arguments of all sizes and alignments, structures by value, and launches without the chevrons.
#include <cstdint>

#include "check.hpp"

struct Large {
  double values[64];
  char tail;
};

struct alignas(16) Aligned {
  float x, y, z, w;
};

struct Empty {};

struct Handle {
  __device__ float operator()(int i) const { return data[i] * scale; }
  const float* data;
  float scale;
};

__global__ void many(std::int8_t a, double b, std::int16_t c, Aligned d, bool e, std::uint64_t f, Empty,
                     float g, char h, const Large i, double* out) {
  out[0] = a;
  out[1] = b;
  out[2] = c;
  out[3] = d.x + 10 * d.y + 100 * d.z + 1000 * d.w;
  out[4] = e;
  out[5] = double(f);
  out[6] = g;
  out[7] = h;
  double sum = 0;
  for (double value : i.values) sum += value;
  out[8] = sum;
  out[9] = i.tail;
}

__global__ void call(Handle handle, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = handle(i);
}

template <int kCount, typename... Values>
__global__ void pack(int* out, Values... values) {
  const int all[] = {int(values)...};
  int sum = 0;
  for (int k = 0; k < kCount; ++k) sum += all[k] * (k + 1);
  *out = sum;
}

int main() {
  Large large{};
  for (int i = 0; i < 64; ++i) large.values[i] = i;
  large.tail = 'z';
  double* out = device_zeros<double>(10);
  many<<<1, 1>>>(-8, 2.5, -300, {1, 2, 3, 4}, true, 1ull << 40, {}, 0.125f, 'q', large, out);
  must(cudaGetLastError());
  expect_same(from_device(out, 10),
              std::vector<double>{-8, 2.5, -300, 4321, 1, double(1ull << 40), 0.125, 'q', 64 * 63 / 2, 'z'});

  const int n = 100;
  std::vector<float> numbers(n);
  for (int i = 0; i < n; ++i) numbers[i] = float(i);
  Handle handle{to_device(numbers), 3.0f};
  float* results = device_zeros<float>(n);
  int count = n;
  void* arguments[] = {&handle, &results, &count};
  must(cudaLaunchKernel(reinterpret_cast<void*>(call), dim3(1), dim3(128), arguments, 0, nullptr));
  expect(from_device(results, n)[99] == 297);

  cudaLaunchConfig_t configuration{};
  configuration.gridDim = dim3(2);
  configuration.blockDim = dim3(64);
  handle.scale = -1.0f;
  must(cudaLaunchKernelEx(&configuration, call, handle, results, n));
  expect(from_device(results, n)[99] == -99);

  int* sum = device_zeros<int>(1);
  pack<5><<<1, 1>>>(sum, char(1), short(2), 3, 4ll, 5.0);
  expect(from_device(sum, 1)[0] == 55);
  return verdict();
}
